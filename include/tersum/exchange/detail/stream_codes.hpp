// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of an `entropy_codec` one by one: their values, the bits of their codes under a step, and the streams of these,
//! value after value. The CPU does the same with vectors, in `cpu/cpu_stream_kernels.hpp`.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/streams.hpp>
#include <tersum/quantize/bit_streams.hpp>
#include <tersum/quantize/rice_codes.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

TERSUM_EXEC_CHECK_DISABLE
//! Bits of a chunk before its codes: the order of runs, whether codes are in line, the order of magnitudes, whether it has the finer
//! step.
inline constexpr std::uint32_t chunk_head = 4 + 1 + 5 + 1;

//! These bits.
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t head_bits(rice_orders orders, bool finer)
{
  return orders.runs | orders.in_line << 4 | orders.magnitudes << 5 | (finer ? 1u << 10 : 0u);
}

//! @brief The step of a number, for a largest magnitude with these bits: from above it down by the sixteenth root of 2. 0 where
//! there is none: of number 0, and of numbers whose steps or codes would leave their range.
template <class Arithmetic>
[[nodiscard]] TERSUM_INLINE float step_of_number(Arithmetic const&,
                                                 std::uint32_t peak,
                                                 std::uint32_t number)
{
  std::uint32_t const exponent = minimum(peak >> 23, 252u);
  std::uint32_t const octaves = (number - 1) / 16, parts = (number - 1) % 16;
  if (number == 0 || number > stream_search::last || octaves >= exponent) { return 0.0f; }
  float step = bits_float((exponent + 1 - octaves) << 23);
  step       = Arithmetic::multiply(step, (parts & 8) != 0 ? 0.707106769f : 1.0f);
  step       = Arithmetic::multiply(step, (parts & 4) != 0 ? 0.840896428f : 1.0f);
  step       = Arithmetic::multiply(step, (parts & 2) != 0 ? 0.917004049f : 1.0f);
  return Arithmetic::multiply(step, (parts & 1) != 0 ? 0.957603276f : 1.0f);
}

//! @brief The values of a chunk, four at a time: one behind the other, or those of 32 chunks in turns.
template <bool InTurns, int Size>
struct chunk_values {
  float* first;

  static constexpr std::uint32_t size  = static_cast<std::uint32_t>(Size);
  static constexpr std::uint32_t quads = size / 4;

  TERSUM_INLINE chunk_values(float* values, std::uint64_t slot)
    : first{values + (InTurns ? slot / 32 * 32 * size + slot % 32 * 4 : slot * size)}
  {
  }
  [[nodiscard]] TERSUM_INLINE word4* quad(std::uint32_t number) const
  {
    return reinterpret_cast<word4*>(first) + std::uint64_t{number} * (InTurns ? 32 : 1);
  }
  [[nodiscard]] TERSUM_INLINE float* at(std::uint32_t place) const
  {
    return first + std::uint64_t{place / 4} * (InTurns ? 128 : 4) + place % 4;
  }
};

//! @brief Calls visit(place, value) for the values of a chunk in order.
TERSUM_EXEC_CHECK_DISABLE
template <class Machine, class Chunk, class Visit>
TERSUM_INLINE void each_value(Machine const& machine, Chunk const& chunk, Visit const& visit)
{
  TERSUM_NO_UNROLL
  for (std::uint32_t quad = 0; quad < Chunk::quads; ++quad) {
    word4 const four = machine.load(chunk.quad(quad));
    visit(4 * quad, bits_float(four.x));
    visit(4 * quad + 1, bits_float(four.y));
    visit(4 * quad + 2, bits_float(four.z));
    visit(4 * quad + 3, bits_float(four.w));
  }
}

//! @brief The largest magnitude of a chunk, as bits; of values that are not finite that of infinity.
TERSUM_EXEC_CHECK_DISABLE
template <class Machine, class Chunk>
[[nodiscard]] TERSUM_INLINE std::uint32_t peak_of(Machine const& machine, Chunk const& chunk)
{
  std::uint32_t peak = 0;
  each_value(machine, chunk, [&](std::uint32_t, float value) {
    peak = maximum(peak, float_bits(value) & 0x7fffffffu);
  });
  return minimum(peak, 0x7f800000u);
}

//! @brief The way of a chunk's codes, and how many bits they take; whether all are zero.
struct coded_chunk {
  float inverse = 0.0f;  //!< One over the step; 0 if all codes are zero.
  sized_orders way;
};

//! @brief How a chunk is coded whose codes are not all zero.
TERSUM_EXEC_CHECK_DISABLE
template <class Machine, class Chunk>
[[nodiscard]] TERSUM_INLINE coded_chunk code_chunk(Machine const& machine,
                                                   Chunk const& chunk,
                                                   float inverse)
{
  magnitude_counts counts;
  each_value(machine, chunk, [&](std::uint32_t place, float value) {
    std::uint32_t const code = code_magnitude(machine, value, inverse);
    counts.some += code != 0 ? 1u : 0u;
    counts.gaps += code != 0 && counts.end != place ? 1u : 0u;
    counts.end = code != 0 ? place + 1 : counts.end;
    counts.sum += code;
  });
  order_choices const orders = find_orders(Chunk::size, counts);
  std::uint32_t zeros = 0, logarithms = 0, in_line = 0, all = 0;
  std::uint32_t before = 0;  // zeros
  each_value(machine, chunk, [&](std::uint32_t, float value) {
    std::uint32_t const code = code_magnitude(machine, value, inverse);
    in_line += code >> orders.in_line;
    all += code >> orders.all;
    if (code == 0) {
      ++before;
    } else {
      zeros += before > 0 ? (before - 1) >> orders.runs : 0u;
      logarithms += floor_log2(code - 1 + (1u << orders.behind));
      before = 0;
    }
  });
  sized_orders best           = size_behind(counts, orders, zeros, logarithms);
  sized_orders const together = size_in_line(counts, orders, zeros, in_line);
  sized_orders const each     = size_of_all(Chunk::size, counts, orders, all);
  if (together.bits < best.bits) { best = together; }
  if (each.bits < best.bits) { best = each; }
  return {inverse, best};
}

//! @brief How a chunk is coded with a step. Nothing travels with step 0, and of a chunk in which a value is not finite.
//! @param peak  What `peak_of` says of it.
TERSUM_EXEC_CHECK_DISABLE
template <class Machine, class Chunk>
[[nodiscard]] TERSUM_INLINE coded_chunk
code_chunk(Machine const& machine, Chunk const& chunk, std::uint32_t peak, float step)
{
  if (step == 0.0f || peak >= 0x7f800000u) { return {}; }
  float const inverse = Machine::divide(1.0f, step);
  if (code_magnitude(machine, bits_float(peak), inverse) == 0) { return {}; }
  return code_chunk(machine, chunk, inverse);
}

//! @brief Bits of a chunk: 0 if nothing of it travels, and else less than 2^16 - 1.
[[nodiscard]] TERSUM_INLINE std::uint32_t bits_of(coded_chunk const& coded)
{
  return coded.inverse == 0.0f ? 0u : chunk_head + coded.way.bits;
}

//! @brief Writes the codes of a chunk, which are not all zero, from this bit on.
TERSUM_EXEC_CHECK_DISABLE
template <class Machine, class Chunk>
TERSUM_INLINE void write_codes(Machine const& machine,
                               Chunk const& chunk,
                               coded_chunk const& coded,
                               bool finer,
                               std::uint32_t* words,
                               std::uint32_t from)
{
  rice_orders const orders = coded.way.orders;
  bit_writer<Machine> out{machine, words, from};
  out.put(head_bits(orders, finer), chunk_head);
  bool const all = orders.runs == rice_orders::none, in_line = orders.in_line != 0;
  std::uint32_t before = 0;  // zeros
  each_value(machine, chunk, [&](std::uint32_t, float value) {
    std::uint32_t const code = code_magnitude(machine, value, coded.inverse);
    if (code == 0 && !all) {
      ++before;
      return;
    }
    // A zero, or whether there are zeros.
    bool const zero           = all ? code == 0 : before > 0;
    std::uint32_t const count = all || in_line ? (zero ? orders.magnitudes + 1 : 0u) : 1u;
    out.put((all || in_line) == zero ? 1u : 0u, count);
    if (code == 0) { return; }
    if (before > 0) { out.rice(before - 1, orders.runs); }
    before                    = 0;
    std::uint32_t const minus = float_bits(value) >> 31;
    if (all || in_line) {
      out.rice(code, orders.magnitudes);
      out.put(minus, 1);
    } else {
      out.put(minus, 1);
      out.exponential(code - 1, orders.magnitudes);
    }
  });
  out.finish();
}

//! @brief Calls visit(place, code, whether it is negative, whether the step is the finer one) for the codes of a chunk that are
//! not zero, in order. Reads `bits` bits of `count` words, from this one on.
TERSUM_EXEC_CHECK_DISABLE
template <std::uint32_t Size, class Machine, class Visit>
TERSUM_INLINE void read_codes(Machine const& machine,
                              std::uint32_t const* words,
                              std::uint64_t count,
                              std::uint32_t from,
                              std::uint32_t bits,
                              Visit const& visit)
{
  bit_reader<Machine> in{machine, words, count, from, bits};
  rice_orders orders;
  orders.runs       = in.take(4);
  orders.in_line    = in.take(1);
  orders.magnitudes = in.take(5);
  bool const finer  = in.take(1) != 0;
  bool const all = orders.runs == rice_orders::none, behind = !all && orders.in_line == 0;
  TERSUM_NO_UNROLL
  for (std::uint32_t place = 0; place < Size && in.more(); ++place) {
    std::uint32_t code = behind ? in.take(1) : in.rice(orders.magnitudes);
    if (code == 0 && !all) {
      std::uint32_t const zeros = in.rice(orders.runs) + (behind ? 1u : 0u);
      if (zeros >= Size - place) { return; }
      place += zeros;
    }
    if (code == 0 && !behind) { continue; }
    bool const minus = in.take(1) != 0;
    if (behind) { code = in.exponential(orders.magnitudes) + 1; }
    visit(place, code, minus, finer);
  }
}

}  // namespace tersum::inline v0::detail
