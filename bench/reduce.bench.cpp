// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Payload + payload in its place, as a hop of an all-reduce does it (`reduce`), and the payloads of eight ranks at once, saturated at the end (`reduce_once`). The reference copies one payload.

#include "support/cpu_bench.hpp"

#include <tersum/reduce/saturate_once.hpp>

#include <array>

namespace {

using namespace tersum_bench;

constexpr std::size_t ranks = 8;
using payloads              = std::array<std::uint32_t const*, ranks>;

template <int Bits>
inline __attribute__((always_inline)) void sum(std::uint32_t* to,
                                               payloads const& from,
                                               std::size_t begin,
                                               std::size_t end)
{
  for (std::size_t i = begin; i < end; ++i) {
    tersum::saturate_once<Bits> lanes;
    for (std::uint32_t const* const words : from) { lanes.add(words[i]); }
    to[i] = lanes.result(ranks);
  }
}

template <int Bits>
void sum_baseline(std::uint32_t* to, payloads const& from, std::size_t begin, std::size_t end)
{
  sum<Bits>(to, from, begin, end);
}

#if defined(__x86_64__)
template <int Bits>
__attribute__((target("avx2"))) void sum_avx2(std::uint32_t* to,
                                              payloads const& from,
                                              std::size_t begin,
                                              std::size_t end)
{
  sum<Bits>(to, from, begin, end);
}

template <int Bits>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2"))) void sum_avx512(
  std::uint32_t* to, payloads const& from, std::size_t begin, std::size_t end)
{
  sum<Bits>(to, from, begin, end);
}
#endif

template <int Bits>
void sum_stretch(tersum::instruction_set set,
                 std::uint32_t* to,
                 payloads const& from,
                 std::size_t begin,
                 std::size_t end)
{
#if defined(__x86_64__)
  if (set == tersum::instruction_set::avx512) { return sum_avx512<Bits>(to, from, begin, end); }
  if (set == tersum::instruction_set::avx2) { return sum_avx2<Bits>(to, from, begin, end); }
#endif
  sum_baseline<Bits>(to, from, begin, end);
}

template <int Bits>
void run_once(benchmark::State& state, tersum::cpu_executor const& exec, std::uint64_t n)
{
  std::size_t const words = n * Bits / 32;
  std::size_t const size  = words * sizeof(std::uint32_t);
  std::size_t const turns = turns_for(ranks * size);
  cpu_backend room{exec, turns * (ranks + 1) * (size + arena::alignment)};
  std::vector<payloads> from(turns);
  std::vector<std::span<std::uint32_t>> to;
  for (auto& of_ranks : from) {
    to.push_back(room.take<std::uint32_t>(words));
    unsigned char byte = 0x11;
    for (auto& payload : of_ranks) {
      auto const codes = room.take<std::uint32_t>(words);
      std::memset(codes.data(), byte, size);
      payload = codes.data();
      byte    = static_cast<unsigned char>(byte + 0x22);
    }
  }
  auto const work = [&](std::size_t turn) {
    constexpr std::size_t stretch = 16384;
    tersum::detail::parallel_for(
      exec.threads, (words + stretch - 1) / stretch, [&](std::uint64_t i) {
        std::size_t const end = std::min(words, (i + 1) * stretch);
        sum_stretch<Bits>(exec.instructions, to[turn].data(), from[turn], i * stretch, end);
      });
  };
  if (!room.writes_all(std::as_writable_bytes(to[0]), {}, [&] { work(0); })) {
    throw std::runtime_error{"some of the output was not written"};
  }
  run_times const times = room.alternate(state, turns, work, [&](std::size_t turn) {
    room.copy(to[turn], std::span{from[turn][0], words});
  });
  auto const payload    = static_cast<double>(size);
  set_counters(state, n, Bits, static_cast<double>(ranks + 1) * payload, payload, times);
}

template <int Bits>
void add_once()
{
  std::string const name = "saturate_once_" + std::to_string(Bits);
  for_each_cpu_setting([&](auto const& exec, std::string_view executor, std::uint64_t n) {
    add(result_name("reduce_once", name, "float", executor, n, exec.threads),
        [=](benchmark::State& state) { run_once<Bits>(state, exec, n); });
  });
}

[[maybe_unused]] bool const registered = [] {
  add_presets({"reduce", part::reduce});
  add_once<2>();
  add_once<4>();
  add_once<8>();
  return name_compiler();
}();

}  // namespace
