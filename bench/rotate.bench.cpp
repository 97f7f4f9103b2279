// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a rotation costs: alone, gradient to rotated floats (`rotate`), and as part of what a rank computes before its codes
//! travel (`rotate_local`), of saturating codes of 4 bits that differ in their rotator only, as in table 6 of Han et al.
//! (HotNets'24).

#include "support/cpu_bench.hpp"

#include <tersum/presets.hpp>
#include <tersum/range/global_range.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum_baselines/full_hadamard.hpp>

namespace {

using namespace tersum_bench;

// The full rotation is alone where its codec measures: the norms of its tensor come with it.
template <class Codec>
void add_codec(std::string_view name, Codec const& codec)
{
  auto const add_part = [&](operation const& what) {
    for_each_cpu_setting([&](auto const& exec, std::string_view executor, std::uint64_t n) {
      add(result_name(what.name, name, "float", executor, n, exec.threads),
          [=](benchmark::State& state) {
            local_bench<cpu_backend, Codec, float>{codec, exec, n}.template run<false>(state,
                                                                                       what.what);
          });
    });
  };
  add_part({"rotate_local", part::local});
  if (Codec::rotates_all) { add_part({"rotate", part::norms}); }
}

template <int Size>
void run_partial(benchmark::State& state, tersum::cpu_executor const& exec, std::uint64_t n)
{
  std::size_t const turns = turns_for(n * sizeof(float));
  cpu_backend room{exec, 2 * turns * (n * sizeof(float) + arena::alignment)};
  struct pair {
    std::span<float> from, to;
  };
  std::vector<pair> pairs;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    pairs.push_back({room.take<float>(n), room.take<float>(n)});
    room.fill(pairs[turn].from);
  }
  auto const work = [&](std::size_t turn) {
    pair const& p = pairs[turn];
    tersum::detail::parallel_for(exec.threads, n / Size, [&](std::uint64_t chunk) {
      tersum::detail::rotate_to_rows<Size>(exec.instructions,
                                           std::uint64_t{1},
                                           chunk,
                                           p.from.data() + chunk * Size,
                                           p.to.data() + chunk * Size);
    });
  };
  if (!room.writes_all(std::as_writable_bytes(pairs[0].to), {}, [&] { work(0); })) {
    throw std::runtime_error{"some of the output was not written"};
  }
  run_times const times = room.alternate(
    state, turns, work, [&](std::size_t turn) { room.copy(pairs[turn].to, pairs[turn].from); });
  auto const size = static_cast<double>(n * sizeof(float));
  set_counters(state, n, 0, 2 * size, size, times);
}

template <int Size>
void add_partial()
{
  using namespace tersum;
  std::string const name = "partial_" + std::to_string(Size);
  for_each_cpu_setting([&](auto const& exec, std::string_view executor, std::uint64_t n) {
    add(result_name("rotate", name, "float", executor, n, exec.threads),
        [=](benchmark::State& state) { run_partial<Size>(state, exec, n); });
  });
}

template <int Size, class Rotator>
using codec =
  tersum::codec<tersum::fixed_chunks<Size>,
                Rotator,
                tersum::summed_codes<tersum::global_range<tersum::no_headroom>,
                                     tersum::stochastic_quantizer<4, tersum::independent>,
                                     tersum::saturating_sum<4>>,
                tersum::in_wire>;

[[maybe_unused]] bool const registered = [] {
  using namespace tersum;
  add_partial<256>();
  add_partial<1024>();
  add_partial<4096>();
  add_partial<32768>();
  add_codec("none", codec<1024, no_rotation>{});
  add_codec("partial_1024", codec<1024, partial_hadamard<1024>>{});
  add_codec("full", codec<1024, full_hadamard>{});
#if defined(TERSUM_BENCH_ALL)
  add_codec("partial_256", codec<256, partial_hadamard<256>>{});
  add_codec("partial_4096", codec<4096, partial_hadamard<4096>>{});
  add_codec("partial_32768", codec<32768, partial_hadamard<32768>>{});
#endif
  return name_compiler();
}();

}  // namespace
