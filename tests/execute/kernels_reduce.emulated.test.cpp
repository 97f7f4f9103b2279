// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The reduction kernels against the reductions themselves, element by element.

#include "support/emulated_executor.hpp"
#include "support/exchange_fixture.hpp"

#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

namespace {

using namespace tersum;
using namespace tersum::tests;

template <class T>
[[nodiscard]] T* elements(host_buffer const& buffer)
{
  return reinterpret_cast<T*>(buffer.contents().data());
}

// Any bits that are no NaN: NaNs have many bit patterns, and none reaches a reduction but those of a cast's gradient.
template <class T>
[[nodiscard]] std::vector<T> random_elements(std::size_t count, unsigned seed)
{
  std::mt19937 random(seed);
  std::vector<T> all(count);
  while (count > 0) {
    auto const bits = static_cast<std::uint32_t>(random());
    T value;
    std::memcpy(&value, &bits, std::min(sizeof(value), sizeof(bits)));
    if constexpr (sizeof(T) == 8) { value = static_cast<T>(random()) << 32 | bits; }
    if constexpr (!std::is_integral_v<T>) {
      if (to_float(value) != to_float(value)) { continue; }
    }
    all[--count] = value;
  }
  return all;
}

template <class Op>
void compare_reduction(emulated_executor const& exec)
{
  using element        = typename Op::element;
  std::size_t const in = 16 / sizeof(element);  // elements of an access
  // The first kernel takes 1024 accesses a block, the second 256 elements.
  for (std::size_t const count : {std::size_t{0},
                                  std::size_t{1},
                                  in - 1,
                                  in,
                                  in + 1,
                                  255 * in + 3,
                                  1024 * in,
                                  1025 * in + 1}) {
    auto const a = random_elements<element>(count, 1);
    auto const b = random_elements<element>(count, 2);
    std::vector<element> want(count);
    for (std::size_t i = 0; i < count; ++i) { want[i] = Op{}(a[i], b[i]); }
    // Which of the three arrays is misaligned, and whether the result replaces an operand.
    for (unsigned const misaligned : {0U, 1U, 2U, 4U, 7U}) {
      for (int const target : {0, 1, 2}) {
        auto const place = [&](unsigned bit) {
          return (misaligned & bit) != 0 ? sizeof(element) : 0;
        };
        std::size_t const bytes = count * sizeof(element);
        host_buffer first{bytes, place(1), std::byte{0}}, second{bytes, place(2), std::byte{0}},
          third{bytes, place(4), std::byte{0}};
        first.write(std::as_bytes(std::span{a}));
        second.write(std::as_bytes(std::span{b}));
        host_buffer const& to = target == 0 ? third : target == 1 ? first : second;
        REQUIRE(exec.reduce(Op{},
                            elements<element>(to),
                            elements<element>(first),
                            elements<element>(second),
                            count) == status{});
        CAPTURE(count);
        CAPTURE(misaligned);
        CAPTURE(target);
        auto const bytes_wanted = std::as_bytes(std::span{want});
        CHECK(to.read(0, bytes) == byte_string(bytes_wanted.begin(), bytes_wanted.end()));
      }
    }
  }
}

TEST_CASE_TEMPLATE("[kernels] reductions of two arrays at any address and of any length",
                   Op,
                   saturating_add<2>,
                   saturating_add<4>,
                   saturating_add<8>,
                   saturating_add<16>,
                   native_sum<std::int8_t>,
                   native_sum<std::int16_t>,
                   native_sum<std::uint32_t>,
                   native_sum<std::uint64_t>,
                   native_sum<float>,
                   native_sum<half>,
                   native_sum<bfloat16>,
                   native_max<float>,
                   native_max<bfloat16>)
{
  for (emulator::thread_order const order : emulator::thread_orders) {
    CAPTURE(order);
    compare_reduction<Op>(emulated_executor{order});
  }
}

}  // namespace
