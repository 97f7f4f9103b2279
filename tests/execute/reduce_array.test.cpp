// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

#include <tersum/execute/cpu_executor.hpp>
#include <tersum/reduce/detail/reduce_shares.hpp>
#include <tersum/reduce/saturating_segments.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <string_view>
#include <vector>

namespace {

using namespace tersum;
using words = std::vector<std::uint32_t>;

TEST_CASE("[reduce_array] shares cover the items once, in whole units, one for each thread")
{
  for (std::uint64_t const count : {0u, 1u, 15u, 16u, 17u, 99u, 100u, 101u, 1024u, 99991u}) {
    for (int const threads : {1, 2, 3, 8}) {
      CAPTURE(count);
      CAPTURE(threads);
      std::mutex mutex;
      std::vector<int> seen(count);
      std::size_t shares = 0, shortest = count;
      detail::each_share(threads, count, 100, 16, [&](std::uint64_t first, std::uint64_t last) {
        std::scoped_lock const lock{mutex};
        ++shares;
        shortest = std::min<std::size_t>(shortest, last - first);
        CHECK(first % 16 == 0);
        CHECK((last % 16 == 0 || last == count));
        for (std::uint64_t i = first; i < last; ++i) { ++seen.at(i); }
      });
      CHECK(seen == std::vector<int>(count, 1));
      CHECK(shares <= static_cast<std::size_t>(threads));
      if (count <= 100) { CHECK(shares == (count > 0 ? 1 : 0)); }
      if (count == 99991) {
        CHECK(shares == static_cast<std::size_t>(threads));
        CHECK(shortest + shares * 16 >= count / shares);
      }
    }
  }
}

TEST_CASE("[reduce_array] each word is added with the lanes of its level, on any number of threads")
{
  // Levels begin at odd places, in the middle of a thread's share and of a vector; the whole is an array's second part.
  constexpr std::size_t count = 99991, skipped = 1003;
  detail::selection_header parts{};
  parts.base[3]                         = 0;
  parts.base[2]                         = 40007;
  parts.base[1]                         = 40019;
  saturating_segments<2, 4, 8> const op = saturating_segments<2, 4, 8>{&parts, 0}.from(skipped);
  words a(count), b(count), expected(count);
  std::mt19937 random{5};
  for (std::size_t i = 0; i < count; ++i) {
    a[i]                = static_cast<std::uint32_t>(random());
    b[i]                = static_cast<std::uint32_t>(random());
    std::size_t const k = i + skipped;
    expected[i]         = k < 40007   ? saturating_add<8>{}(a[i], b[i])
                          : k < 40019 ? saturating_add<4>{}(a[i], b[i])
                                      : saturating_add<2>{}(a[i], b[i]);
  }
  for (auto const set :
       {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
    if (set > best_instruction_set()) { continue; }
    for (int const threads : {1, 2, 3, 7}) {
      CAPTURE(threads);
      words sum(count), in_place = a;
      detail::reduce_array(threads, set, op, sum.data(), a.data(), b.data(), count);
      detail::reduce_array(threads, set, op, in_place.data(), in_place.data(), b.data(), count);
      CHECK(sum == expected);
      CHECK(in_place == expected);
    }
  }
}

TEST_CASE("[reduce_array] an executor without threads adds nothing and says so")
{
  for (int const threads : {-1, 0, 4097}) {
    cpu_executor const exec{.threads = threads};
    words a{1, 2}, items{0, 0};
    status const sum  = exec.reduce(native_sum<std::uint32_t>{}, a.data(), a.data(), a.data(), 2);
    status const each = exec.each([&](auto const&, std::size_t i) { items[i] = 1; }, 2);
    for (status const& s : {sum, each}) {
      CHECK(s.code == error_code::invalid_argument);
      CHECK(s.message.find("threads") != std::string_view::npos);
    }
    CHECK(a == words{1, 2});
    CHECK(items == words{0, 0});
  }
}

template <class Element>
void compare_conversions()
{
  // Every element in float, and the floats beside it and halfway to its neighbours.
  std::vector<float> floats;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    std::uint32_t const word =
      detail::float_bits(to_float(Element::from_bits(static_cast<std::uint16_t>(bits))));
    for (std::uint32_t const step :
         {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u}) {
      floats.push_back(detail::bits_float(word + step));
    }
  }
  floats.resize(floats.size() - 3);
  for (auto const set :
       {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
    if (set > best_instruction_set()) { continue; }
    CAPTURE(set);
    std::vector<Element> to(floats.size());
    std::vector<float> back(floats.size());
    CHECK_FALSE(detail::convert_values(set, floats.data(), to.data(), 1.0f, floats.size()));
    CHECK_FALSE(detail::convert_values(set, to.data(), back.data(), 1.0f, floats.size()));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < floats.size(); ++i) {
      Element const expected = from_float<Element>(floats[i]);
      // What a product by 1 makes of a NaN's payload is the processor's.
      bool const nan = std::isnan(floats[i]);
      wrong += to[i].bits != expected.bits || std::isnan(back[i]) != nan ||
               (!nan && detail::float_bits(back[i]) != detail::float_bits(to_float(expected)));
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("[reduce_array] conversions of all instruction sets have the bits of one element's")
{
  SUBCASE("half") { compare_conversions<half>(); }
  SUBCASE("bfloat16") { compare_conversions<bfloat16>(); }
}

}  // namespace
