// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Benchmarks of the CPU executor: memory larger than the caches, a memcpy beside every run, checked outputs.

#pragma once

#include "support/preset_list.hpp"
#include "support/sample_gradient.hpp"
#include "support/traffic.hpp"

#include <tersum/collective/exchange.hpp>
#include <tersum/execute/cpu_executor.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tersum_bench {

using bytes = std::span<std::byte>;

//! Most that the arrays of one benchmark have to take together, so that no run finds its input in a cache.
[[nodiscard]] inline std::size_t working_set()
{
  std::size_t largest = std::size_t{64} << 20;
  for (auto const& cache : benchmark::CPUInfo::Get().caches) {
    largest = std::max(largest, static_cast<std::size_t>(cache.size));
  }
  return 4 * largest;
}

//! How many inputs of so many bytes take turns.
[[nodiscard]] inline std::size_t turns_for(std::size_t input_bytes)
{
  return std::max<std::size_t>(2, (working_set() + input_bytes - 1) / input_bytes);
}

//! @brief Memory that benchmarks take one after the other: allocated and touched once.
class arena {
 public:
  //! Makes room and forgets what was taken before.
  explicit arena(std::size_t size)
  {
    auto& memory = storage();
    if (memory.size < size) {
      memory.data.reset();
      memory.data.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, size)));
      memory.size = memory.data ? size : 0;
      if (memory.size > 0) { std::memset(memory.data.get(), 0, size); }
    }
    ok_   = memory.size >= size;
    next_ = memory.data.get();
  }

  [[nodiscard]] bool ok() const { return ok_; }

  [[nodiscard]] static std::size_t rounded(std::size_t size)
  {
    return (size + alignment - 1) / alignment * alignment;
  }

  template <class T>
  [[nodiscard]] std::span<T> take(std::size_t count)
  {
    std::span<T> const taken{reinterpret_cast<T*>(next_), count};
    next_ += rounded(count * sizeof(T));
    return taken;
  }

 private:
  static constexpr std::size_t alignment = 4096;

  struct release {
    void operator()(std::byte* data) const { std::free(data); }
  };
  struct block {
    std::unique_ptr<std::byte, release> data;
    std::size_t size = 0;
  };
  [[nodiscard]] static block& storage()
  {
    static block memory;
    return memory;
  }

  bool ok_;
  std::byte* next_;
};

//! @brief memcpy on so many threads, each of a contiguous share.
inline void copy_on_threads(int threads, bytes to, std::span<std::byte const> from)
{
  auto const share = [&](int i) {
    std::size_t const begin =
      from.size() / 64 * static_cast<unsigned>(i) / static_cast<unsigned>(threads) * 64;
    std::size_t const end = i + 1 == threads ? from.size()
                                             : from.size() / 64 * static_cast<unsigned>(i + 1) /
                                                 static_cast<unsigned>(threads) * 64;
    std::memcpy(to.data() + begin, from.data() + begin, end - begin);
  };
  if (threads == 1) { return share(0); }
#if defined(_OPENMP)
#pragma omp parallel for num_threads(threads) schedule(static)
#endif
  for (int i = 0; i < threads; ++i) { share(i); }
}

template <class Work>
[[nodiscard]] double time_ns(Work const& work)
{
  auto const begin = std::chrono::steady_clock::now();
  work();
  std::chrono::duration<double, std::nano> const taken = std::chrono::steady_clock::now() - begin;
  return taken.count();
}

//! @brief Whether `work` writes all of `out`, the same bytes twice. `state` is as before afterwards.
template <class Work>
[[nodiscard]] bool writes_all(bytes out, bytes state, Work const& work)
{
  std::vector<std::byte> const before(state.begin(), state.end());
  auto const run = [&](int poison) {
    std::memset(out.data(), poison, out.size());
    work();
    std::copy(before.begin(), before.end(), state.begin());
  };
  run(0x5a);
  std::vector<std::byte> const first(out.begin(), out.end());
  run(0xa5);
  return std::equal(first.begin(), first.end(), out.begin());
}

struct best_times {
  double work_ns = std::numeric_limits<double>::infinity();
  double copy_ns = std::numeric_limits<double>::infinity();
};

//! @brief Runs `work(turn)` for the benchmark, and between the runs `copy(turn)`, which is not timed by it.
//!
//! Both go through `turns` inputs, half of them apart, so that neither finds in a cache what the other left there.
template <class Work, class Copy>
[[nodiscard]] best_times alternate(benchmark::State& state,
                                   std::size_t turns,
                                   Work const& work,
                                   Copy const& copy)
{
  best_times best;
  for (std::size_t turn = 0; turn < turns; ++turn) {  // the pages and the threads are there
    copy(turn);
    work(turn);
  }
  std::size_t turn = 0;
  for (auto _ : state) {
    state.PauseTiming();
    best.copy_ns = std::min(best.copy_ns, time_ns([&] { copy((turn + turns / 2) % turns); }));
    state.ResumeTiming();
    best.work_ns = std::min(best.work_ns, time_ns([&] { work(turn); }));
    turn         = (turn + 1) % turns;
  }
  return best;
}

//! @brief One rank's memory, and where the reference copies its gradient to.
template <class Codec, class Element>
struct rank_memory {
  std::span<Element> gradient;
  std::span<Element> copy;
  bytes state;
  bytes workspace;
};

//! @brief An operation on a rank of an exchange.
struct operation {
  std::string_view name;
  bool agrees;   //!< It includes the local part of the first round.
  bool encodes;  //!< It includes the codes.
  bool decodes;  //!< It is the decoder.
};

inline constexpr operation norms_operation{"norms", true, false, false};
inline constexpr operation encode_operation{"encode", false, true, false};
inline constexpr operation local_operation{"local", true, true, false};
inline constexpr operation decode_operation{"decode", false, false, true};

//! @brief Measures an operation of a codec.
template <class Element, class Codec>
void run_exchange_part(benchmark::State& state,
                       operation const& what,
                       Codec const& codec,
                       tersum::cpu_executor const& exec,
                       std::uint64_t n)
{
  auto const plan = codec.plan(tersum::layout{n}, tersum::world{});
  traffic<Codec, Element> const moved{plan};
  std::size_t const turns = turns_for(n * sizeof(Element));
  using memory            = rank_memory<Codec, Element>;
  arena room{turns * (2 * arena::rounded(n * sizeof(Element)) + arena::rounded(plan.state_bytes()) +
                      arena::rounded(plan.workspace_bytes()))};
  if (!room.ok()) { return state.SkipWithError("not enough memory"); }

  tersum::status failure{};
  auto const require = [&](tersum::status const& s) {
    if (!s.ok()) { failure = s; }
  };
  auto const agree = [&](memory const& m) {
    require(encode(exec, plan, m.gradient, m.state, m.workspace));
  };
  auto const codes = [&](memory const& m) {
    require(advance(exec, plan, m.gradient, m.state, m.workspace));
  };
  auto const run = [&](memory const& m) {
    // Where nothing is agreed on, the first call makes the codes; there is no second one.
    if (what.agrees || (!Codec::agrees && what.encodes)) { agree(m); }
    if (what.encodes) { codes(m); }
    if (what.decodes) { require(decode(exec, plan, m.gradient, m.state, m.workspace)); }
  };

  std::vector<memory> ranks;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    memory const m{room.take<Element>(n),
                   room.take<Element>(n),
                   room.take<std::byte>(plan.state_bytes()),
                   room.take<std::byte>(plan.workspace_bytes())};
    fill_gradient(m.gradient);
    require(initialize(exec, plan, m.state, 1));
    agree(m);
    codes(m);
    ranks.push_back(m);
  }
  auto const at = [&](std::size_t offset, std::size_t size) {
    return ranks[0].workspace.subspan(offset, size);
  };
  bytes const out = what.decodes   ? std::as_writable_bytes(ranks[0].gradient)
                    : what.encodes ? at(plan.payload_offset(), plan.payload_bytes())
                                   : at(plan.agreed_offset(), plan.agreed_bytes());
  if (!writes_all(out, ranks[0].state, [&] { run(ranks[0]); })) {
    return state.SkipWithError("some of the output was not written");
  }

  best_times const best = alternate(
    state,
    turns,
    [&](std::size_t turn) { run(ranks[turn]); },
    [&](std::size_t turn) {
      copy_on_threads(exec.threads,
                      std::as_writable_bytes(ranks[turn].copy),
                      std::as_bytes(ranks[turn].gradient));
    });
  if (!failure.ok()) { return state.SkipWithError(std::string{failure.message}.c_str()); }
  bool const norms = what.agrees && Codec::agrees;
  set_counters(state,
               n,
               plan.bits_per_coordinate(),
               (norms ? moved.norms() : 0) + (what.encodes ? moved.encode() : 0) +
                 (what.decodes ? moved.decode() : 0),
               moved.gradient(),
               best.work_ns,
               best.copy_ns);
}

//! @brief Calls visit(executor, its name, n) for what this machine can run.
template <class Visitor>
void for_each_cpu_setting(Visitor const& visit)
{
  using tersum::instruction_set;
  struct named {
    instruction_set set;
    std::string_view name;
  };
  static constexpr named sets[]          = {{instruction_set::baseline, "cpu-baseline"},
                                            {instruction_set::avx2, "cpu-avx2"},
                                            {instruction_set::avx512, "cpu-avx512"}};
  static constexpr std::uint64_t sizes[] = {bucket, large};
  for (auto const& [set, name] : sets) {
    if (set > tersum::best_instruction_set()) { continue; }
    for (std::uint64_t const n : sizes) {
      for (int const threads : {1, 2}) {
        visit(tersum::cpu_executor{.threads = threads, .instructions = set}, name, n);
      }
    }
  }
}

//! @brief Registers an operation of a codec for all settings.
template <class Element, class Codec>
void add_exchange_part(operation const& what,
                       std::string_view shown_as,
                       std::string_view preset,
                       Codec const& codec)
{
  for_each_cpu_setting(
    [&](tersum::cpu_executor const& exec, std::string_view executor, std::uint64_t n) {
      std::string const name =
        result_name(shown_as, preset, element_name<Element>, executor, n, exec.threads);
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
        run_exchange_part<Element>(state, what, codec, exec, n);
      })->Unit(benchmark::kMillisecond);
    });
}

//! @brief Registers an operation for all presets, and for gradients of 16 bits. Compiled once, in cpu_exchange_part.cpp.
void add_exchange_part(operation const& what);

//! The compiler goes into the context of the results.
inline void name_compiler()
{
#if defined(__clang__)
  benchmark::AddCustomContext("compiler", "clang++ " __clang_version__);
#else
  benchmark::AddCustomContext("compiler", "g++ " __VERSION__);
#endif
}

}  // namespace tersum_bench
