// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Norms, rotations and codes of arrays on any executor: against references in double, and against what an exchange sends.

#pragma once

#include "../../examples/your_own/cosine_transform.hpp"
#include "placed_array.hpp"
#include "support/chunk_rotation.hpp"
#include "support/codecs.hpp"
#include "support/normal_gradients.hpp"
#include "support/staged_run.hpp"

#include <tersum/device/chunk_norms.hpp>
#include <tersum/device/quantize.hpp>
#include <tersum/device/rotate.hpp>
#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace tersum::tests {

template <class Element>
[[nodiscard]] std::vector<Element> normal_values(std::size_t count, unsigned seed)
{
  std::vector<Element> out;
  auto const floats = normal_gradients(1, count, seed);
  for (float const value : floats[0]) { out.push_back(from_float<Element>(value)); }
  return out;
}

//! Floats by their bits, so that NaNs and signs of zeros count.
[[nodiscard]] inline bool same_floats(std::vector<float> const& a, std::vector<float> const& b)
{
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

//! The chunks of an array in double, the last one padded.
template <int Size, class Element>
[[nodiscard]] std::vector<std::vector<double>> padded_chunks(std::vector<Element> const& values)
{
  std::vector<std::vector<double>> out((values.size() + Size - 1) / Size,
                                       std::vector<double>(Size));
  for (std::size_t i = 0; i < values.size(); ++i) {
    out[i / Size][i % Size] = static_cast<double>(to_float(values[i]));
  }
  return out;
}

template <int Size, class Element, class Placement>
void check_norms(Placement const& on)
{
  CAPTURE(Size);
  constexpr auto chunker = top_chunks<Size>{};
  for (std::size_t const count : sizes_about(Size, on.most)) {
    CAPTURE(count);
    auto const values = normal_values<Element>(count, 3);
    auto const chunks = padded_chunks<Size>(values);
    for (std::size_t const misplaced : {0u, 1u}) {
      typename Placement::template array<Element> const from{values, misplaced};
      typename Placement::template array<float> const norms{chunks.size()};
      REQUIRE(chunk_norms(on.exec, chunker, from.span(), norms.span()) == status{});
      auto const got    = norms.read();
      std::size_t wrong = 0;
      for (std::size_t c = 0; c < chunks.size(); ++c) {
        double want = 0;
        for (double const x : chunks[c]) { want += x * x; }
        // Size/256 chained sums and at most eight levels above them, of terms that are not negative.
        double const bound = (Size / 256 + 9) * 0x1p-24 * want;
        if (!(std::fabs(static_cast<double>(got[c]) - want) <= bound)) { ++wrong; }
      }
      CHECK(wrong == 0);
      if constexpr (Size >= 128 && std::is_same_v<Element, float>) {
        using codec_type = tests::
          rotated_sums<Size, rms_range<no_headroom>, stochastic_quantizer<4>, saturating_sum<4>>;
        staged_run<codec_type> run{codec_type{}, layout{count}, 1, 1};
        run.measure({values});
        std::vector<double> const agreed = run.agreed(0);  // none if chunks are more than floats
        CHECK((std::vector<double>(got.begin(), got.end()) == agreed || run.plan().all_bypass()));
      }
    }
  }
}

template <int Size, class Element, class Placement>
void check_rotation(Placement const& on)
{
  CAPTURE(Size);
  using order             = chunk_order<Size>;
  constexpr auto rotator  = partial_hadamard<Size>{};
  std::uint64_t const key = sign_key(5, 77);
  for (std::size_t const count : sizes_about(Size, on.most)) {
    CAPTURE(count);
    auto const values = normal_values<Element>(count, 4);
    auto chunks       = padded_chunks<Size>(values);
    for (std::size_t const misplaced : {0u, 1u}) {
      typename Placement::template array<Element> const from{values, misplaced},
        back{count, misplaced};
      typename Placement::template array<float> const rotated{chunks.size() * Size};
      REQUIRE(rotated_size(rotator, count) == chunks.size() * Size);
      REQUIRE(rotate(on.exec, rotator, from.span(), rotated.span(), key) == status{});
      auto const got    = rotated.read();
      std::size_t wrong = 0;
      for (std::size_t c = 0; c < chunks.size(); ++c) {
        std::vector<double> flipped = chunks[c];
        double sum                  = 0;
        for (std::size_t i = 0; i < Size; ++i) {
          std::uint32_t const word = sign_bits(c * (Size / 32) + order::sign_word(i), key);
          if ((word >> order::sign_bit(i) & 1) != 0) { flipped[i] = -flipped[i]; }
          sum += std::fabs(flipped[i]);
        }
        auto const want = hadamard_transform(flipped);
        // Each of log2(Size) sums rounds once, and none is above the sum of the magnitudes.
        double const bound = std::log2(Size) * 0x1p-24 * sum * 1.001;
        for (std::size_t i = 0; i < Size; ++i) {
          if (!(std::fabs(static_cast<double>(got[c * Size + i]) - want[i]) <= bound)) { ++wrong; }
        }
      }
      CHECK(wrong == 0);
      std::span<float const> const to_invert = rotated.span();
      REQUIRE(rotate_back(on.exec, rotator, to_invert, back.span(), key) == status{});
      auto const inverted = back.read();
      // Forward and backward, and the rounding to the element.
      constexpr double unit = std::is_same_v<Element, float>  ? 0
                              : std::is_same_v<Element, half> ? 0x1p-11
                                                              : 0x1p-8;
      std::size_t far       = 0;
      double sum            = 0;  // of the chunk's magnitudes
      for (std::size_t i = 0; i < count; ++i) {
        double const x = chunks[i / Size][i % Size];
        if (i % Size == 0) {
          sum = 0;
          for (double const other : chunks[i / Size]) { sum += std::fabs(other); }
        }
        double const bound = 3 * std::log2(Size) * 0x1p-24 * sum + unit * std::fabs(x);
        if (!(std::fabs(static_cast<double>(to_float(inverted[i])) - x) <= bound)) { ++far; }
      }
      CHECK(far == 0);
    }
    if constexpr (std::is_same_v<Element, float>) {
      // In place.
      std::vector<float> whole(chunks.size() * Size);
      std::copy(values.begin(), values.end(), whole.begin());
      typename Placement::template array<float> const both{whole}, apart{whole.size()};
      REQUIRE(rotate(on.exec, rotator, both.span(), apart.span(), key) == status{});
      REQUIRE(rotate(on.exec, rotator, both.span(), both.span(), key) == status{});
      CHECK(same_floats(both.read(), apart.read()));
    }
  }
}

//! A rotator with only the plain form: what it does to a chunk on a host thread.
template <class Element, class Rotator, class Placement>
void check_plain_rotator(Placement const& on, Rotator const& rotator)
{
  constexpr std::size_t size = Rotator::rotation_size;
  std::uint64_t const key    = sign_key(5, 77);
  for (std::size_t const count : {std::size_t{0}, std::size_t{1}, size - 1, size, 5 * size + 3}) {
    CAPTURE(count);
    auto const values = normal_values<Element>(count, 4);
    std::vector<float> want(rotated_size(rotator, count));
    std::vector<Element> back(count);
    for (std::size_t c = 0; c * size < count; ++c) {
      float x[size] = {}, scratch[size];
      for (std::size_t i = 0; i < size && c * size + i < count; ++i) {
        x[i] = to_float(values[c * size + i]);
      }
      rotator.forward(host_group{}, x, scratch, rotation_key{key, c});
      std::copy_n(x, size, want.data() + c * size);
      rotator.backward(host_group{}, x, scratch, rotation_key{key, c});
      for (std::size_t i = 0; i < size && c * size + i < count; ++i) {
        back[c * size + i] = from_float<Element>(x[i]);
      }
    }
    typename Placement::template array<Element> const from{values, 1}, again{count, 1};
    typename Placement::template array<float> const rotated{want.size()};
    REQUIRE(rotate(on.exec, rotator, from.span(), rotated.span(), key) == status{});
    CHECK(same_floats(rotated.read(), want));
    std::span<float const> const to_invert = rotated.span();
    REQUIRE(rotate_back(on.exec, rotator, to_invert, again.span(), key) == status{});
    CHECK(again.read() == back);
  }
}

//! The words of codes that are drawn and packed one by one, as the wire format has them.
template <int Size, class Quantizer, class Reducer>
[[nodiscard]] std::vector<std::uint32_t> reference_words(std::vector<float> const& values,
                                                         std::vector<float> const& scales,
                                                         dither_key const& key)
{
  constexpr unsigned bits  = Reducer::lane_bits;
  std::size_t const chunks = scales.size();
  std::vector<std::uint32_t> words(chunks * Size / 32 * bits);
  for (std::size_t i = 0; i < chunks * Size; ++i) {
    float const value    = i < values.size() ? values[i] : 0.0f;
    std::size_t const at = i / Size * Size + chunk_order<Size>::position(i % Size);
    float const scale    = scales[i / Size];
    std::uint32_t random = 0;
    if constexpr (Quantizer::dither::rounds > 0) {
      random = dither_byte<typename Quantizer::dither>(at, key);
    }
    int code = scale == 0.0f ? 0 : Quantizer{}.encode(value, scale, random);
    if (Reducer::biased) { code += Quantizer::max_level; }
    auto const lane =
      static_cast<std::uint32_t>(code) & static_cast<std::uint32_t>((1ull << bits) - 1);
    words[at * bits / 32] |= lane << at * bits % 32;
  }
  return words;
}

template <int Size, class Quantizer, class Reducer, class Placement>
void check_codes(Placement const& on)
{
  CAPTURE(Size);
  constexpr auto chunker = fixed_chunks<Size>{};
  dither_key const key{.seed = 9, .step = 4, .rank = 2};
  for (std::size_t const count : sizes_about(Size, on.most)) {
    CAPTURE(count);
    auto const values        = normal_values<float>(count, 6);
    std::size_t const chunks = chunk_count(chunker, count);
    std::vector<float> scales, steps;
    for (std::size_t c = 0; c < chunks; ++c) {
      // Steps of a quarter and more, so that some values lie beyond the grid; the third chunk has none.
      float const step = 0.25f + 0.01f * static_cast<float>(c % 7);
      scales.push_back(c == 2 ? 0.0f : static_cast<float>(1 << Quantizer::fraction_bits) / step);
      steps.push_back(step);
    }
    auto const want = reference_words<Size, Quantizer, Reducer>(values, scales, key);
    REQUIRE(packed_words(chunker, Reducer{}, count) == want.size());
    for (std::size_t const misplaced : {0u, 1u}) {
      typename Placement::template array<float> const from{values, misplaced}, of_chunks{scales},
        sizes{steps}, back{count, misplaced};
      typename Placement::template array<std::uint32_t> const words{want.size()};
      REQUIRE(quantize(on.exec,
                       chunker,
                       Quantizer{},
                       Reducer{},
                       from.span(),
                       of_chunks.span(),
                       key,
                       words.span()) == status{});
      CHECK(words.read() == want);
      REQUIRE(
        dequantize(
          on.exec, chunker, Quantizer{}, Reducer{}, words.span(), 1, sizes.span(), back.span()) ==
        status{});
      auto const got    = back.read();
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < count; ++i) {
        std::size_t const at = i / Size * Size + chunk_order<Size>::position(i % Size);
        unsigned const bits  = Reducer::lane_bits;
        auto const lane =
          static_cast<int>(want[at * bits / 32] >> at * bits % 32 & ((1u << bits) - 1));
        int const code = Reducer::biased           ? lane - Quantizer::max_level
                         : lane >= 1 << (bits - 1) ? lane - (1 << bits)
                                                   : lane;
        if (got[i] != static_cast<float>(code) * steps[i / Size]) { ++wrong; }
      }
      CHECK(wrong == 0);
    }
  }
}

//! Several ranks: rotate and quantize make what a codec sends, reduce its sums, dequantize and rotate_back its means.
template <int Size, class Quantizer, class Reducer, class Placement>
void check_against_exchange(Placement const& on, std::size_t count)
{
  CAPTURE(Size);
  CAPTURE(count);
  using codec_type       = tests::rotated_sums<Size, rms_range<no_headroom>, Quantizer, Reducer>;
  constexpr int world    = 3;
  constexpr auto chunker = fixed_chunks<Size>{};
  constexpr auto rotator = partial_hadamard<Size>{};
  constexpr std::uint64_t seed = 21;
  staged_run<codec_type> run{codec_type{}, layout{count}, world, seed};
  if (run.plan().all_bypass()) { return; }
  auto const gradients = normal_gradients(world, count, 31);
  run.measure(gradients);
  run.agree(reduction_order::ring);
  run.encode();
  std::size_t const chunks = chunk_count(chunker, count);
  std::vector<float> scales, ones, factors;
  for (std::size_t c = 0; c < chunks; ++c) {
    scales.push_back(run.step(0, c).encode);
    ones.push_back(1.0f);
    factors.push_back(run.step(0, c).decode * Size);
  }
  std::uint64_t const key = sign_key(0, seed);
  typename Placement::template array<float> const rotated{rotated_size(rotator, count)},
    of_chunks{scales}, of_sums{ones};
  std::size_t const size = packed_words(chunker, Reducer{}, count);
  std::vector<std::uint32_t> all;
  for (int rank = 0; rank < world; ++rank) {
    typename Placement::template array<float> const gradient{
      gradients[static_cast<std::size_t>(rank)]};
    typename Placement::template array<std::uint32_t> const words{size};
    dither_key const draws{.seed = seed, .step = 0, .rank = static_cast<std::uint32_t>(rank)};
    REQUIRE(rotate(on.exec, rotator, gradient.span(), rotated.span(), key) == status{});
    REQUIRE(quantize(on.exec,
                     chunker,
                     Quantizer{},
                     Reducer{},
                     rotated.span(),
                     of_chunks.span(),
                     draws,
                     words.span()) == status{});
    std::vector<std::uint32_t> sent(size);
    std::memcpy(sent.data(),
                run.workspace(rank).data() + run.plan().offset("payload"),
                size * sizeof(std::uint32_t));
    CHECK(words.read() == sent);
    all.insert(all.end(), sent.begin(), sent.end());
  }
  run.reduce(reduction_order::ring);
  std::vector<std::uint32_t> sum(size);
  std::memcpy(sum.data(),
              run.workspace(0).data() + run.plan().offset("payload"),
              size * sizeof(std::uint32_t));
  run.decode();
  typename Placement::template array<std::uint32_t> const words{sum};
  typename Placement::template array<float> const mean{count};
  REQUIRE(dequantize(on.exec,
                     chunker,
                     Quantizer{},
                     Reducer{},
                     words.span(),
                     world,
                     of_sums.span(),
                     rotated.span()) == status{});
  std::span<float const> const codes = rotated.span();
  REQUIRE(rotate_back(on.exec, rotator, codes, mean.span(), key) == status{});
  // Sums of codes are integers and Size is a power of two: what the exchange multiplies, this does later.
  auto got = mean.read();
  for (std::size_t i = 0; i < count; ++i) { got[i] *= factors[i / Size]; }
  CHECK(got == run.values(0));
}

template <class Placement>
void check_array_arguments(Placement const& on)
{
  constexpr int size     = 128;
  constexpr auto chunker = fixed_chunks<size>{};
  constexpr auto rotator = partial_hadamard<size>{};
  constexpr auto codes   = stochastic_quantizer<4>{};
  constexpr auto lanes   = saturating_sum<4>{};
  using floats           = typename Placement::template array<float>;
  using integers         = typename Placement::template array<std::uint32_t>;
  std::vector<float> const ones(2 * size, 1.0f);
  std::vector<std::uint32_t> const marks(2 * size / 8, 0xabcdu);
  floats const values{ones}, to{ones}, shifted{ones, 1}, factors{std::vector<float>(2, 1.0f)};
  integers const words{marks}, askew{marks, 1};
  std::span<float> const none{static_cast<float*>(nullptr), 2 * size};
  auto const refuses =
    [&](status const& s, std::string_view names, error_code code = error_code::invalid_argument) {
      CAPTURE(names);
      CHECK(s.code == code);
      CHECK(s.message.find(names) != std::string_view::npos);
      CHECK(to.read() == ones);
      CHECK(words.read() == marks);
      CHECK(factors.read() == std::vector<float>(2, 1.0f));
    };
  auto const norms = [&](std::span<float const> from, std::span<float> out) {
    return chunk_norms(on.exec, chunker, from, out);
  };
  refuses(norms(values.span(), factors.span().first(1)), "norms has not");
  refuses(norms(none, factors.span()), "values is a null");
  refuses(norms(values.span(), none.first(2)), "norms is a null");
  refuses(norms(to.span(), to.span().first(2)), "norms overlaps");
  auto const turn = [&](std::span<float const> from, std::span<float> out) {
    return rotate(on.exec, rotator, from, out, 1);
  };
  refuses(turn(values.span(), to.span().first(size)), "rotated has not");
  refuses(turn(none, to.span()), "values is a null");
  refuses(turn(values.span(), none), "rotated is a null");
  refuses(turn(values.span(), shifted.span()), "not aligned to 16");
  refuses(turn(to.span().subspan(size / 2, size), to.span().first(size)), "rotated overlaps");
  auto const turn_back = [&](std::span<float const> from, std::span<float> out) {
    return rotate_back(on.exec, rotator, from, out, 1);
  };
  refuses(turn_back(values.span().first(size), to.span()), "rotated has not");
  refuses(turn_back(none, to.span()), "rotated is a null");
  auto const encode =
    [&](std::span<float const> from, std::span<float const> scales, std::span<std::uint32_t> out) {
      return quantize(on.exec, chunker, codes, lanes, from, scales, dither_key{}, out);
    };
  refuses(encode(values.span(), factors.span(), words.span().first(16)), "words has not");
  refuses(encode(values.span(), factors.span().first(1), words.span()), "scales has not");
  refuses(encode(none, factors.span(), words.span()), "values is a null");
  refuses(encode(values.span(), none.first(2), words.span()), "scales is a null");
  refuses(encode(values.span(), factors.span(), askew.span()), "words is a null");
  auto const decode = [&](std::span<std::uint32_t const> from,
                          int world,
                          std::span<float const> steps,
                          std::span<float> out) {
    return dequantize(on.exec, chunker, codes, lanes, from, world, steps, out);
  };
  refuses(decode(words.span().first(16), 1, factors.span(), to.span()), "words has not");
  refuses(decode(words.span(), 0, factors.span(), to.span()), "world must be");
  refuses(decode(words.span(), 1, factors.span().first(1), to.span()), "steps has not");
  refuses(decode(words.span(), 1, to.span().first(2), to.span()), "values overlaps steps");
  refuses(decode(words.span(), 1, factors.span(), none), "values is a null");
  auto const guarded = [&](int world) {
    return dequantize(on.exec,
                      chunker,
                      codes,
                      guard_lanes<8>{},
                      std::span<std::uint32_t const>{},
                      world,
                      std::span<float const>{},
                      std::span<float>{});
  };
  refuses(guarded(1000), "world is too large", error_code::world_too_large);
  CHECK(guarded(1) == status{});
}

//! @brief All calls on arrays of the host: `each` calls what it is given with each placement.
template <class Each>
void check_arrays(Each const& each)
{
  auto const of_elements = [&](auto const& check) {
    check.template operator()<float>();
    check.template operator()<half>();
    check.template operator()<bfloat16>();
  };
  SUBCASE("chunk_norms are the squared norms, and those that an exchange agrees on")
  {
    of_elements([&]<class Element>() {
      each([](auto const& on) {
        check_norms<32, Element>(on);
        check_norms<128, Element>(on);
        check_norms<1024, Element>(on);
      });
    });
  }
  SUBCASE("rotate is signs and the Hadamard matrix, and rotate_back its inverse")
  {
    of_elements([&]<class Element>() {
      each([](auto const& on) {
        check_rotation<128, Element>(on);
        check_rotation<256, Element>(on);
        check_rotation<2048, Element>(on);
      });
    });
  }
  SUBCASE("a rotator of users, of the plain form alone, rotates arrays")
  {
    each([](auto const& on) {
      check_plain_rotator<float>(on, cosine_transform<128>{});
      check_plain_rotator<half>(on, cosine_transform<128>{});
    });
  }
  SUBCASE("quantize packs the codes of the wire format, and dequantize reads them")
  {
    each([](auto const& on) {
      check_codes<128, stochastic_quantizer<4>, saturating_sum<4>>(on);
      check_codes<256, stochastic_quantizer<2, independent>, saturating_sum<2>>(on);
      check_codes<1024, nearest_quantizer<8>, saturating_sum<8>>(on);
      check_codes<512, stochastic_quantizer<4>, widening_sum<4, 8>>(on);
      check_codes<512, stochastic_quantizer<4>, guard_lanes<8>>(on);
    });
  }
  SUBCASE("rotate, quantize, dequantize and rotate_back make an exchange")
  {
    each([](auto const& on) {
      for (std::size_t const count : {std::size_t{1}, std::size_t{5003}}) {
        check_against_exchange<128, stochastic_quantizer<4>, saturating_sum<4>>(on, count);
        check_against_exchange<1024, stochastic_quantizer<8>, saturating_sum<8>>(on, count);
        check_against_exchange<512, nearest_quantizer<4>, guard_lanes<8>>(on, count);
      }
    });
  }
}

}  // namespace tersum::tests
