// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Levels, scales and rounding of blocks against their formulas in double, and their words against plain ones.

#include "group_quantizer_conformance.hpp"
#include "support/coded_chunk.hpp"
#include "support/loopback_run.hpp"
#include "support/sanitized.hpp"

#include <tersum/execute/cpu_executor.hpp>
#include <tersum/presets.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum_baselines/float_levels.hpp>
#include <tersum_baselines/group_absmax.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace tersum;

namespace {

template <class Quantizer>
double level(int i)
{
  return static_cast<double>(Quantizer::level[static_cast<std::size_t>(i)]);
}

// Levels of a caller, each at a distance of its own: the squares of equal distances.
struct square_levels {
  static constexpr bool uniform = false;
  constexpr description describe() const { return {"square_levels"}; }

  [[nodiscard]] static constexpr float level(int i, int last) noexcept
  {
    float const place = static_cast<float>(i) / static_cast<float>(last);
    return place * place;
  }
};

using linear  = group_absmax<4, 16>;
using squares = group_absmax<4, 16, square_levels, bfloat16_scale>;
using wide    = group_absmax<8, 16, square_levels, bfloat16_scale>;
using nearest = group_absmax<3, 64, linear_levels, bfloat16_scale, no_dither>;

TEST_CASE("[group_absmax] levels are those of the formulas, from 0 to 1")
{
  for (int i = 0; i < 8; ++i) {
    CHECK(level<linear>(i) == doctest::Approx(i / 7.0).epsilon(1e-7));
    CHECK(level<squares>(i) == doctest::Approx(i * i / 49.0).epsilon(1e-6));
  }
}

TEST_CASE_TEMPLATE("[group_absmax] levels of one's own obey the laws of quantizers of groups",
                   Quantizer,
                   linear,
                   group_absmax<2, 16>,
                   group_absmax<8, 16>,
                   squares,
                   group_absmax<2, 16, square_levels, bfloat16_scale>,
                   wide)
{
  tests::check_group_quantizer_laws<Quantizer>();
}

// For every random byte, or none, the magnitudes beside every level and beside that from which on it rounds up to the next.
TEST_CASE_TEMPLATE(
  "[group_absmax] vectors round as `round` does, about every place where its result changes",
  Quantizer,
  group_absmax<4, 64, square_levels, bfloat16_scale, no_dither>,
  group_absmax<7, 64, square_levels, bfloat16_scale, no_dither>,
  mx_quantizer<e4m3_levels>,
  mx_quantizer<e2m1_levels>,
  group_absmax<8, 64, natural_levels, bfloat16_scale, no_dither>,
  nvfp4_quantizer,
  group_absmax<4, 128, natural_levels, bfloat16_scale, independent>,
  group_absmax<2, 32, natural_levels, power_of_two_scale, stratified>,
  group_absmax<5, 64, natural_levels>,
  group_absmax<3, 64, square_levels>,
  group_absmax<4, 64>)
{
  constexpr int size   = 512;
  constexpr bool draws = Quantizer::dither::rounds > 0;
  auto const& mark     = Quantizer::mark;
  auto const threshold = [](std::uint32_t byte) { return draws ? 2 * byte + 1 : 256u; };
  float const scaled   = Quantizer::scale::decode(Quantizer::scale::encode(1));
  float const to_one   = static_cast<float>(detail::block_one) / scaled;
  struct rounded {
    float value;
    std::uint8_t byte;
  };
  std::vector<rounded> all;
  for (std::uint32_t byte = 0; byte < (draws ? 256u : 1u); byte += tests::sanitized ? 51u : 1u) {
    for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(Quantizer::magnitudes); ++i) {
      std::uint64_t const gap = mark[i + 1] - mark[i];
      auto const up           = mark[i] + static_cast<std::uint32_t>(gap * threshold(byte) / 512);
      for (std::uint32_t const at : {mark[i], up, mark[i + 1]}) {
        for (std::uint32_t fine = at > 2 ? at - 2 : 0; fine <= at + 2; ++fine) {
          for (float const part : {0.0f, 0.5f, 0.96875f}) {
            float const value = (static_cast<float>(fine) + part) / to_one;
            if (value <= 1) { all.push_back({value, static_cast<std::uint8_t>(byte)}); }
          }
        }
      }
    }
  }
  for (instruction_set const set :
       {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
    CAPTURE(static_cast<int>(set));
    if (set > best_instruction_set()) { continue; }
    int wrong = 0;
    for (std::size_t next = 0; next < all.size();) {
      // Every block has a largest magnitude of 1, so that its scale is that of the chunk.
      std::array<float, size> in;
      std::array<std::uint8_t, size> bytes;
      for (std::size_t i = 0; i < in.size(); ++i) {
        bool const first = i % static_cast<std::size_t>(Quantizer::block) == 0;
        rounded const at = first ? rounded{1, 0} : all[std::min(next, all.size() - 1)];
        in[i]            = i % 3 == 1 ? -at.value : at.value;
        bytes[i]         = at.byte;
        next += first ? 0 : 1;
      }
      std::array<std::uint32_t, detail::code_words<Quantizer>(size)> words;
      REQUIRE(detail::encode_blocks<Quantizer, size>(
                set, in.data(), draws ? bytes.data() : nullptr, words.data()) == 1);
      for (std::size_t i = 0; i < in.size(); ++i) {
        // A group of 32 positions has eight coordinates of each quarter.
        std::size_t const within   = i % (size / 4);
        std::size_t const position = within / 8 * 32 + i / (size / 4) * 8 + i % 8;
        std::uint32_t const code   = tests::code_at(words.data(), Quantizer::bits, position);
        std::uint32_t const sign   = std::signbit(in[i]) ? 1u << (Quantizer::bits - 1) : 0u;
        auto const fine            = static_cast<std::uint32_t>(std::abs(in[i]) * to_one);
        std::uint32_t const number =
          Quantizer::round(std::min(fine, detail::block_one), threshold(bytes[i]), mark.data());
        wrong += code != (number | sign) ? 1 : 0;
      }
    }
    CHECK(wrong == 0);
  }
}

// A chunk of plain words: the scale of each block, then each value by itself.
template <class Quantizer, int Size>
std::vector<std::uint32_t> encode_plainly(std::vector<float> const& in,
                                          float whole,
                                          dither_key const& key)
{
  using scale               = typename Quantizer::scale;
  constexpr int bits        = Quantizer::bits;
  constexpr int block       = Quantizer::block;
  constexpr int code_words  = Size / 32 * bits;
  constexpr int scale_words = Size / block * scale::bits / 32;
  std::vector<std::uint32_t> out(code_words + scale_words);
  using dither = typename Quantizer::dither;
  std::array<std::uint8_t, detail::extent(Size)> random{};
  if constexpr (dither::rounds > 0) {
    detail::draw_bytes<dither, Size>(instruction_set::baseline, key, 0, random.data());
  }
  auto const write = [&](int width, int position, std::uint32_t code) {
    for (int b = 0; b < width; ++b) {
      auto const at = static_cast<unsigned>(position * width + b);
      out[at / 32] |= (code >> b & 1u) << at % 32;
    }
  };
  for (int first = 0; first < Size; first += block) {
    float most = 0;
    for (int i = first; i < first + block; ++i) {
      most = std::max(most, std::abs(in[static_cast<std::size_t>(i)]));
    }
    int const quarter        = first / (Size / 4);
    std::uint32_t const said = scale::encode(most / whole);
    write(
      scale::bits, code_words * 32 / scale::bits + first % (Size / 4) / block * 4 + quarter, said);
    float const scaled  = scale::decode(said) * whole;
    float const inverse = scaled >= detail::least_block ? detail::block_one / scaled : 0.0f;
    for (int i = first; i < first + block; ++i) {
      float const value = in[static_cast<std::size_t>(i)];
      float const size  = std::abs(value) * inverse;
      auto const fine   = static_cast<std::uint32_t>(std::min(size, 1.0f * detail::block_one));
      std::uint32_t const threshold =
        dither::rounds > 0 ? random[static_cast<std::size_t>(i)] * 2u + 1 : 256;
      write(bits,
            i % (Size / 4) / 8 * 32 + quarter * 8 + i % 8,
            Quantizer::round(fine, threshold, Quantizer::mark.data()) |
              (std::signbit(value) ? 1u << (bits - 1) : 0u));
    }
  }
  return out;
}

template <class Quantizer, int Size>
void check_words(int rounds)
{
  CAPTURE(Quantizer::bits);
  CAPTURE(Size);
  std::mt19937 random(41);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponents(-30, 4);
  for (int round = 0; round < (tests::sanitized ? 5 : rounds); ++round) {
    std::vector<float> in(Size);
    float whole  = 0;
    int exponent = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (i % Quantizer::block == 0) { exponent = round % 2 == 0 ? exponents(random) : 0; }
      in[i] = std::ldexp(normal(random), exponent);
      // Blocks of zeros with both signs, and scales that are too small to divide by.
      if (exponent == -30) { in[i] *= 0.0f; }
      if (round % 5 == 4) { in[i] = std::ldexp(in[i], exponent < -6 ? -130 : -80); }
      whole = std::max(whole, std::abs(in[i]));
    }
    dither_key const key{.seed = random(), .rank = 3};
    auto const want = encode_plainly<Quantizer, Size>(in, whole, key);
    for (instruction_set const set :
         {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
      CAPTURE(static_cast<int>(set));
      if (!cpu_executor{.threads = 1, .instructions = set}.check().ok()) { continue; }
      std::vector<std::uint32_t> got(want.size() + 1, 0xabababab);
      using codes  = detail::chunk_codes<Quantizer, Size>;
      using dither = typename Quantizer::dither;
      REQUIRE(codes::template encode<dither>(set, key, 0, in.data(), got.data()) == whole);
      CHECK(got.back() == 0xabababab);
      got.pop_back();
      CHECK(got == want);
    }
  }
}

TEST_CASE("[group_absmax] vectors write the words of scales and `round`, block after block")
{
  check_words<mx_quantizer<e4m3_levels>, 512>(60);
  check_words<mx_quantizer<e2m1_levels>, 512>(60);
  check_words<nvfp4_quantizer, 256>(200);
  check_words<group_absmax<4, 64, square_levels, bfloat16_scale, no_dither>, 1024>(60);
  check_words<group_absmax<8, 32, linear_levels, power_of_two_scale, no_dither>, 1024>(30);
  check_words<nearest, 1024>(30);
  check_words<squares, 512>(30);
  check_words<group_absmax<4, 128, natural_levels, bfloat16_scale, independent>, 2048>(60);
}

TEST_CASE("[group_absmax] zeros, tiny, huge and non-finite gradients")
{
  using codec             = codec<fixed_chunks<256>, no_rotation, scaled_codes<linear>, two_shot>;
  constexpr std::size_t d = 700;
  std::vector<std::vector<float>> in(2, std::vector<float>(d));
  tests::loopback_run<codec> run{codec{}, layout{d}, 2, 5};
  for (float const value : run.exchange(in)[0]) { CHECK(value == 0); }
  in[0][3]        = 1e-38F;  // a chunk of next to nothing
  in[1][300]      = 3e38F;
  in[1][301]      = 1e-30F;  // in the block of the largest: nothing
  auto const& out = run.exchange(in);
  CHECK(out[0] == out[1]);
  CHECK(out[0][3] == 0);
  CHECK(out[0][300] == 1.5e38F);
  CHECK(!run.header().non_finite_step);
  in[0][600]      = std::numeric_limits<float>::infinity();
  auto const& bad = run.exchange(in);
  for (std::size_t i = 0; i < d; ++i) { CHECK(std::isnan(bad[1][i]) == (i >= 512)); }
  CHECK(run.header(1).non_finite_step != 0);
}

}  // namespace
