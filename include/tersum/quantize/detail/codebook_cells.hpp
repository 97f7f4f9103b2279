// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The code of a value under a codebook, and the level of a code, for floats and vectors: cells of magnitudes are found by places,
//! without a comparison, or by a grid, with one.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/value.hpp>

namespace tersum::inline v0::detail {

//! @brief A grid of `points` per root mean square, and for each point the number of the cell that it lies in, as the bits of a float.
//!
//! Between neighbouring points lies one boundary at most. So a value's cell is found by two tables and one comparison,
//! which is cheaper than many comparisons.
//! @tparam Reach  Root mean squares that it covers, a power of two: beyond it there are no boundaries.
template <class Quantizer, int Reach = 8>
struct cell_grid {
  static constexpr int points = Quantizer::magnitudes / 2;
  static constexpr int count  = Reach * points;

  static constexpr std::array<float, extent(count)> cells = [] {
    std::array<float, extent(count)> numbers{};
    std::uint32_t cell = 0;
    for (int i = 0; i < count; ++i) {
      while (Quantizer::boundaries()[cell] * points <= static_cast<float>(i)) { ++cell; }
      numbers[static_cast<std::size_t>(i)] = bits_float(cell);
    }
    return numbers;
  }();

  //! Whether no two boundaries lie between neighbouring points.
  static constexpr bool serves = [] {
    for (std::size_t i = 0; i + 1 < cells.size(); ++i) {
      if (float_bits(cells[i + 1]) > float_bits(cells[i]) + 1) { return false; }
    }
    return float_bits(cells.back()) == static_cast<std::uint32_t>(Quantizer::magnitudes - 1);
  }();

  //! The number of the cell of a magnitude, in root mean squares.
  template <class Value>
  [[nodiscard]] TERSUM_HOST_INLINE static constexpr words_of<Value> cell_of(Value const& magnitude)
  {
    static_assert(serves, "tersum: the cells of a codebook must be wider than a point of its grid");
    constexpr auto last = static_cast<float>(count - 1);
    auto const below    = magnitude * static_cast<float>(points);
    auto const point    = to_words(truncate(smaller(below, last)));
    auto const cell     = to_bits(look_up<count>(cells.data(), point));
    return cell +
           one_if(magnitude >= look_up<Quantizer::magnitudes>(Quantizer::boundaries(), cell));
  }
};

//! @brief Whether the cells of a codebook end where places do.
template <class Quantizer>
concept has_places = requires
{
  Quantizer::slope + Quantizer::offset;
};

//! @brief Where a magnitude of m root mean squares lies: at y = slope m + offset, or at 1 if that is less.
//!
//! Bits 19 to 23 of the float y number its place: from 1/4 to 1/2 places are 64ths, from there on 32nds, narrow where levels are near
//! each other. The offset is above 17/64, so that the place of 1 is no other's.
template <has_places Line>
struct cell_places {
  static constexpr int shift = 19;

  //! y as a fused multiply-add gives it: its operands are exact in double.
  [[nodiscard]] static constexpr float at(float m) noexcept
  {
    return static_cast<float>(static_cast<double>(m) * static_cast<double>(Line::slope) +
                              static_cast<double>(Line::offset));
  }

  //! The beginning of a place that is nearest to y.
  [[nodiscard]] static constexpr float nearest(float y) noexcept
  {
    float const all = y < 0.5f ? 64.0f : 32.0f;
    return static_cast<float>(static_cast<int>(y * all + 0.5f)) / all;
  }

  //! The least magnitude that lies in or behind the place that begins nearest to m.
  [[nodiscard]] static constexpr float least(float m) noexcept
  {
    float const end    = nearest(at(m));
    std::uint32_t bits = float_bits((end - Line::offset) / Line::slope) + 4;
    while (at(bits_float(bits - 1)) >= end) { --bits; }
    return bits_float(bits);
  }
};

//! @brief The levels of all places of a codebook, whose lowest bits are their numbers, and where its cells end.
template <has_places Quantizer>
struct placed_levels {
  static constexpr unsigned cells = Quantizer::magnitudes;
  using places                    = cell_places<Quantizer>;

  alignas(64) float level[32];
  float end[cells];

  [[nodiscard]] static constexpr placed_levels make() noexcept
  {
    placed_levels out{};
    for (unsigned k = 0; k < cells; ++k) {
      out.end[k] = k + 1 < cells ? places::nearest(places::at(Quantizer::boundaries()[k])) : 2.0f;
    }
    unsigned cell = 0;
    for (float y = 0.265625f; y <= 1.0f; y += y < 0.5f ? 0x1p-6f : 0x1p-5f) {
      while (y >= out.end[cell]) { ++cell; }
      out.level[float_bits(y) >> places::shift & 31u] = Quantizer::levels()[cell];
    }
    return out;
  }
};

template <class Quantizer>
inline constexpr placed_levels<Quantizer> placed_levels_of = placed_levels<Quantizer>::make();

//! @brief What cells of a codebook are found by: root mean squares, of which at most one boundary lies between two points of a grid, or places.
template <class Quantizer>
struct cell_search {
  [[nodiscard]] static constexpr float const* ends() noexcept { return Quantizer::boundaries(); }

  TERSUM_OF_VALUES
  template <class Value>
  [[nodiscard]] TERSUM_INLINE static constexpr Value at(Value const& magnitude, Value const& scale)
  {
    return magnitude * scale;
  }

  template <class Value>
  [[nodiscard]] TERSUM_HOST_INLINE static constexpr words_of<Value> cell_of(Value const& magnitude)
  {
    using near = cell_grid<Quantizer, 4>;
    return std::conditional_t<near::serves, near, cell_grid<Quantizer>>::cell_of(magnitude);
  }
};

template <has_places Quantizer>
struct cell_search<Quantizer> {
  using places = cell_places<Quantizer>;
  [[nodiscard]] static constexpr float const* ends() noexcept
  {
    return placed_levels_of<Quantizer>.end;
  }

  TERSUM_OF_VALUES
  template <class Value>
  [[nodiscard]] TERSUM_INLINE static constexpr Value at(Value const& magnitude, Value const& scale)
  {
    return fma_above(magnitude, scale * Quantizer::slope, Value(Quantizer::offset), places::shift);
  }
  [[nodiscard]] TERSUM_INLINE static constexpr float at(float magnitude, float scale)
  {
    if (std::is_constant_evaluated()) { return places::at(magnitude * scale); }
    return fma(magnitude, scale * Quantizer::slope, Quantizer::offset);
  }

  //! The level of the place that y lies in. Its lowest bits are the number of its cell.
  template <class Value>
  [[nodiscard]] TERSUM_HOST_INLINE static constexpr Value level_of(Value const& y)
  {
    auto const place = (to_bits(smaller(y, Value(1.0f))) >> places::shift) & 31u;
    return look_up<32>(placed_levels_of<Quantizer>.level, place);
  }
  template <class Value>
  [[nodiscard]] TERSUM_HOST_INLINE static constexpr words_of<Value> cell_of(Value const& y)
  {
    return to_bits(level_of(y)) & (Quantizer::magnitudes - 1u);
  }
};

//! @brief The cells of the magnitudes of a codebook that has tables. Device code has no such tables: a value alone is compared with
//! constants, and kernels of codecs bring tables into shared memory.
template <class Quantizer>
struct table_cells {
  static constexpr int count = Quantizer::magnitudes;
  using search               = cell_search<Quantizer>;

  //! The number of the cell of a magnitude times a scale, in root mean squares.
  template <class Value, int Comparisons = value_parts<Value>::comparisons>
  [[nodiscard]] TERSUM_HOST_INLINE static constexpr words_of<Value> cell_of(Value const& magnitude,
                                                                            Value const& scale)
  {
    auto const at = search::at(magnitude, scale);
    if constexpr (count - 1 <= Comparisons) {
      auto cell = to_bits(at) & 0u;
      TERSUM_UNROLL
      for (int k = 0; k + 1 < count; ++k) { cell = cell + one_if(at >= search::ends()[k]); }
      return cell;
    } else {
      return search::cell_of(at);
    }
  }
  [[nodiscard]] TERSUM_INLINE static constexpr std::uint32_t cell_of(float magnitude, float scale)
  {
#if defined(__CUDA_ARCH__)
    return cell_among(search::at(magnitude, scale), std::make_index_sequence<count - 1>{});
#else
    return cell_of<float>(magnitude, scale);
#endif
  }
  TERSUM_OF_VALUES
  template <class Value>
  [[nodiscard]] TERSUM_INLINE static constexpr words_of<Value> cell_of(Value const& magnitude)
  {
    return cell_of(magnitude, Value(1.0f));
  }

  //! The cell again, adding the magnitude times its level to `product`. Vectors that look the level up by place read the cell in it.
  TERSUM_OF_VALUES
  template <class Value, int Unplaced = value_parts<Value>::unplaced>
  [[nodiscard]] TERSUM_INLINE static words_of<Value> add_level(Value const& magnitude,
                                                               Value const& scale,
                                                               Value& product)
  {
    if constexpr (has_places<Quantizer> && count - 1 > Unplaced) {
      auto const level = search::level_of(search::at(magnitude, scale));
      product          = fma(magnitude, level, product);
      return to_bits(level) & (count - 1u);
    } else {
      auto const cell = cell_of(magnitude, scale);
      product         = fma(magnitude, level_of(cell), product);
      return cell;
    }
  }

  //! The level of a cell.
  template <class Words>
  [[nodiscard]] TERSUM_HOST_INLINE static constexpr auto level_of(Words const& cell)
  {
    return look_up<count>(Quantizer::levels(), cell);
  }
  [[nodiscard]] TERSUM_INLINE static constexpr float level_of(std::uint32_t cell)
  {
#if defined(__CUDA_ARCH__)
    return level_among<0, count>(cell);
#else
    return look_up<count>(Quantizer::levels(), cell);
#endif
  }

 private:
  template <std::size_t I>
  struct entry {
    static constexpr float end   = search::ends()[I];
    static constexpr float level = Quantizer::levels()[I];
  };

  template <std::size_t... I>
  [[nodiscard]] TERSUM_INLINE static constexpr std::uint32_t cell_among(float at,
                                                                        std::index_sequence<I...>)
  {
    return (0u + ... + (at >= entry<I>::end ? 1u : 0u));
  }

  // Of Size levels from First on: as many choices as the code has bits, one after the other.
  template <std::size_t First, std::size_t Size>
  [[nodiscard]] TERSUM_INLINE static constexpr float level_among(std::uint32_t cell)
  {
    if constexpr (Size == 1) {
      return entry<First>::level;
    } else {
      float const low  = level_among<First, Size / 2>(cell);
      float const high = level_among<First + Size / 2, Size / 2>(cell);
      return (cell & Size / 2) != 0 ? high : low;
    }
  }
};

//! @name Codes whose highest bit is the sign, and the others the number of the magnitude's cell
//! @{
TERSUM_OF_VALUES
template <class Cells, int Bits, class Value>
[[nodiscard]] TERSUM_INLINE constexpr words_of<Value> encode_signed(Value const& value)
{
  return Cells::cell_of(magnitude_of(value)) | ((to_bits(value) >> 31) << (Bits - 1));
}

TERSUM_OF_VALUES
template <class Cells, int Bits, class Words>
[[nodiscard]] TERSUM_INLINE constexpr auto decode_signed(Words const& code)
{
  auto const level = Cells::level_of(code & ((1u << (Bits - 1)) - 1u));
  return from_bits(to_bits(level) ^ ((code >> (Bits - 1)) << 31));
}
//! @}

//! @brief The cells of a codebook, if it has any.
template <class Quantizer>
struct cells_of {
  using type = table_cells<Quantizer>;
};

template <class Quantizer>
requires(has_cells<Quantizer>) struct cells_of<Quantizer> {
  using type = typename Quantizer::cells;
};

//! @brief The level of a code, with other bits above it.
TERSUM_OF_VALUES
template <codebook Quantizer, class Words>
[[nodiscard]] TERSUM_INLINE auto level_of_code(Words const& code)
{
  if constexpr (has_cells<Quantizer> || table_codebook<Quantizer>) {
    return decode_signed<typename cells_of<Quantizer>::type, Quantizer::bits>(code);
  } else {
    return by_lanes([](std::uint32_t of) -> float { return Quantizer{}.decode(of); },
                    code&((1u << Quantizer::bits) - 1u));
  }
}

//! @brief The cell of a magnitude times a scale. Adds the magnitude times its level to `product`.
TERSUM_OF_VALUES
template <class Cells, class Value>
[[nodiscard]] TERSUM_INLINE words_of<Value> add_level(Value const& magnitude,
                                                      Value const& scale,
                                                      Value& product)
{
  auto const cell = Cells::cell_of(magnitude * scale);
  product         = fma(magnitude, Cells::level_of(cell), product);
  return cell;
}
TERSUM_OF_VALUES
template <class Cells, class Value>
requires requires(Value& v) { Cells::add_level(v, v, v); }
[[nodiscard]] TERSUM_INLINE words_of<Value> add_level(Value const& magnitude,
                                                      Value const& scale,
                                                      Value& product)
{
  return Cells::add_level(magnitude, scale, product);
}

//! @brief The code of a value times `scale`, one over the root mean square. Adds the value times its level to `product`. A codebook of
//! no cells is not shown values that are not finite.
TERSUM_OF_VALUES
template <codebook Quantizer, class Value>
[[nodiscard]] TERSUM_INLINE words_of<Value> code_value(Value const& value,
                                                       Value const& scale,
                                                       Value& product)
{
  if constexpr (has_cells<Quantizer> || table_codebook<Quantizer>) {
    using cells     = typename cells_of<Quantizer>::type;
    auto const cell = add_level<cells>(magnitude_of(value), scale, product);
    return cell | ((to_bits(value) >> 31) << (Quantizer::bits - 1));
  } else {
    auto const code = by_lanes(
      [](float of) -> std::uint32_t { return Quantizer{}.encode(is_finite(of) ? of : 0.0f); },
      value* scale);
    product = fma(value, level_of_code<Quantizer>(code), product);
    return code;
  }
}

}  // namespace tersum::inline v0::detail
