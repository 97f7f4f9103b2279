// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks of streams on one CPU thread: their codes under a step all at once, the bits that these take, and the bits
//! themselves. The same bits as by the functions of `stream_codes.hpp`.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/detail/host_machine.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/cpu_bit_windows.hpp>
#include <tersum/exchange/detail/stream_chunks.hpp>
#include <tersum/exchange/detail/stream_codes.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/quantize/rice_codes.hpp>

#include <bit>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Magnitudes of the codes of a chunk, and a bit for each that is not zero.
template <int Size>
struct step_codes {
  alignas(64) std::uint32_t magnitudes[Size];
  std::uint64_t some[Size / 64];
};

#define TERSUM_SIMD_SOURCE <tersum/exchange/detail/cpu/stream_kernels.inl>
#include <tersum/block/detail/cpu/instruction_sets.inl>

template <int Size>
[[nodiscard]] std::uint32_t find_peak(instruction_set set, float const* values)
{
  TERSUM_DISPATCH(set, true, find_peak<Size>(values));
}

//! @param most  No code is larger.
template <int Size>
[[nodiscard]] magnitude_counts find_codes(instruction_set set,
                                          float const* values,
                                          std::uint32_t most,
                                          float inverse,
                                          step_codes<Size>& codes)
{
  TERSUM_DISPATCH(set, true, find_codes<Size>(values, most, inverse, codes));
}

template <int Size>
[[nodiscard]] std::uint32_t bits_of_codes(instruction_set set,
                                          step_codes<Size> const& codes,
                                          magnitude_counts const& counts,
                                          rice_orders orders)
{
  TERSUM_DISPATCH(set, true, bits_of_codes<Size>(codes, counts, orders));
}

//! @brief sent[i] is what the code of values[i] stands for, which is finite.
//! @param inverse  One over the step; 0 with step 0.
template <int Size>
void find_sent(
  instruction_set set, float const* values, float inverse, float step, float (&sent)[Size])
{
  TERSUM_DISPATCH(set, true, find_sent<Size>(values, inverse, step, sent));
}

#undef TERSUM_DISPATCH
#undef TERSUM_SIMD_SOURCE

//! @brief Bits of a chunk under a step.
//! @param peak     The largest magnitude is not above it.
//! @param inverse  One over the step; 0 if nothing travels.
template <int Size>
[[nodiscard]] std::uint32_t bits_of_chunk(instruction_set set,
                                          float const* values,
                                          std::uint32_t peak,
                                          float inverse)
{
  if (inverse == 0.0f || peak >= 0x7f800000u) { return 0; }
  std::uint32_t const most = code_magnitude(host_machine{}, bits_float(peak), inverse);
  if (most == 0) { return 0; }
  step_codes<Size> codes;
  magnitude_counts const counts = find_codes(set, values, most, inverse, codes);
  if (counts.some == 0) { return 0; }
  return bits_of_codes(set, codes, counts, choose_orders(Size, counts));
}

//! @brief Writes the codes of a chunk, which are not all zero, from this bit on.
template <int Size>
void write_chunk(instruction_set set,
                 float const* values,
                 float inverse,
                 bool finer,
                 std::uint32_t* words,
                 std::uint32_t from)
{
  constexpr auto size = static_cast<std::uint32_t>(Size);
  step_codes<Size> codes;
  rice_orders const orders = choose_orders(size, find_codes(set, values, ~0u, inverse, codes));
  auto const minus         = [&](std::uint32_t place) { return float_bits(values[place]) >> 31; };
  window_writer::room room;
  window_writer out{from, room};
  out.put(orders.runs | orders.magnitudes << 4 | (finer ? 1u << 9 : 0u), chunk_head);
  if (orders.runs == rice_orders::none) {
    for (std::uint32_t place = 0; place < size; ++place) {
      out.code(codes.magnitudes[place], minus(place), orders.magnitudes);
    }
  } else {
    std::uint32_t begin = 0;
    for (std::uint32_t i = 0; i < size; i += 64) {
      for (std::uint64_t some = codes.some[i / 64]; some != 0; some &= some - 1) {
        std::uint32_t const place = i + static_cast<std::uint32_t>(std::countr_zero(some));
        out.run_and_code(place - begin, codes.magnitudes[place], minus(place), orders);
        begin = place + 1;
      }
    }
  }
  out.finish(words, room);
}

//! @brief `read_codes`, code by code, through windows.
template <int Size>
class chunk_reader {
 public:
  //! Reads `bits` bits of `count` words, from this one on.
  TERSUM_HOST_INLINE chunk_reader(std::uint32_t const* words,
                                  std::uint64_t count,
                                  std::uint32_t from,
                                  std::uint32_t bits,
                                  window_reader::room& room)
    : in_{words, count, from, bits, room}
  {
    orders_.runs       = in_.take(4);
    orders_.magnitudes = in_.take(5);
    finer_             = in_.take(1) != 0;
  }

  [[nodiscard]] TERSUM_HOST_INLINE bool finer() const { return finer_; }
  [[nodiscard]] TERSUM_HOST_INLINE bool in_runs() const
  {
    return orders_.runs != rice_orders::none;
  }
  [[nodiscard]] TERSUM_HOST_INLINE bool more() const { return in_.more(); }

  //! @brief Calls visit(place, code, sign as the highest bit) for the next code, unless it is zero.
  //! @tparam InRuns  What `in_runs` says.
  template <bool InRuns, class Visit>
  TERSUM_HOST_INLINE void read(Visit const& visit)
  {
    std::uint32_t code = 0, minus = 0, zeros = 0;
    if constexpr (InRuns) {
      if (!in_.run_and_code(orders_, zeros, code, minus)) {
        zeros = in_.rice(orders_.runs);
        minus = in_.take(1);
        code  = in_.exponential(orders_.magnitudes) + 1;
      }
    } else if (!in_.code(orders_.magnitudes, code, minus)) {
      code  = in_.rice(orders_.magnitudes);
      minus = code != 0 ? in_.take(1) : 0u;
    }
    place_ += zeros;
    if (place_ >= size) {
      in_.stop();
      return;
    }
    if (InRuns || code != 0) { visit(place_, code, minus << 31); }
    ++place_;
  }

 private:
  static constexpr auto size = static_cast<std::uint32_t>(Size);

  window_reader in_;
  rice_orders orders_;
  std::uint32_t place_ = 0;
  bool finer_          = false;
};

//! @brief What is to be read of a chunk, and where it is added to.
struct read_item {
  std::uint32_t from;
  std::uint32_t bits;
  float* sums;
};

//! @brief Adds the values of codes to sums.
struct add_code {
  float* sums;
  float step;

  TERSUM_HOST_INLINE void operator()(std::uint32_t place,
                                     std::uint32_t code,
                                     std::uint32_t sign) const
  {
    float const size = value_of_code(host_machine{}, code, step);
    sums[place]      = host_machine::add(sums[place], bits_float(float_bits(size) ^ sign));
  }
};

template <bool InRuns, int Size>
void add_rest(chunk_reader<Size> in, add_code add)
{
  while (in.more()) { in.template read<InRuns>(add); }
}

template <bool InRuns, int Size>
void add_in_turns(chunk_reader<Size> first,
                  add_code add_to_first,
                  chunk_reader<Size> second,
                  add_code add_to_second)
{
  while (first.more() && second.more()) {
    first.template read<InRuns>(add_to_first);
    second.template read<InRuns>(add_to_second);
  }
  add_rest<InRuns>(first, add_to_first);
  add_rest<InRuns>(second, add_to_second);
}

//! @brief Adds the values of two chunks' codes to their sums, if they can be read in turns: where a code begins is known when
//! the one before has been read, and so one chunk alone would keep the processor waiting.
//! @param steps  Of codes, and of those that are finer.
template <int Size>
void add_two_chunks(std::uint32_t const* words,
                    std::uint64_t count,
                    float const (&steps)[2],
                    read_item const (&items)[2])
{
  window_reader::room rooms[2];
  chunk_reader<Size> first{words, count, items[0].from, items[0].bits, rooms[0]};
  chunk_reader<Size> second{words, count, items[1].from, items[1].bits, rooms[1]};
  add_code const to_first{items[0].sums, steps[first.finer() ? 1 : 0]};
  add_code const to_second{items[1].sums, steps[second.finer() ? 1 : 0]};
  if (first.in_runs() && second.in_runs()) {
    add_in_turns<true>(first, to_first, second, to_second);
  } else if (!first.in_runs() && !second.in_runs()) {
    add_in_turns<false>(first, to_first, second, to_second);
  } else {
    first.in_runs() ? add_rest<true>(first, to_first) : add_rest<false>(first, to_first);
    second.in_runs() ? add_rest<true>(second, to_second) : add_rest<false>(second, to_second);
  }
}

}  // namespace tersum::inline v0::detail
