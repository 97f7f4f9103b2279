// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Sixteen values to codes and words in kernels, on GPUs with an addition that clamps and without, against the quantizer.

#include "support/codecs.hpp"
#include "support/emulator.hpp"
#include "support/mismatches.hpp"

#include <tersum/quantize/detail/block_decode.hpp>
#include <tersum/quantize/detail/block_encode.hpp>
#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <random>
#include <vector>

namespace {

using namespace tersum;
using emulator::host_context;
using tersum::tests::mismatches;

// As on sm_80.
struct without_clamp : host_context {
  explicit without_clamp(host_context const& ctx) : host_context{ctx} {}
  static constexpr bool clamps_at_once = false;
};

template <quantizer Quantizer, reducer Reducer>
using codec_of = tests::rotated_sums<1024, rms_range<no_headroom>, Quantizer, Reducer>;

// Ties, their neighbours and both ends of the grid, what is just beyond, and all that may come, in units of the grid.
template <class Quantizer>
std::vector<float> samples(std::mt19937& random)
{
  constexpr int unit = 1 << Quantizer::fraction_bits;
  std::vector<float> all;
  for (int half = -2 * (Quantizer::max_level + 2); half <= 2 * (Quantizer::max_level + 2); ++half) {
    for (float const off : {-1.0f, -0.5f, 0.0f, 0.5f, 1.0f}) {
      float const tie = static_cast<float>(half) * 0.5f * unit + off;
      all.insert(all.end(), {tie, std::nextafter(tie, -1e9f), std::nextafter(tie, 1e9f)});
    }
  }
  for (float const far : {0x1p15f, 0x1p16f, 0x1p22f, 0x1p23f, 0x1.0001p23f}) {
    all.insert(all.end(), {far, -far, far - unit, unit - far});
  }
  std::uniform_real_distribution<float> any(-1.0f, 1.0f);
  for (int i = 0; i < 4000; ++i) {
    all.push_back(any(random) * static_cast<float>((Quantizer::max_level + 1) * unit));
  }
  while (all.size() % 16 != 0) { all.push_back(0.0f); }
  return all;
}

template <class Context, class Quantizer, class Reducer>
void compare(mismatches& wrong, Quantizer const& rounds, Reducer const&)
{
  using codec_type = codec_of<Quantizer, Reducer>;
  using lanes      = typename codec_type::lanes;
  using dither     = typename codec_type::dither_type;
  codec_type const codec{};
  std::mt19937 random(67);
  dither_key const key{.seed = 71, .step = 5, .rank = 3};
  constexpr float scale = 1.5f;
  auto const values     = samples<Quantizer>(random);
  std::uint32_t mask    = 0;
  if constexpr (dither::rounds > 0) { mask = dither::mask(key); }
  // Only lanes that hold values of a table ask each other; then all of them round the same values.
  constexpr bool asks = detail::on_ramps<Quantizer>;
  emulator::launch({}, emulator::forward, [&](host_context& ctx) {
    if (!asks && ctx.thread_rank() != 0) { return; }
    Context const here{ctx};
    for (std::uint64_t draw = 0; draw < values.size() / 16; ++draw) {
      float v[16];
      for (int i = 0; i < 16; ++i) { v[i] = values[draw * 16 + static_cast<unsigned>(i)] / scale; }
      std::uint32_t fields[8], words[lanes::bits / 2];
      detail::round_sixteen(here, codec, key, mask, draw, scale, v, fields);
      detail::pack_fields<codec_type>(here, fields, words);
      if (ctx.thread_rank() != 0) { continue; }
      for (int i = 0; i < 16; ++i) {
        std::uint32_t byte = 0;
        if constexpr (dither::rounds > 0) {
          byte = dither_byte<dither>(draw * 16 + static_cast<unsigned>(i), key);
        }
        std::int32_t const code = rounds.encode(v[i], scale, byte);
        std::int32_t got        = lanes::get(words[i / lanes::lanes], i % lanes::lanes);
        // Lanes that are not signed hold code + max_level.
        if (Reducer::biased) { got = (got & static_cast<int>(lanes::full)) - Quantizer::max_level; }
        wrong.expect(got, code, Quantizer::max_level, lanes::bits, v[i], byte);
        float const value = detail::rounded_value<codec_type, Context>(fields, i);
        wrong.expect(value, static_cast<float>(code), v[i], byte);
      }
    }
  });
}

template <class Context>
mismatches compare_all()
{
  mismatches wrong;
  compare<Context>(wrong, stochastic_quantizer<2>{}, saturating_sum<2>{});
  compare<Context>(wrong, stochastic_quantizer<4>{}, saturating_sum<4>{});
  compare<Context>(wrong, stochastic_quantizer<8>{}, saturating_sum<8>{});
  compare<Context>(wrong, stochastic_quantizer<4, independent>{}, widening_sum<4, 8>{});
  compare<Context>(wrong, stochastic_quantizer<8>{}, widening_sum<8, 16>{});
  compare<Context>(wrong, stochastic_quantizer<2>{}, guard_lanes<4>{});
  compare<Context>(wrong, stochastic_quantizer<2>{}, guard_lanes<8>{});
  compare<Context>(wrong, nearest_quantizer<2>{}, saturating_sum<2>{});
  compare<Context>(wrong, nearest_quantizer<4>{}, saturating_sum<4>{});
  compare<Context>(wrong, nearest_quantizer<8>{}, saturating_sum<8>{});
  compare<Context>(wrong, nearest_quantizer<8>{}, widening_sum<8, 16>{});
  compare<Context>(wrong, nearest_quantizer<2>{}, guard_lanes<4>{});
  compare<Context>(wrong, lookup_quantizer<thc_table_42, independent>{}, widening_sum<6, 8>{});
  compare<Context>(wrong, lookup_quantizer<thc_table_30>{}, widening_sum<5, 16>{});
  // Ramps of one slope, and of a table whose gaps have too large a multiple: that one is searched.
  compare<Context>(wrong, lookup_quantizer<lookup_table<0, 1, 3, 4>>{}, widening_sum<3, 8>{});
  using odd = lookup_table<0, 7, 12, 15, 17, 20, 25, 32>;
  static_assert(!detail::on_ramps<lookup_quantizer<odd>>);
  compare<Context>(wrong, lookup_quantizer<odd>{}, widening_sum<6, 8>{});
  return wrong;
}

TEST_CASE("[kernels] sixteen values become the quantizer's codes in the lanes of their words")
{
  CHECK(compare_all<host_context>().report() == "");
}

TEST_CASE("[kernels] they do without an addition that clamps")
{
  static_assert(detail::clamps_at_once<host_context> && !detail::clamps_at_once<without_clamp>);
  CHECK(compare_all<without_clamp>().report() == "");
}

template <class Quantizer, class Feedback>
using of_widths = codec<allocated_chunks<256, 2, 4, 8>,
                        partial_hadamard<256>,
                        summed_codes<rms_range<tracked_correlation>, Quantizer, saturating_sum<8>>,
                        in_wire,
                        Feedback>;

// A level of 32 values rounded by a codec of several widths: the words, and what feedback is told.
template <class Context, class Codec, std::uint32_t Level>
void compare_level(mismatches& wrong)
{
  using level_codec = decltype(Codec{}.template at_level<Level>());
  using quantizer   = typename level_codec::quantizer_type;
  using lanes       = typename level_codec::lanes;
  static_assert(detail::rounds_alike<Codec, Context>());
  std::mt19937 random(67 + Level);
  dither_key const key{.seed = 71, .step = 5, .rank = 3};
  auto const values     = samples<quantizer>(random);
  constexpr float scale = 1.5f;
  std::uint32_t mask    = 0;
  if constexpr (Codec::dither_type::rounds > 0) { mask = Codec::dither_type::mask(key); }
  emulator::launch({}, emulator::forward, [&](host_context& ctx) {
    if (ctx.thread_rank() != 0) { return; }
    Context const here{ctx};
    for (std::uint64_t number = 0; number < values.size() / 32; ++number) {
      float v[32];
      for (unsigned i = 0; i < 32; ++i) { v[i] = values[number * 32 + i] / scale; }
      for (float const step : {scale, 0.0f}) {
        float rounded[32];
        std::copy(std::begin(v), std::end(v), rounded);
        int calls = 0;
        detail::encode_on_level(
          here, Codec{}, Level, key, mask, number, step, rounded, [&](auto const& words) {
            ++calls;
            wrong.expect(static_cast<int>(std::size(words)), int{lanes::bits}, number);
            for (int i = 0; i < 32; ++i) {
              std::uint32_t byte = 0;
              if constexpr (Codec::dither_type::rounds > 0) {
                byte = dither_byte<typename Codec::dither_type>(
                  number * 32 + static_cast<unsigned>(i), key);
              }
              std::int32_t const code = quantizer{}.encode(v[i], scale, byte);
              std::int32_t const got  = lanes::get(words[i / lanes::lanes], i % lanes::lanes);
              wrong.expect(got, step > 0 ? code : 0, lanes::bits, v[i], byte);
              if (step > 0) {
                wrong.expect(rounded[i], static_cast<float>(code), lanes::bits, v[i], byte);
              }
            }
          });
        wrong.expect(calls, 1, number);
      }
      detail::encode_on_level(here, Codec{}, 0, key, mask, number, scale, v, [&](auto const&) {
        wrong.expect(true, false, number);
      });
    }
  });
}

template <class Context, class Quantizer>
void compare_levels(mismatches& wrong)
{
  using codec_type = of_widths<Quantizer, error_feedback>;
  compare_level<Context, codec_type, 1>(wrong);
  compare_level<Context, codec_type, 2>(wrong);
  compare_level<Context, codec_type, 3>(wrong);
}

TEST_CASE("[kernels] threads with several widths round together to the codes of each")
{
  mismatches wrong;
  compare_levels<host_context, stochastic_quantizer<8>>(wrong);
  compare_levels<host_context, nearest_quantizer<8>>(wrong);
  compare_levels<without_clamp, stochastic_quantizer<8>>(wrong);
  compare_levels<without_clamp, nearest_quantizer<8>>(wrong);
  CHECK(wrong.report() == "");
}

// Lanes of any bits, the lowest code too, which no sum has.
template <int Bits>
void compare_bytes(mismatches& wrong)
{
  using lanes = packed_codes<Bits>;
  std::mt19937 random(73 + Bits);
  emulator::launch({}, emulator::forward, [&](host_context& ctx) {
    if (ctx.thread_rank() != 0) { return; }
    for (int round = 0; round < 1000; ++round) {
      std::uint32_t words[Bits];
      for (auto& word : words) { word = static_cast<std::uint32_t>(random()); }
      detail::byte_codes codes{};
      codes.take<lanes>(ctx, words);
      std::uint32_t squares = 3, at_limit = 5, want_squares = 3, want_at_limit = 5;
      codes.inspect(ctx, squares, at_limit);
      float v[32];
      codes.to_floats(ctx, v);
      for (int i = 0; i < 32; ++i) {
        std::int32_t const code = lanes::get(words[i / lanes::lanes], i % lanes::lanes);
        want_squares += static_cast<std::uint32_t>(code * code);
        want_at_limit += std::abs(code) >= lanes::limit ? 1u : 0u;
        wrong.expect(v[i] - detail::byte_codes::zero, static_cast<float>(code), Bits, round, i);
      }
      wrong.expect(squares, want_squares, Bits, round);
      wrong.expect(at_limit, want_at_limit, Bits, round);
    }
  });
}

TEST_CASE("[kernels] lanes of several widths become bytes in the order of the wire")
{
  mismatches wrong;
  compare_bytes<2>(wrong);
  compare_bytes<4>(wrong);
  compare_bytes<8>(wrong);
  CHECK(wrong.report() == "");
  // Nothing has been taken: zeros, none of them at a limit.
  emulator::launch({}, emulator::forward, [&](host_context& ctx) {
    if (ctx.thread_rank() != 0) { return; }
    detail::byte_codes const none{};
    std::uint32_t squares = 0, at_limit = 0;
    none.inspect(ctx, squares, at_limit);
    float v[32];
    none.to_floats(ctx, v);
    CHECK(squares + at_limit == 0);
    CHECK(std::count(std::begin(v), std::end(v), detail::byte_codes::zero) == 32);
  });
}

}  // namespace
