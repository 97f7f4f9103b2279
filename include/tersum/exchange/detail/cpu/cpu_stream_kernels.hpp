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
#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0::detail {

//! @brief Magnitudes of the codes of a chunk, and a bit for each that is not zero.
template <int Size>
struct step_codes {
  static constexpr auto size = static_cast<std::size_t>(Size);

  alignas(64) std::uint32_t magnitudes[size];
  std::uint64_t some[size / 64];
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

//! @brief The way with the fewest bits of a chunk whose codes are not all zero.
template <int Size>
[[nodiscard]] sized_orders choose_way(instruction_set set,
                                      step_codes<Size> const& codes,
                                      magnitude_counts const& counts)
{
  TERSUM_DISPATCH(set, true, choose_way<Size>(codes, counts));
}

//! @brief sent[i] is what the code of values[i] stands for, which is finite.
//! @param inverse  One over the step; 0 with step 0.
template <int Size>
void find_sent(instruction_set set, float const* values, float inverse, float step, float* sent)
{
  TERSUM_DISPATCH(set, true, find_sent<Size>(values, inverse, step, sent));
}

//! @brief The places of codes that are not zero, in order. Returns how many there are.
//! @param places  Has room for sixteen behind them.
template <int Size>
[[nodiscard]] std::uint32_t find_places(instruction_set set,
                                        step_codes<Size> const& codes,
                                        std::uint32_t* places)
{
  TERSUM_DISPATCH(set, true, find_places<Size>(codes, places));
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
  return chunk_head + choose_way(set, codes, counts).bits;
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
  magnitude_counts const counts = find_codes(set, values, ~0u, inverse, codes);
  rice_orders const orders      = choose_way(set, codes, counts).orders;
  auto const minus = [&](std::uint32_t place) { return float_bits(values[place]) >> 31; };
  window_writer::room room;
  window_writer out{from, room};
  out.put(head_bits(orders, finer), chunk_head);
  if (orders.runs == rice_orders::none) {
    for (std::uint32_t place = 0; place < size; ++place) {
      out.code(codes.magnitudes[place], minus(place), orders.magnitudes);
    }
  } else {
    std::uint32_t places[size + 16];
    std::uint32_t const count = find_places(set, codes, places);
    std::uint32_t begin       = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint32_t const place = places[i];
      if (orders.in_line == 0) {
        out.run_and_code(place - begin, codes.magnitudes[place], minus(place), orders);
      } else {
        if (place > begin) { out.zeros(place - begin, orders); }
        out.code(codes.magnitudes[place], minus(place), orders.magnitudes);
      }
      begin = place + 1;
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
    orders_.in_line    = in_.take(1) & (orders_.runs != rice_orders::none ? 1u : 0u);
    orders_.magnitudes = in_.take(5);
    finer_             = in_.take(1) != 0;
  }

  [[nodiscard]] TERSUM_HOST_INLINE bool finer() const { return finer_; }
  [[nodiscard]] TERSUM_HOST_INLINE bool in_runs() const
  {
    return orders_.runs != rice_orders::none && orders_.in_line == 0;
  }
  [[nodiscard]] TERSUM_HOST_INLINE bool more() const { return in_.more(); }

  //! @brief Calls visit(place, code, sign as the highest bit) for the next code.
  //! @tparam InRuns  What `in_runs` says.
  template <bool InRuns, class Visit>
  TERSUM_HOST_INLINE void read(Visit const& visit)
  {
    std::uint32_t code = 0, minus = 0, before = 0, behind = 0;  // zeros
    if constexpr (InRuns) {
      if (!in_.run_and_code(orders_, before, code, minus)) {
        before = in_.run(orders_.runs);
        minus  = in_.take(1);
        code   = in_.exponential(orders_.magnitudes) + 1;
      }
    } else if (!in_.code(orders_, behind, code, minus)) {
      code   = in_.rice(orders_.magnitudes);
      minus  = code != 0 ? in_.take(1) : 0u;
      behind = code == 0 && orders_.in_line != 0 ? in_.rice(orders_.runs) : 0u;
    }
    place_ += before;
    if (place_ >= size) {
      in_.stop();
      return;
    }
    visit(place_, code, minus << 31);
    place_ += 1 + behind;
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

//! @brief A chunk of which codes are read and added to sums.
template <int Size>
struct chunk_in_turn {
  chunk_reader<Size> in;
  float* sums;
  float step;

  template <bool InRuns>
  TERSUM_HOST_INLINE void add_next()
  {
    in.template read<InRuns>([&](std::uint32_t place, std::uint32_t code, std::uint32_t sign) {
      float const size = value_of_code(host_machine{}, code, step);
      sums[place]      = host_machine::add(sums[place], bits_float(float_bits(size) ^ sign));
    });
  }
  TERSUM_HOST_INLINE void add_next() { in.in_runs() ? add_next<true>() : add_next<false>(); }
};

//! @brief Codes of two chunks in turns, to the end of one of them. Whether they are `in_runs` is known.
template <bool FirstInRuns, bool SecondInRuns, int Size>
TERSUM_HOST_INLINE void add_turns(chunk_in_turn<Size>& first, chunk_in_turn<Size>& second)
{
  while (first.in.more() && second.in.more()) {
    first.template add_next<FirstInRuns>();
    second.template add_next<SecondInRuns>();
  }
}

//! @brief Adds the values of the codes of chunks to their sums. Two chunks are read in turns: where a code begins is known when
//! the one before has been read, and so one chunk alone would keep the processor waiting.
//! @param steps  Of codes, and of those that are finer.
//! @param items  Of the same message.
template <int Size>
void add_chunks(std::uint32_t const* words,
                std::uint64_t count,
                float const (&steps)[2],
                std::span<read_item const> items)
{
  window_reader::room rooms[2];
  std::size_t next = 0;
  auto const begin = [&](window_reader::room& room) -> chunk_in_turn<Size> {
    read_item const item = next < items.size() ? items[next] : read_item{};
    ++next;
    chunk_reader<Size> const in{words, count, item.from, item.bits, room};
    return {in, item.sums, steps[in.finer() ? 1 : 0]};
  };
  chunk_in_turn<Size> first = begin(rooms[0]), second = begin(rooms[1]);
  for (;;) {
    if (first.in.in_runs()) {
      second.in.in_runs() ? add_turns<true, true>(first, second)
                          : add_turns<true, false>(first, second);
    } else {
      second.in.in_runs() ? add_turns<false, true>(first, second)
                          : add_turns<false, false>(first, second);
    }
    if (next >= items.size()) { break; }
    if (first.in.more()) {
      second = begin(rooms[1]);
    } else {
      first = begin(rooms[0]);
    }
  }
  while (first.in.more()) { first.add_next(); }
  while (second.in.more()) { second.add_next(); }
}

}  // namespace tersum::inline v0::detail
