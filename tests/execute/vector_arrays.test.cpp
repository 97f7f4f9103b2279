// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/metric/diagonal.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace {

using namespace tersum;

constexpr float infinity   = std::numeric_limits<float>::infinity();
constexpr float specials[] = {0.0f,
                              -0.0f,
                              1e-42f,
                              -1e-42f,
                              65504.0f,
                              65519.0f,
                              -65520.0f,
                              1.9e5f,
                              -1048575.0f,
                              1048576.0f,
                              1e30f,
                              1.7e38f,
                              -3.4e38f,
                              3.4e38f,
                              infinity,
                              -infinity};

// Numbers of all sizes, with special ones between.
std::vector<float> values(std::size_t count, unsigned seed)
{
  std::mt19937 random{seed};
  std::vector<float> v(count);
  for (float& x : v) {
    std::uint32_t const bits = static_cast<std::uint32_t>(random());
    x                        = bits % 4 == 0 ? specials[bits / 4 % std::size(specials)]
                                             : std::ldexp(static_cast<float>(bits % 2001) - 1000.0f,
                                   static_cast<int>(bits / 65536 % 40) - 30);
  }
  return v;
}

template <class Check>
void for_each_setting(Check const& check)
{
  for (auto const set :
       {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
    if (set > best_instruction_set()) { continue; }
    for (std::size_t const count : {0u, 1u, 3u, 4u, 7u, 8u, 15u, 16u, 17u, 31u, 33u, 1021u}) {
      CAPTURE(set);
      CAPTURE(count);
      check(set, count);
    }
  }
}

template <class Element>
void compare_sums_with_residuals()
{
  for_each_setting([](instruction_set set, std::size_t count) {
    std::vector<float> const a = values(count, 1), residual = values(count, 2);
    std::vector<Element> from;
    for (float const v : a) { from.push_back(from_float<Element>(v)); }
    std::vector<float> to(count + 1, 7.0f);
    detail::add_residual(set, from.data(), residual.data(), to.data(), count);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      float const expected = to_float(from[i]) + residual[i];
      bool const nan       = expected != expected;
      wrong += nan ? to[i] == to[i] : detail::float_bits(to[i]) != detail::float_bits(expected);
    }
    CHECK(wrong == 0);
    CHECK(to[count] == 7.0f);
  });
}

TEST_CASE("[vector_arrays] a gradient and its residual are added in float")
{
  SUBCASE("float") { compare_sums_with_residuals<float>(); }
  SUBCASE("half") { compare_sums_with_residuals<half>(); }
  SUBCASE("bfloat16") { compare_sums_with_residuals<bfloat16>(); }
}

// What feedback sends of a gradient and its residual, and below which magnitude of the gradient: 2^20, or bfloat16s.
struct sent_and_kept {
  float sent;
  bool sendable;
};

template <class Sent>
sent_and_kept send(float gradient, float whole, float largest)
{
  bool const sendable =
    std::abs(gradient) < std::ldexp(1.0f, std::is_same_v<Sent, half> ? 20 : 127);
  float const bounded = std::fmin(std::fmax(whole, -largest), largest);
  return {sendable ? to_float(from_float<Sent>(bounded)) : std::nanf(""), sendable};
}

template <class Sent>
void compare_sent()
{
  for_each_setting([&](instruction_set set, std::size_t count) {
    std::vector<float> const whole = values(count, 3), gradient = values(count, 5);
    for (float const largest : {65504.0f, 4096.0f, 992.0f}) {
      std::vector<Sent> sent(count + 1, Sent::from_bits(7));
      detail::convert_sendable(set, gradient.data(), whole.data(), largest, sent.data(), count);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < count; ++i) {
        sent_and_kept const expected = send<Sent>(gradient[i], whole[i], largest);
        float const got              = to_float(sent[i]);
        bool const number            = expected.sent == expected.sent;
        wrong += number ? got != expected.sent : got == got;
      }
      CHECK(wrong == 0);
      CHECK(sent[count].bits == 7);
    }
  });
}

TEST_CASE(
  "[vector_arrays] feedback sends the largest summand where a value is finite and beyond it")
{
  SUBCASE("half") { compare_sent<half>(); }
  SUBCASE("bfloat16") { compare_sent<bfloat16>(); }
}

template <class Sent>
void compare_rests(bool sends)
{
  for_each_setting([&](instruction_set set, std::size_t count) {
    std::vector<float> const whole = values(count, 3), gradient = values(count, 5),
                             before = values(count + 1, 4);
    std::vector<Sent> sent;
    for (std::size_t i = 0; i < count; ++i) {
      sent.push_back(from_float<Sent>(send<Sent>(gradient[i], whole[i], 4096.0f).sent));
    }
    std::vector<float> residual = before;
    detail::keep_finite_residual(set,
                                 gradient.data(),
                                 whole.data(),
                                 sends ? sent.data() : nullptr,
                                 detail::kept_at<float>{residual.data(), 0},
                                 count);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      float const rest = sends ? whole[i] - to_float(sent[i]) : whole[i];
      bool const known = send<Sent>(gradient[i], whole[i], 4096.0f).sendable && std::isfinite(rest);
      float const expected = known ? rest : before[i];
      wrong += detail::float_bits(residual[i]) != detail::float_bits(expected);
    }
    CHECK(wrong == 0);
    CHECK(detail::float_bits(residual[count]) == detail::float_bits(before[count]));
  });
}

TEST_CASE("[vector_arrays] what was not sent is kept, unless nothing could be sent")
{
  SUBCASE("half") { compare_rests<half>(true); }
  SUBCASE("bfloat16") { compare_rests<bfloat16>(true); }
  SUBCASE("nothing sent") { compare_rests<half>(false); }
}

// Vectors divide by a product and two fused additions; what they should be is said by the metric's plain form.
TEST_CASE("[vector_arrays] scales follow what was decoded as the plain form says")
{
  constexpr int count = 1 << 14;
  std::mt19937 random{5};
  std::vector<float> decoded = values(count, 3);
  for (std::size_t i = 0; i < decoded.size(); i += 2) {
    decoded[i] = std::ldexp(1.0f + static_cast<float>(random() >> 9) * 0x1p-23f,
                            static_cast<int>(random() % 16) - 12);
  }
  decoded[1] = -1.0f;
  decoded[3] = 1.0f + 0x1p-23f;
  decoded[5] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> kept(count);
  for (float& scale : kept) { scale = std::ldexp(static_cast<float>(random() % 4096), -30); }
  constexpr float least = 0x1p-26f;
  kept_diagonal const metric{.prior = 1, .horizon = 0x1p59f};
  for (float const before : {0.0f, 2.0f, 98.0f, 0x1.36a2b4p9f, 16777212.0f, 0x1.fffffep50f}) {
    float const steps = metric.steps_averaged(before);
    std::vector<float> means(count), scales(count);
    for (std::size_t i = 0; i < count; ++i) {
      float const raised = std::max(kept[i], least);
      float const next   = metric.update(host_group{}, decoded[i], raised, before);
      means[i]           = decoded[i] * raised;
      scales[i]          = std::isfinite(next) ? next : kept[i];
    }
    for (auto const set :
         {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
      if (set > best_instruction_set()) { continue; }
      CAPTURE(set);
      CAPTURE(before);
      std::vector<float> to(count);
      std::vector<float> follow = kept;
      detail::multiplied<float, float, true> const whole{
        to.data(), follow.data(), least, steps, 1.0f / steps, 0};
      detail::store_whole(set, decoded.data(), whole, count);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < count; ++i) {
        bool const same = to[i] == means[i] || (std::isnan(to[i]) && std::isnan(means[i]));
        wrong += same && detail::float_bits(follow[i]) == detail::float_bits(scales[i]) ? 0 : 1;
      }
      CHECK(wrong == 0);
    }
  }
}

}  // namespace
