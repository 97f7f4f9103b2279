// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The host's part of an exchange, for callgrind: calls whose launches do nothing. bench/host_cost.py builds and runs it.

#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/exchange/exchange.hpp>
#include <tersum/exchange/exchange_launches.hpp>
#include <tersum/presets.hpp>

#include <valgrind/callgrind.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace tersum;

int launches = 0;

//! Takes what a device would be given, and counts it.
struct host_only : exchange_launches<host_only> {
  static constexpr tuning tuned{};

  [[nodiscard]] status check() const noexcept { return {}; }
  template <class Op, class T>
  [[nodiscard]] status reduce(Op const&, T*, T const*, T const*, std::size_t) const
  {
    return {};  // the transport's
  }
  template <class Item>
  [[nodiscard]] status each(Item const& item, std::size_t count) const
  {
    return take(item, count);
  }
  template <class T>
  [[nodiscard]] status copy(T* to, T const* from, std::size_t count) const
  {
    return take(to, count), take(from, 0);
  }
  template <class T>
  [[nodiscard]] status clear(T* to, std::size_t count) const
  {
    return take(to, count);
  }
  template <class Kernel, class... Args>
  [[nodiscard]] status run(Kernel const& kernel, std::uint64_t blocks, Args const&... args) const
  {
    (static_cast<void>(take(args, 0)), ...);
    return take(kernel, blocks);
  }
  template <class Kernel, class... Args>
  [[nodiscard]] status run_together(Kernel const& kernel,
                                    std::uint64_t most,
                                    Args const&... args) const
  {
    return run(kernel, most, args...);
  }

 private:
  // Something that the compiler does not see uses the argument.
  template <class T>
  [[nodiscard]] static status take(T const& argument, std::uint64_t count)
  {
    asm volatile("" ::"r"(&argument) : "memory");
    launches += count > 0 ? 1 : 0;
    return {};
  }
};

//! Of so many matrices of so many columns, with n coordinates or a little less.
template <class Codec>
void count(
  char const* name, Codec const& codec, std::uint64_t n, std::size_t tensors, std::uint64_t columns)
{
  std::uint64_t const rows        = n / tensors / columns;
  std::uint64_t const coordinates = rows * columns * tensors;
  std::vector<tensor> list(tensors);
  for (std::size_t i = 0; i < tensors; ++i) {
    list[i] = {.rows = rows, .columns = columns, .offset = i * rows * columns};
  }
  layout const shape{.coordinates = coordinates, .tensors = list};
  auto const plan = codec.plan(shape, {.size = 8, .rank = 0});
  std::vector<float> gradient(coordinates, 1.0F);
  std::vector<word4> state(plan.state_bytes() / 16 + 1), work(plan.workspace_bytes() / 16 + 1);
  auto const kept    = std::as_writable_bytes(std::span{state});
  auto const scratch = std::as_writable_bytes(std::span{work});
  host_only const exec{};
  auto const no_rounds = [](auto const&) { return status{}; };
  bool ok              = plan.check().ok() && initialize(exec, plan, kept, 1).ok();
  auto const call      = [&] {
    ok = all_reduce_mean(exec, plan, gradient, kept, scratch, no_rounds).ok() && ok;
  };
  call();
  launches = 0;
  call();
  std::string const what = std::string{name} + " " + std::to_string(n) + " " +
                           std::to_string(tensors) + (columns % 8 == 0 ? " " : "_odd ") +
                           std::to_string(launches);
  CALLGRIND_ZERO_STATS;
  call();
  CALLGRIND_DUMP_STATS_AT(what.c_str());
  if (!ok) { std::printf("failed: %s\n", what.c_str()); }
}

template <class Codec>
void count_all(char const* name, Codec const& codec)
{
  for (std::uint64_t const n : {1 << 12, 1 << 16, 1 << 20}) { count(name, codec, n, 1, 64); }
  for (std::size_t const tensors : {40, 400}) { count(name, codec, 1 << 20, tensors, 64); }
  count(name, codec, 1 << 20, 400, 63);
}

}  // namespace

int main()
{
  count_all("fp16", presets::fp16);
  count_all("rotated_sat4", presets::rotated_sat4);
  count_all("rotated_sat4_ef", presets::rotated_sat4_ef);
  count_all("two_shot_4", presets::two_shot_4);
  count_all("topkc_b2", presets::topkc_b2);
  count_all("allocated_sat_4", presets::allocated_sat_4);
  count_all("powersgd_r4", presets::powersgd_r4);
}
