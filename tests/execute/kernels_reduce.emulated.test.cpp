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
#include <deque>
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

// The exact sum of one lane over the ranks, clamped once.
template <int Bits>
[[nodiscard]] std::uint32_t clamped_sum(std::span<std::uint32_t const> words)
{
  constexpr int limit  = (1 << (Bits - 1)) - 1;
  std::uint32_t result = 0;
  for (int at = 0; at < 32; at += Bits) {
    int sum = 0;
    for (std::uint32_t const word : words) {
      int const lane = static_cast<int>(word >> at & ((1U << Bits) - 1));
      sum += lane > limit ? lane - (1 << Bits) : lane;
    }
    auto const lane = static_cast<std::uint32_t>(std::clamp(sum, -limit, limit));
    result |= (lane & ((1U << Bits) - 1)) << at;
  }
  return result;
}

template <int Bits, int Ranks>
void compare_reduce_once()
{
  CAPTURE(Bits);
  CAPTURE(Ranks);
  for (std::size_t const count :
       {std::size_t{0}, std::size_t{1}, std::size_t{256}, std::size_t{259}}) {
    CAPTURE(count);
    std::deque<host_buffer> buffers;
    std::vector<std::vector<std::uint32_t>> words;
    detail::rank_arrays<word4, Ranks> arrays{};
    for (unsigned rank = 0; rank < Ranks; ++rank) {
      words.push_back(random_elements<std::uint32_t>(4 * count, 10 + rank));
      // Some words stand at an end on every rank, where the fields are fullest.
      for (std::size_t i = 0; i < 4 * count; i += 7) {
        words.back()[i] = i % 2 == 0 ? packed_codes<Bits>::signs : ~packed_codes<Bits>::signs;
      }
      buffers.emplace_back(16 * count, 0, std::byte{0})
        .write(std::as_bytes(std::span{words.back()}));
      arrays.array[rank] = elements<word4>(buffers.back());
    }
    std::vector<std::uint32_t> exact, once;
    for (std::size_t i = 0; i < 4 * count; ++i) {
      std::vector<std::uint32_t> of_ranks;
      saturate_once<Bits> sum;
      for (auto const& rank : words) {
        of_ranks.push_back(rank[i]);
        sum.add(rank[i]);
      }
      exact.push_back(clamped_sum<Bits>(of_ranks));
      once.push_back(sum.result(Ranks));
    }
    CHECK(once == exact);
    for (emulator::thread_order const order : emulator::thread_orders) {
      CAPTURE(order);
      host_buffer const to{16 * count, 0, std::byte{0xa5}};
      emulated_executor{order}.template reduce_once<Bits, Ranks>(
        elements<word4>(to), arrays, count);
      std::vector<std::uint32_t> got(4 * count);
      std::copy_n(to.contents().data(), 16 * count, std::as_writable_bytes(std::span{got}).data());
      CHECK(got == exact);
    }
  }
}

TEST_CASE("[kernels] the sum of all ranks, saturated once")
{
  compare_reduce_once<2, 1>();
  compare_reduce_once<2, 42>();
  compare_reduce_once<2, 85>();
  compare_reduce_once<4, 2>();
  compare_reduce_once<4, 8>();
  compare_reduce_once<4, 9>();
  compare_reduce_once<4, 17>();
  compare_reduce_once<8, 3>();
  compare_reduce_once<8, 128>();
  compare_reduce_once<8, 257>();
}

}  // namespace
