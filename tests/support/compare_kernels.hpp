// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The comparison of kernel bodies with the CPU executor.

#pragma once

#include "emulated_executor.hpp"
#include "exchange_fixture.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>

namespace tersum::tests {

inline constexpr std::array forward_only{emulator::forward};

//! Where a codec has many cases: the orders of threads take turns from case to case.
[[nodiscard]] inline emulator::thread_order next_order()
{
  static std::size_t cases = 0;
  return emulator::thread_orders[cases++ % emulator::thread_orders.size()];
}

//! A prime of coordinates: more chunks than a block takes, and a tail.
template <class Codec>
[[nodiscard]] std::uint64_t several_chunks()
{
  // Up to 1024 coordinates in a chunk a block takes 4096 of them, above it takes one chunk.
  constexpr std::uint64_t size = Codec::chunk_size;
  return prime_from(size > 1024 ? 2 * size + 1 : 4096 + size + 1);
}

//! @brief A case of any codec: what compares executors is compiled once for all of them.
class any_case {
 public:
  [[nodiscard]] virtual exchange_trace record(cpu_executor exec, std::byte fill) const      = 0;
  [[nodiscard]] virtual exchange_trace record(emulated_executor exec, std::byte fill) const = 0;

  friend std::ostream& operator<<(std::ostream& out, any_case const& c) { return c.print(out); }

 private:
  virtual std::ostream& print(std::ostream& out) const = 0;
};

template <class Codec, class Given, class Got = Given>
class case_of final : public any_case {
 public:
  explicit case_of(exchange_case<Codec, Given, Got> const& c) : case_{c} {}

  [[nodiscard]] exchange_trace record(cpu_executor exec, std::byte fill) const override
  {
    return record_exchange<host_buffer>(exec, case_, fill);
  }
  [[nodiscard]] exchange_trace record(emulated_executor exec, std::byte fill) const override
  {
    return record_exchange<host_buffer>(exec, case_, fill);
  }

 private:
  std::ostream& print(std::ostream& out) const override { return out << case_; }

  exchange_case<Codec, Given, Got> const& case_;
};

//! @brief Checks that the kernel bodies, in some thread orders, all instruction sets and several threads of the CPU give the same bytes.
inline void compare_kernels(any_case const& c, std::span<emulator::thread_order const> orders)
{
  CAPTURE(c);
  auto const on = [&](auto const& exec) { return c.record(exec, std::byte{0xa5}); };
  exchange_trace const reference = c.record(reference_executor, std::byte{0x5a});
  check_instruction_sets(on, reference);
  CHECK(difference(on(cpu_executor{.threads = 3}), reference) == "");
  for (emulator::thread_order const order : orders) {
    CAPTURE(order);
    CHECK(difference(on(emulated_executor{order}), reference) == "");
  }
}

template <class Codec, class Given, class Got = Given>
void compare_kernels(exchange_case<Codec, Given, Got> const& c,
                     std::span<emulator::thread_order const> orders = forward_only)
{
  compare_kernels(case_of<Codec, Given, Got>{c}, orders);
}

//! @brief One vector of each awkward size: nothing, one, around a chunk, several blocks of chunks and a tail. World sizes
//! 1 to 4 take turns as far as the reducer allows them; two of the sizes are misaligned.
template <class Element, class Codec>
void compare_sizes(Codec const& codec)
{
  constexpr std::uint64_t size = Codec::chunk_size;
  struct shape {
    std::uint64_t coordinates;
    int world;
    bool misaligned;
  };
  for (auto const [coordinates, world, misaligned] : {shape{0, 2, false},
                                                      shape{1, 3, false},
                                                      shape{size - 1, 2, false},
                                                      shape{size, 1, false},
                                                      shape{size + 1, 2, true},
                                                      shape{several_chunks<Codec>(), 2, false},
                                                      shape{several_chunks<Codec>(), 3, true}}) {
    compare_kernels<Codec, Element>({.codec      = codec,
                                     .gradient   = {.coordinates = coordinates},
                                     .world      = world,
                                     .steps      = 2,
                                     .misaligned = misaligned});
  }
}

//! @brief Whatever arrives in any round, kernel bodies and CPU read and write the memory of the plan alone. The bytes are not
//! compared: norms that are not those of the values take codes beyond where conversions to integers agree.
template <class Element, class Codec>
void exchange_hostile(Codec const& codec)
{
  exchange_case<Codec, Element> const c{
    .codec = codec, .gradient = {.coordinates = several_chunks<Codec>()}, .hostile = true};
  case_of<Codec, Element> const hostile{c};
  for (int set = 0; set <= static_cast<int>(best_instruction_set()); ++set) {
    static_cast<void>(
      hostile.record(cpu_executor{.threads = 1, .instructions = static_cast<instruction_set>(set)},
                     std::byte{0xa5}));
  }
  for (emulator::thread_order const order : forward_only) {
    static_cast<void>(hostile.record(emulated_executor{order}, std::byte{0xa5}));
  }
}

//! @brief More chunks than a block takes, in all thread orders; with `non_finite` a NaN and an Inf in the middle step.
//! Then once more among hostile ranks.
template <class Element, class Codec>
void compare_orders(Codec const& codec, int world = 2, bool non_finite = false)
{
  exchange_hostile<Element>(codec);
  compare_kernels<Codec, Element>({.codec           = codec,
                                   .gradient        = {.coordinates = several_chunks<Codec>()},
                                   .world           = world,
                                   .steps           = non_finite ? 3 : 2,
                                   .non_finite_step = non_finite ? 1 : -1},
                                  emulator::thread_orders);
}

//! @brief A bucket with tensors that bypass: aligned, then misaligned with values that are not finite.
template <class Element, class Codec>
void compare_buckets(Codec const& codec)
{
  compare_kernels<Codec, Element>(
    {.codec = codec, .gradient = odd_bucket().gradient(), .steps = 2});
  compare_kernels<Codec, Element>({.codec           = codec,
                                   .gradient        = odd_bucket().gradient(),
                                   .misaligned      = true,
                                   .non_finite_step = 1});
}

//! @brief Wherever a gradient begins, CPU and kernels give it the bytes that they give an aligned one.
template <class Element, class Codec>
void compare_offsets(Codec const& codec)
{
  exchange_trace aligned[2];
  for_each_offset<Element>(codec, [&](exchange_case<Codec, Element> c) {
    auto const record = [&](bool in_kernels) {
      case_of<Codec, Element> const one{c};
      return in_kernels ? one.record(emulated_executor{}, std::byte{0xa5})
                        : one.record(cpu_executor{.threads = 1}, std::byte{0x5a});
    };
    exchange_trace const got[2] = {record(false), record(true)};
    c.misaligned                = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      if (aligned[i].empty()) { aligned[i] = record(i != 0); }
      CHECK(difference(got[i], aligned[i]) == "");
    }
  });
}

//! @brief What depends on where a chunk lies: thread orders, with values that are not finite, and buckets.
template <class Element, class Codec>
void compare_places(Codec const& codec)
{
  compare_orders<Element>(codec, 3, true);
  compare_buckets<Element>(codec);
}

template <class Element, class Codec>
void compare_all(Codec const& codec)
{
  compare_sizes<Element>(codec);
  compare_places<Element>(codec);
}

//! @brief One vector in all sizes, and in all thread orders with values that are not finite in one of three steps.
template <class Codec>
void compare_preset(Codec const& codec)
{
  compare_sizes<float>(codec);
  compare_orders<float>(codec, 3, true);
}

}  // namespace tersum::tests
