// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Benchmarks of the CPU executor: memory larger than the caches, a memcpy beside every run, checked outputs.

#pragma once

#include "support/exchange_bench.hpp"
#include "support/names.hpp"
#include "support/sample_gradient.hpp"
#include "support/traffic.hpp"

#include <tersum/execute/cpu_executor.hpp>

#include <benchmark/benchmark.h>

#if defined(_OPENMP)
#include <omp.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tersum_bench {

//! Most that the arrays of one benchmark have to take together, so that no run finds its input in a cache.
[[nodiscard]] inline std::size_t working_set()
{
  if (small()) { return 0; }
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
  static constexpr std::size_t alignment = 4096;

  //! Makes room and forgets what was taken before.
  explicit arena(std::size_t size)
  {
    auto& memory = storage();
    if (memory.size < size) {
      memory.data.reset();
      memory.size = 0;
      size        = rounded(size);
      // What exceeds the machine's memory is promised to everybody, and ends the process when it is touched.
      if (size < physical_memory() / 4 * 3) {
        memory.data.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, size)));
      }
      if (!memory.data) { throw std::runtime_error{"not enough memory"}; }
      std::memset(memory.data.get(), 0, size);
      memory.size = size;
    }
    next_ = memory.data.get();
  }

  template <class T>
  [[nodiscard]] std::span<T> take(std::size_t count)
  {
    std::span<T> const taken{reinterpret_cast<T*>(next_), count};
    next_ += rounded(count * sizeof(T));
    if (next_ > storage().data.get() + storage().size) {
      throw std::logic_error{"more memory is taken than was asked for"};
    }
    return taken;
  }

 private:
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
  [[nodiscard]] static std::size_t rounded(std::size_t size)
  {
    return (size + alignment - 1) / alignment * alignment;
  }
  [[nodiscard]] static std::size_t physical_memory()
  {
    return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  }

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

//! Seconds that runs of one benchmark take together at most, once there were a few: TERSUM_BENCH_SECONDS or a fifth of one.
[[nodiscard]] inline double seconds_of_runs()
{
  if (small()) { return 0; }
  char const* const text = std::getenv("TERSUM_BENCH_SECONDS");
  return text == nullptr ? 0.2 : std::atof(text);
}

//! @brief Times runs of `work(turn)`, and between them `copy(turn)`; the benchmark's time is the best of `work`.
//!
//! Both go through `turns` inputs, half of them apart, so that neither finds in a cache what the other left there.
template <class Work, class Copy>
[[nodiscard]] run_times alternate(benchmark::State& state,
                                  std::size_t turns,
                                  Work const& work,
                                  Copy const& copy)
{
  constexpr std::size_t few = 5;
  double const limit_ns     = 1e9 * seconds_of_runs();
  run_times times;
  double all_ns    = 0;
  std::size_t runs = 0;
  for (auto _ : state) {
    for (std::size_t turn = 0; turn < turns; ++turn) {  // the pages and the threads are there
      copy(turn);
      work(turn);
    }
    for (; runs < few || all_ns < limit_ns; ++runs) {
      double const copy_ns = time_ns([&] { copy((runs + turns / 2) % turns); });
      double const work_ns = time_ns([&] { work(runs % turns); });
      times.add(work_ns, copy_ns);
      all_ns += copy_ns + work_ns;
    }
    state.SetIterationTime(1e-9 * times.work_ns());
  }
  state.counters["runs"] = static_cast<double>(runs);
  return times;
}

//! @brief The CPU as `exchange_bench.hpp` wants a back end.
class cpu_backend {
 public:
  using executor = tersum::cpu_executor;

  cpu_backend(executor const& exec, std::size_t size) : exec_(exec), room_(size) {}

  [[nodiscard]] static std::size_t turns_for(std::size_t input_bytes)
  {
    return tersum_bench::turns_for(input_bytes);
  }
  [[nodiscard]] executor const& exec() const { return exec_; }

  template <class T>
  [[nodiscard]] std::span<T> take(std::size_t count)
  {
    return room_.take<T>(count);
  }

  template <class T>
  void fill(std::span<T> gradient) const
  {
    fill_gradient(gradient);
  }

  template <class T, class From>
  void copy(std::span<T> to, std::span<From> from) const
  {
    copy_on_threads(exec_.threads, std::as_writable_bytes(to), std::as_bytes(from));
  }

  [[nodiscard]] bool same(bytes a, bytes b) const
  {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  template <class Work>
  [[nodiscard]] bool writes_all(bytes out, bytes state, Work const& work) const
  {
    return tersum_bench::writes_all(out, state, work);
  }

  template <class Work, class Copy>
  [[nodiscard]] run_times alternate(benchmark::State& state,
                                    std::size_t turns,
                                    Work const& work,
                                    Copy const& copy) const
  {
    return tersum_bench::alternate(state, turns, work, copy);
  }

 private:
  executor exec_;
  arena room_;
};

//! @brief Registers a benchmark; `run(state)` may throw.
template <class Run>
void add(std::string const& name, Run const& run)
{
  benchmark::RegisterBenchmark(
    name.c_str(), [=](benchmark::State& state) { guarded(state, [&] { run(state); }); })
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->Iterations(1);
}

//! @brief Numbers of threads to measure: one, two and all, as far as this process may run on so many processors.
//! @param most  The largest to measure; 0: all.
[[nodiscard]] inline std::vector<int> thread_counts(int most = 0)
{
  int all = 1;
#if defined(_OPENMP)
  // Not what this thread may run on: it may be bound to one of them.
  all = omp_get_num_procs();
#endif
  if (most > 0) { all = std::min(all, most); }
  std::vector<int> counts{1};
  if (all >= 2) { counts.push_back(2); }
  if (all > 2) { counts.push_back(all); }
  return counts;
}

//! @brief Calls visit(executor, its name, n) for what this machine can run, of some sizes: all instruction sets and `thread_counts`.
template <class Visitor>
void for_each_cpu_setting(Visitor const& visit, std::span<std::uint64_t const> of = sizes())
{
  using tersum::instruction_set;
  struct named {
    instruction_set set;
    std::string_view name;
  };
  static constexpr named sets[]  = {{instruction_set::baseline, "cpu-baseline"},
                                    {instruction_set::avx2, "cpu-avx2"},
                                    {instruction_set::avx512, "cpu-avx512"}};
  std::vector<int> const threads = thread_counts();
  for (auto const& [set, name] : sets) {
    if (set > tersum::best_instruction_set()) { continue; }
    for (std::uint64_t const n : of) {
      for (int const count : threads) {
        visit(tersum::cpu_executor{.threads = count, .instructions = set}, name, n);
      }
    }
  }
}

//! The compiler goes into the context of the results.
inline bool name_compiler()
{
#if defined(__clang__)
  benchmark::AddCustomContext("compiler", "clang++ " __clang_version__);
#else
  benchmark::AddCustomContext("compiler", "g++ " __VERSION__);
#endif
  return true;
}

}  // namespace tersum_bench
