// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Block-scope pieces put together in kernels of a caller make the bytes that the library makes.

#include "../../examples/your_own/dead_zone_quantizer.hpp"
#include "support/codecs.hpp"
#include "support/emulator.hpp"
#include "support/normal_gradients.hpp"
#include "support/staged_run.hpp"

#include <tersum/block/block_values.hpp>
#include <tersum/block/chunk_step.hpp>
#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/quantize/block_codes.hpp>
#include <tersum/quantize/block_levels.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/quantize/nearest_quantizer.hpp>
#include <tersum/quantize/packed_codes.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/guard_lanes.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/rotate/block_hadamard.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/rotate/partial_hadamard.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace {

using namespace tersum;
using emulator::host_context;

static_assert(block_context<host_context> && tensor_core_context<host_context>);
static_assert(!block_context<int>);

constexpr std::uint64_t seed = 0x5eed;
constexpr int world          = 3;

template <class Chunk, class Storage, class Body>
void launch(emulator::thread_order order, std::uint64_t coordinates, Body const& body)
{
  emulator::launch({.blocks       = static_cast<std::uint32_t>(Chunk::blocks(coordinates)),
                    .threads      = Chunk::block_threads,
                    .shared_bytes = sizeof(Storage)},
                   order,
                   [&](host_context& ctx) { body(ctx, *static_cast<Storage*>(ctx.shared())); });
}

//! The pieces that do what a codec does.
template <class Codec>
struct pieces {
  using chunk    = block_chunk<Codec::chunk_size>;
  using array    = block_values<Codec::chunk_size>;
  using rotation = block_hadamard<Codec::chunk_size, Codec::rotates_chunks>;
  using codes =
    block_codes<Codec::chunk_size, typename Codec::quantizer_type, typename Codec::reducer_type>;
  using words = std::vector<std::uint32_t>;

  dither_key key;
  chunk_step const* steps;

  //! @param misplaced  Where the copy begins that is read, in elements after a multiple of 16 bytes.
  [[nodiscard]] words encode(emulator::thread_order order,
                             std::vector<float> const& gradient,
                             std::size_t misplaced) const
  {
    std::vector<float> copy(misplaced);
    copy.insert(copy.end(), gradient.begin(), gradient.end());
    words payload(chunk::template words<codes::words>(gradient.size()));
    launch<chunk, typename rotation::storage>(
      order, gradient.size(), [&](host_context& ctx, auto& shared) {
        auto const mine = chunk::of(ctx, gradient.size());
        float v[32];
        std::uint32_t packed[codes::words];
        array::load(ctx, mine, copy.data() + misplaced, v);
        rotation::forward(ctx, mine, sign_key(key.step, key.seed), shared, v);
        codes{}.encode(ctx, mine, key, mine.exists() ? steps[mine.chunk].encode : 0.0f, v, packed);
        codes::store(ctx, mine, packed, payload.data());
      });
    return payload;
  }

  [[nodiscard]] std::vector<float> decode(emulator::thread_order order,
                                          words const& payload,
                                          std::size_t coordinates) const
  {
    std::vector<float> mean(coordinates);
    launch<chunk, typename rotation::storage>(
      order, coordinates, [&](host_context& ctx, auto& shared) {
        auto const mine = chunk::of(ctx, coordinates);
        float v[32];
        std::uint32_t packed[codes::words];
        codes::load(ctx, mine, payload.data(), packed);
        codes::decode(ctx, packed, world, v);
        rotation::backward(ctx, mine, sign_key(key.step, key.seed), shared, v);
        float const step = mine.exists() ? steps[mine.chunk].decode : 0.0f;
        for (float& x : v) { x = host_context::multiply(x, step); }
        array::store(ctx, mine, v, mean.data());
      });
    return mean;
  }
};

// Which bits a NaN has is not specified.
bool same_means(std::vector<float> const& a, std::vector<float> const& b)
{
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) {
    same = detail::float_bits(a[i]) == detail::float_bits(b[i]) ||
           (std::isnan(a[i]) && std::isnan(b[i]));
  }
  return same;
}

template <class Codec>
std::vector<std::uint32_t> payload_of(tests::staged_run<Codec>& run, int rank)
{
  std::vector<std::uint32_t> words(run.plan().payload_bytes() / sizeof(std::uint32_t));
  std::memcpy(words.data(),
              run.workspace(rank).data() + run.plan().offset("payload"),
              words.size() * sizeof(std::uint32_t));
  return words;
}

// Several ranks and steps of the library, on the CPU; every payload and every mean is made by the pieces too.
template <class Codec>
void compare(Codec const& codec, std::size_t coordinates)
{
  CAPTURE(coordinates);
  tests::staged_run<Codec> run{codec, layout{coordinates}, world, seed};
  for (std::uint64_t step = 0; step < 2; ++step) {
    auto gradients = tests::normal_gradients(world, coordinates, 11 + static_cast<unsigned>(step));
    for (auto& gradient : gradients) {
      // The third chunk is zeros and has no step.
      for (std::size_t i = 0; i < coordinates; ++i) {
        if (i / Codec::chunk_size == 2) { gradient[i] = 0.0f; }
      }
    }
    // In the second step the last chunk is not finite, and is sent as zeros.
    if (step == 1) { gradients[0].back() = std::numeric_limits<float>::infinity(); }
    run.measure(gradients);
    run.agree(reduction_order::ring);
    run.encode();
    for (int rank = 0; rank < world; ++rank) {
      CAPTURE(rank);
      pieces<Codec> const mine{{seed, step, static_cast<std::uint32_t>(rank)}, &run.step(rank, 0)};
      auto const sent = payload_of(run, rank);
      for (auto const order : emulator::thread_orders) {
        CAPTURE(order);
        auto const& gradient = gradients[static_cast<std::size_t>(rank)];
        CHECK(mine.encode(order, gradient, rank == 1 ? 1 : 0) == sent);
      }
    }
    run.reduce(reduction_order::ring);
    auto const sum = payload_of(run, 0);
    std::vector<chunk_step> steps;
    for (std::size_t c = 0; c < run.plan().chunks(); ++c) { steps.push_back(run.step(0, c)); }
    run.decode();
    pieces<Codec> const mine{{seed, step, 0}, steps.data()};
    for (auto const order : emulator::thread_orders) {
      CAPTURE(order);
      CHECK(same_means(mine.decode(order, sum, coordinates), run.values(0)));
    }
  }
}

TEST_CASE("[block scope] saturating codes of rotated chunks of a warp are the library's")
{
  tests::rotated_sums<1024,
                      rms_range<tracked_correlation>,
                      stochastic_quantizer<4>,
                      saturating_sum<4>> const library{};
  for (std::size_t const coordinates : {130u, 1023u, 1024u, 5u * 1024 + 37}) {
    compare(library, coordinates);
  }
}

TEST_CASE(
  "[block scope] codes of a quantizer of one's own, of chunks that share a warp, are the library's")
{
  tests::
    plain_sums<256, absmax_range<no_headroom>, ::dead_zone_quantizer<4>, widening_sum<4, 8>> const
      library{};
  for (std::size_t const coordinates : {255u, 17u * 256 + 3}) { compare(library, coordinates); }
}

TEST_CASE("[block scope] codes in guarded lanes, of chunks of a block, are the library's")
{
  tests::rotated_sums<2048, rms_range<no_headroom>, stochastic_quantizer<2>, guard_lanes<4>> const
    library{};
  for (std::size_t const coordinates : {2047u, 3u * 2048 + 1}) { compare(library, coordinates); }
}

// Integers stay integers below 2^24, so that the transform and its inverse are exact.
template <int Size>
void check_rotation()
{
  CAPTURE(Size);
  using chunk             = block_chunk<Size>;
  using array             = block_values<Size>;
  using rotation          = block_hadamard<Size>;
  std::size_t const count = 2 * Size * chunk::block_chunks - 5;
  std::vector<half> integers, large;
  for (std::size_t i = 0; i < count; ++i) {
    auto const integer = static_cast<float>(i * i % 7) - 3.0f;
    integers.push_back(to_half(integer));
    // The library's means end at the largest half, too.
    large.push_back(detail::finite_from_float<half>(integer * 0x1p15f));
  }
  for (auto const order : emulator::thread_orders) {
    CAPTURE(order);
    std::vector<half> back(count), ended(count);
    launch<chunk, typename rotation::storage>(order, count, [&](host_context& ctx, auto& shared) {
      auto const mine = chunk::of(ctx, count);
      float v[32];
      array::load(ctx, mine, integers.data(), v);
      rotation::forward(ctx, mine, 5, shared, v);
      rotation::synchronize(ctx);
      rotation::to_loaded(ctx, mine, shared, v);
      for (float& x : v) { x /= Size; }
      rotation::synchronize(ctx);
      // Signs are flipped back and forth.
      rotation::to_wire(ctx, mine, shared, v);
      rotation::synchronize(ctx);
      rotation::backward(ctx, mine, 5, shared, v);
      for (float& x : v) { x /= Size; }
      array::store(ctx, mine, v, back.data());
      for (float& x : v) { x *= 0x1p15f; }
      array::store(ctx, mine, v, ended.data());
    });
    CHECK(back == integers);
    CHECK(ended == large);
  }
}

TEST_CASE("[block scope] a rotation back undoes the rotation, and what is stored is finite")
{
  check_rotation<32>();
  check_rotation<128>();
  check_rotation<1024>();
  check_rotation<4096>();
}

// Integers that need no rounding: position p of the wire holds (p + c) mod (2 max_level + 1) - max_level in chunk c.
template <int Size, class Quantizer, class Reducer>
void check_lanes()
{
  CAPTURE(Size);
  using chunk                = block_chunk<Size>;
  using codes                = block_codes<Size, Quantizer, Reducer>;
  using lanes                = packed_codes<Reducer::lane_bits>;
  constexpr int limit        = Quantizer::max_level;
  constexpr std::size_t size = Size;
  std::size_t const count    = 5 * size;
  auto const code_at         = [](std::size_t p, std::uint64_t c) {
    return static_cast<int>((p % size + c) % (2 * limit + 1)) - limit;
  };
  std::vector<std::uint32_t> payload(chunk::template words<codes::words>(count));
  bool back = true;
  emulator::launch_shape const shape{.blocks  = static_cast<std::uint32_t>(chunk::blocks(count)),
                                     .threads = chunk::block_threads};
  emulator::launch(shape, emulator::shuffled(1), [&](host_context& ctx) {
    auto const mine = chunk::of(ctx, count);
    auto const code = [&](int k) {
      return static_cast<float>(code_at(32 * mine.thread + static_cast<unsigned>(k), mine.chunk));
    };
    float v[32];
    std::uint32_t packed[codes::words];
    for (int k = 0; k < 32; ++k) { v[k] = code(k); }
    float const unit = 1 << Quantizer::fraction_bits;
    codes{}.encode(ctx, mine, dither_key{.seed = 1}, unit, v, packed);
    codes::store(ctx, mine, packed, payload.data());
    codes::load(ctx, mine, payload.data(), packed);
    codes::decode(ctx, packed, 1, v);
    for (int k = 0; k < 32; ++k) { back = back && (!mine.exists() || v[k] == code(k)); }
  });
  CHECK(back);
  bool placed = true;
  for (std::size_t p = 0; p < count; ++p) {
    int const lane = lanes::get(payload[p / lanes::lanes], static_cast<int>(p % lanes::lanes));
    placed         = placed && lane == code_at(p, p / size);
  }
  CHECK(placed);
}

TEST_CASE("[block scope] lanes of all widths hold the codes in wire order")
{
  check_lanes<128, stochastic_quantizer<2>, saturating_sum<2>>();
  check_lanes<512, nearest_quantizer<4>, saturating_sum<4>>();
  check_lanes<2048, stochastic_quantizer<8>, saturating_sum<8>>();
  check_lanes<256, stochastic_quantizer<8, independent>, widening_sum<8, 16>>();
}

// Codes of chunks of normal values, of zeros, and of one value that is not finite, beside the nearest levels in double.
template <int Size, int Bits>
void check_levels(emulator::thread_order order)
{
  CAPTURE(Size);
  CAPTURE(Bits);
  using chunk                  = block_chunk<Size>;
  using levels                 = block_levels<Size, lloyd_max<Bits>>;
  constexpr std::size_t chunks = 4;
  auto values                  = tests::normal_gradients(1, chunks * Size, 3)[0];
  std::fill_n(values.begin() + Size, Size, 0.0f);
  values[2 * Size + 5] = std::numeric_limits<float>::infinity();
  std::vector<std::uint32_t> codes(chunk::template words<Bits>(values.size()));
  std::vector<float> scales(chunks), decoded(values.size());
  launch<chunk, std::array<float, 32>>(order, values.size(), [&](host_context& ctx, auto& shared) {
    auto const mine           = chunk::of(ctx, values.size());
    std::uint64_t const first = mine.offset + 32 * mine.thread;
    float v[32]               = {};
    std::uint32_t packed[levels::words];
    if (mine.exists()) { std::copy_n(values.data() + first, 32, v); }
    float const scale = levels::encode(ctx, mine, shared.data(), v, packed);
    levels::store(ctx, mine, packed, codes.data());
    levels::load(ctx, mine, codes.data(), packed);
    std::fill_n(v, 32, 0.0f);
    levels::add(ctx, packed, scale, v);
    if (mine.exists()) { scales[mine.chunk] = scale, std::copy_n(v, 32, decoded.data() + first); }
  });
  CHECK((scales[1] == 0 && std::isnan(scales[2])));
  for (std::size_t const c : {0u, 3u}) {
    double energy = 0, product = 0;
    for (std::size_t i = c * Size; i < (c + 1) * Size; ++i) {
      energy += std::pow(static_cast<double>(values[i]), 2);
    }
    double const rms = std::sqrt(energy / Size);
    for (std::size_t i = c * Size; i < (c + 1) * Size; ++i) {
      double const x = std::abs(static_cast<double>(values[i])) / rms;
      std::uint32_t const code =
        thread_codes<Bits>::get(codes.data() + c * Size / 32 * Bits, static_cast<int>(i % Size)) %
        (1u << Bits);
      auto const level_of = [](std::size_t at) {
        return static_cast<double>(lloyd_max<Bits>::levels()[at]);
      };
      std::size_t const at = code % lloyd_max<Bits>::magnitudes;
      auto const cell_of   = [](double y) {
        return lloyd_max<Bits>{}.encode(static_cast<float>(y)) % lloyd_max<Bits>::magnitudes;
      };
      REQUIRE((cell_of(x * (1 - 1e-6)) <= at && at <= cell_of(x * (1 + 1e-6))));
      REQUIRE((code >> (Bits - 1) != 0) == std::signbit(values[i]));
      product += x * rms * level_of(at);
      REQUIRE(decoded[i] == std::copysign(scales[c] * lloyd_max<Bits>::levels()[at], values[i]));
    }
    CHECK(static_cast<double>(scales[c]) == doctest::Approx(energy / product).epsilon(1e-5));
  }
}

TEST_CASE(
  "[block scope] codes of levels are the cells of values, whether lanes or comparisons find them")
{
  for (auto const& order : emulator::thread_orders) {
    check_levels<128, 4>(order);
    check_levels<256, 1>(order);
    check_levels<1024, 2>(order);
    check_levels<4096, 3>(order);
  }
}

TEST_CASE("[block scope] a step becomes what kernels multiply by")
{
  using rotated = partial_hadamard<1024>;
  using codes   = stochastic_quantizer<4>;
  // Powers of two: 2^8 / (step sqrt(1024)), and step / sqrt(1024) / ranks.
  auto const step = make_chunk_step<rotated, codes>(0.25f, 1.0f, 2);
  CHECK(step.encode == 32.0f);
  CHECK(step.decode == 0x1p-8f);
  auto const plain = make_chunk_step<no_rotation, codes>(0.25f, 1.0f, 2);
  CHECK(plain.encode == 1024.0f);
  CHECK(plain.decode == 0.125f);
  // At the bound a value is 2^23 units of the fraction.
  CHECK(make_chunk_step<no_rotation, codes>(0.0f, 1024.0f, 1).decode == 1024.0f * 0x1p-15f);

  CHECK(make_chunk_step<rotated, codes>(0.0f, 0.0f, 2).encode == 0.0f);
  CHECK(make_chunk_step<rotated, codes>(0.0f, 0.0f, 2).decode == 0.0f);
  float const infinity = std::numeric_limits<float>::infinity();
  CHECK(make_chunk_step<rotated, codes>(1.0f, infinity, 2).encode == 0.0f);
  CHECK(std::isnan(make_chunk_step<rotated, codes>(1.0f, infinity, 2).decode));
  CHECK(std::isnan(make_chunk_step<rotated, codes>(0x1p101f, 1.0f, 2).decode));
}

}  // namespace
