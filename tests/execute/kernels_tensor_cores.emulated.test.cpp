// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What `tensor_core_hadamard` gives up and what it keeps: the kernel bodies against the CPU executor, which rotates in
//! float32 as `partial_hadamard` does.

#include "support/compare_codes.hpp"
#include "support/compare_kernels.hpp"
#include "support/shard_run.hpp"

#include <tersum/codec.hpp>
#include <tersum/form/shard.hpp>
#include <tersum/rotate/tensor_core_hadamard.hpp>
#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <vector>

namespace {

using namespace tersum;
using namespace tersum::tests;

template <template <int> class Rotator, int Size, class Quantizer, int Bits, class Feedback>
using rotated = codec<fixed_chunks<Size>,
                      Rotator<Size>,
                      summed_codes<rms_range<tracked_correlation>, Quantizer, saturating_sum<Bits>>,
                      in_wire,
                      Feedback>;

template <int Size, int Bits = 4>
using fast = rotated<tensor_core_hadamard, Size, stochastic_quantizer<Bits>, Bits, no_feedback>;
template <int Size, int Bits = 4>
using plain = rotated<partial_hadamard, Size, stochastic_quantizer<Bits>, Bits, no_feedback>;

// The clip of the presets.
template <int Bits>
constexpr float clip = Bits == 2   ? 1.1F
                       : Bits == 4 ? 1.9F
                                   : 3.6F;

// One exchange: what each rank sent, what all of them received.
template <class Codec, class Element>
struct exchanged {
  std::vector<byte_string> agreed, codes;  // of each rank, before the reductions
  std::vector<byte_string> sums, means, states;
  std::vector<chunk_step> steps;
};

// Runs the first step of a case; `on_gpu` says whether a rank is emulated or a CPU.
template <class Codec, class Element, class OnGpu>
exchanged<Codec, Element> exchange_once(exchange_case<Codec, Element> const& c,
                                        emulator::thread_order order,
                                        OnGpu on_gpu)
{
  emulated_executor const gpu{order};
  cpu_executor const cpu{.threads = 1};
  exchanged<Codec, Element> out;
  exchange_ranks<host_buffer, Codec, Element> ranks{c, std::byte{0xa5}};
  auto const on_each = [&](auto stage) {
    for (int rank = 0; rank < c.world; ++rank) {
      auto const r = ranks[static_cast<std::size_t>(rank)];
      require_ok(on_gpu(rank) ? stage(gpu, r) : stage(cpu, r));
    }
  };
  on_each(
    [&](auto const& exec, auto const& r) { return initialize(exec, r.plan, r.state, c.seed); });
  ranks.write_gradients(0);
  on_each([](auto const& exec, auto const& r) {
    return measure(exec, r.plan, r.gradient, r.state, r.workspace);
  });
  auto const agreed = ranks.agreed();
  out.agreed        = read_wires(ranks.memory(), agreed);
  reduce_wires(cpu, c.order, agreed);
  on_each([](auto const& exec, auto const& r) {
    return encode(exec, r.plan, r.gradient, r.state, r.workspace);
  });
  auto const payload = ranks.payload();
  out.codes          = read_wires(ranks.memory(), payload);
  reduce_wires(cpu, c.order, payload);
  out.sums             = read_wires(ranks.memory(), payload);
  auto const first     = ranks[0];
  auto const* const at = reinterpret_cast<chunk_step const*>(first.workspace.data());
  out.steps.assign(at, at + first.plan.chunks());
  on_each([](auto const& exec, auto const& r) {
    return decode(exec, r.plan, r.gradient, r.state, r.workspace);
  });
  for (auto const& mine : ranks.memory()) {
    out.means.push_back(mine.gradient.read(0, mine.gradient.contents().size()));
    out.states.push_back(mine.state.read(0, mine.state.contents().size()));
  }
  return out;
}

// Between codes and between means of a fast and of an exact exchange there is no more than rounding explains.
template <int Size, int Bits, class Element>
void check_differences(fast<Size, Bits> const& codec,
                       exchanged<fast<Size, Bits>, Element> const& got,
                       exchanged<fast<Size, Bits>, Element> const& want)
{
  CHECK(got.agreed == want.agreed);
  check_codes(codec, got.codes, want.codes);

  // The mean of a chunk moves by as much as the sums of its codes, which decoding keeps up to the scale; then it is
  // rounded to the element; decoding rounds in float32.
  auto const a       = lanes_of<Bits>(got.sums[0]);
  auto const b       = lanes_of<Bits>(want.sums[0]);
  double of_codes    = 0;
  double of_means    = 0;
  double of_rounding = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double const scale = static_cast<double>(want.steps[i / Size].decode);
    double const apart = scale * (a[i] - b[i]);
    if (a[i] != b[i]) { of_codes += Size * apart * apart; }
  }
  constexpr double roundoff = std::is_same_v<Element, half> ? 0x1p-11 : 0x1p-8;
  std::size_t const count   = want.means[0].size() / sizeof(Element);
  for (std::size_t i = 0; i < count; ++i) {
    Element x, y;
    std::memcpy(&x, got.means[0].data() + i * sizeof(Element), sizeof(Element));
    std::memcpy(&y, want.means[0].data() + i * sizeof(Element), sizeof(Element));
    auto const p = static_cast<double>(to_float(x));
    auto const q = static_cast<double>(to_float(y));
    if (std::isnan(p) && std::isnan(q)) { continue; }
    of_means += (p - q) * (p - q);
    double const rounding = roundoff * (std::fabs(p) + std::fabs(q)) + 0x1p-24;
    of_rounding += rounding * rounding;
  }
  CHECK(std::sqrt(of_means) <= std::sqrt(of_codes) * (1 + 1e-5) + std::sqrt(of_rounding));
}

auto const all_gpu = [](int) { return true; };
auto const all_cpu = [](int) { return false; };

template <int Size, int Bits, class Element>
void check_fast()
{
  constexpr std::uint64_t size = Size;
  struct shape {
    std::uint64_t coordinates;
    int world;
    bool misaligned;
    int non_finite_step;
  };
  for (auto const [coordinates, world, misaligned, non_finite_step] :
       {shape{1, 2, false, -1},
        shape{size - 1, 3, false, -1},
        shape{size, 1, false, -1},
        shape{size + 1, 2, true, -1},
        shape{several_chunks<fast<Size>>(), 2, false, -1},
        shape{several_chunks<fast<Size>>(), 3, true, -1},
        shape{several_chunks<fast<Size>>(), 2, false, 0}}) {
    exchange_case<fast<Size, Bits>, Element> const c{
      .codec           = {.coder = {.range = {.clip = clip<Bits>}}},
      .gradient        = {.coordinates = coordinates},
      .world           = world,
      .misaligned      = misaligned,
      .non_finite_step = non_finite_step};
    CAPTURE(Size);
    CAPTURE(c);
    auto const want = exchange_once(c, emulator::forward, all_cpu);
    auto const got  = exchange_once(c, emulator::forward, all_gpu);
    check_differences(c.codec, got, want);
    for (emulator::thread_order const order : {emulator::reverse, emulator::shuffled(1)}) {
      CAPTURE(order);
      auto const again = exchange_once(c, order, all_gpu);
      CHECK(again.codes == got.codes);
      CHECK(again.means == got.means);
      CHECK(again.states == got.states);
    }
  }
}

TEST_CASE("[kernels] on tensor cores codes differ by a step where rounding explains it")
{
  check_fast<1024, 4, half>();
  check_fast<1024, 4, bfloat16>();
  check_fast<512, 2, half>();
  check_fast<256, 4, bfloat16>();
  check_fast<1024, 8, bfloat16>();
}

TEST_CASE("[kernels] tensor cores work on the tensors of a bucket as on one vector")
{
  exchange_case<fast<256>, bfloat16> c{.codec    = {.coder = {.range = {.clip = clip<4>}}},
                                       .gradient = odd_bucket().gradient()};
  for (int const misaligned : {0, 1}) {
    CAPTURE(misaligned);
    c.misaligned    = misaligned;
    auto const want = exchange_once(c, emulator::forward, all_cpu);
    check_differences(c.codec, exchange_once(c, emulator::forward, all_gpu), want);
  }
}

TEST_CASE("[kernels] whether a pointer is aligned does not show in what tensor cores encode")
{
  exchange_case<fast<256>, bfloat16> c{.codec    = {.coder = {.range = {.clip = clip<4>}}},
                                       .gradient = {.coordinates = 5000}};
  auto const aligned = exchange_once(c, emulator::forward, all_gpu);
  for (c.misaligned = 1; c.misaligned < 16; ++c.misaligned) {
    CAPTURE(c.misaligned);
    CHECK(exchange_once(c, emulator::forward, all_gpu).codes == aligned.codes);
  }
}

TEST_CASE("[kernels] ranks with tensor cores and ranks without end with equal bits")
{
  exchange_case<fast<1024>, bfloat16> const c{.codec    = {.coder = {.range = {.clip = clip<4>}}},
                                              .gradient = {.coordinates = 5000},
                                              .world    = 4};
  auto const mixed = exchange_once(c, emulator::forward, [](int rank) { return rank % 2 == 1; });
  for (std::size_t rank = 1; rank < 4; ++rank) {
    CAPTURE(rank);
    CHECK(mixed.sums[rank] == mixed.sums[0]);
    CHECK(mixed.means[rank] == mixed.means[0]);
  }
}

template <class Rotator>
using two_shots = codec<fixed_chunks<1024>, Rotator, scaled_codes<lloyd_max<4>>, two_shot>;

// What one rank sends in two shots of one rank: the codes of all chunks, then zeros, then their scales, the last chunk's first.
template <class Codec, class Element>
byte_string encoded_part(exchange_case<Codec, Element> const& c, bool on_gpu)
{
  exchange_trace const trace =
    on_gpu ? record_exchange<host_buffer>(emulated_executor{emulator::reverse}, c, std::byte{0xa5})
           : record_exchange<host_buffer>(cpu_executor{.threads = 1}, c, std::byte{0xa5});
  return sent(trace, "payload")[0];
}

// Rotated values are off by a root mean square of e = 2^-11 + 2^-16 in units of the chunk's, as for saturating codes. A boundary
// b lies between a value and what it should be with a probability of at most density(b) e, and the densities of a normal
// distribution at the 15 boundaries, which lie .258 or more apart, add up to less than 1 / .258 + .399. Scales are quotients of sums
// whose relative change is at most 2 e each.
template <class Element>
void check_two_shots(bool misaligned)
{
  constexpr std::uint64_t chunks = 9;
  exchange_case<two_shots<tensor_core_hadamard<1024>>, Element> const c{
    .gradient   = {.coordinates = chunks * 1024 - 5},
    .world      = 1,
    .steps      = 1,
    .misaligned = misaligned};
  exchange_case<two_shots<partial_hadamard<1024>>, Element> const exact{
    .gradient   = {.coordinates = chunks * 1024 - 5},
    .world      = 1,
    .steps      = 1,
    .misaligned = misaligned};
  byte_string const got = encoded_part(c, true), want = encoded_part(exact, false);
  CHECK(difference(record_reference(c), record_reference(exact)) == "");
  REQUIRE(got.size() == want.size());
  constexpr double error = 0x1p-11 + 0x1p-16;
  double differ          = 0;
  for (std::size_t i = 0; i < chunks * 512; ++i) {
    for (int shift = 0; shift < 8; shift += 4) {
      auto const level = [&](std::byte word) {  // ascending
        int const code = static_cast<int>(word) >> shift & 15;
        return code < 8 ? code : 7 - code;
      };
      int const apart = std::abs(level(got[i]) - level(want[i]));
      CHECK(apart <= 1);
      differ += apart;
    }
  }
  double const expected = chunks * 1024 * error * (1 / .258 + .399);
  CHECK(differ > 0);
  CHECK(differ <= expected + 6 * std::sqrt(expected));
  for (std::size_t chunk = 1; chunk <= chunks; ++chunk) {
    float a = 0, b = 0;
    std::memcpy(&a, got.data() + got.size() - 4 * chunk, 4);
    std::memcpy(&b, want.data() + want.size() - 4 * chunk, 4);
    CHECK(std::abs(a - b) <= 4 * static_cast<float>(error) * b);
  }
}

TEST_CASE("[kernels] two shots of 16 bits on tensor cores differ where rounding explains it")
{
  for (bool const misaligned : {false, true}) {
    CAPTURE(misaligned);
    check_two_shots<half>(misaligned);
    check_two_shots<bfloat16>(misaligned);
  }
}

TEST_CASE("[kernels] a shard of 16 bits on tensor cores has the bits of all of them")
{
  using summed =
    codec<fixed_chunks<1024>,
          tensor_core_hadamard<1024>,
          summed_codes<rms_range<tracked_correlation>, stochastic_quantizer<4>, saturating_sum<4>>,
          shard>;
  constexpr std::uint64_t cut = 1500, end = 5003;
  std::array<tensor, 2> const tensors{
    {{.name = {}, .rows = cut, .columns = 1, .offset = 0},
     {.name = {}, .rows = end - cut, .columns = 1, .offset = cut}}};
  shard_case<summed, half> const shards{.codec    = {.coder = {.range = {.clip = clip<4>}}},
                                        .gradient = {.coordinates = end},
                                        .cuts     = {0, cut, end},
                                        .steps    = 1};
  exchange_case<fast<1024>, half> const whole{
    .codec    = {.coder = {.range = {.clip = clip<4>}}},
    .gradient = {.coordinates = end, .tensors = tensors, .bypass_vectors = false},
    .steps    = 1,
    .seed     = 77};
  emulated_executor const exec{emulator::reverse};
  byte_string got, want;
  for (auto const& entry : record_shards<host_buffer>(exec, shards, std::byte{0xa5})) {
    if (entry.what == "shard") { got.insert(got.end(), entry.bytes.begin(), entry.bytes.end()); }
  }
  for (auto const& entry : record_exchange<host_buffer>(exec, whole, std::byte{0xa5})) {
    if (entry.what == "gradient" && entry.rank == 0) { want = entry.bytes; }
  }
  CHECK(got.size() == end * sizeof(half));
  CHECK(got == want);
}

// On the CPU, for the same seed and gradient.
template <int Size, class Element>
void check_same_on_cpu()
{
  exchange_case<plain<Size>, Element> const a{.gradient = {.coordinates = 3 * Size + 5}};
  exchange_case<fast<Size>, Element> const b{.gradient = {.coordinates = 3 * Size + 5}};
  CHECK(difference(record_reference(b), record_reference(a)) == "");
}

TEST_CASE("[kernels] on the CPU tensor_core_hadamard is partial_hadamard")
{
  check_same_on_cpu<1024, half>();
  check_same_on_cpu<256, bfloat16>();
}

TEST_CASE(
  "[kernels] tensor_core_hadamard is partial_hadamard for float, with feedback, and for other sizes")
{
  compare_orders<float>(fast<1024>{.coder = {.range = {.clip = clip<4>}}});
  compare_orders<half>(fast<128>{.coder = {.range = {.clip = clip<4>}}});
  compare_orders<bfloat16>(fast<2048>{.coder = {.range = {.clip = clip<4>}}});
  compare_orders<half>(
    rotated<tensor_core_hadamard, 1024, nearest_quantizer<4>, 4, error_feedback>{});
}

}  // namespace
