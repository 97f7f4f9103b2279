// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of a chunk in bits, as one CPU thread writes and reads them: through windows of 64 bits, which begin at a byte. What
//! they mean is said in `rice_codes.hpp`; the bits are those of `bit_streams.hpp`.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/quantize/rice_codes.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tersum::inline v0::detail {

//! Chunks have fewer bits.
inline constexpr std::uint32_t most_chunk_bits = 1u << 16;

//! @brief Writes bits to memory of its own, and adds them to a message at the end.
class window_writer {
 public:
  //! That memory. Apart, so that writers fit into registers.
  struct room {
    std::byte bytes[most_chunk_bits / 8 + 16];
  };

  static constexpr std::uint32_t window =
    56;  //!< Bits that `put` takes: with those of a byte before, they fill 64.

  //! @param from  The number of the first bit. The first `put` is of at most 32 bits.
  TERSUM_HOST_INLINE window_writer(std::uint32_t from, room& copy)
    : to_{copy.bytes}, held_{from % 32}, first_{from / 32}
  {
  }

  //! The `count` lowest bits of a value that has no others: at most `window`.
  TERSUM_HOST_INLINE void put(std::uint64_t value, std::uint32_t count)
  {
    pending_ |= value << held_;
    held_ += count;
    std::memcpy(to_, &pending_, sizeof pending_);
    to_ += held_ / 8;
    pending_ >>= held_ / 8 * 8;
    held_ %= 8;
  }

  //! Zeros, a one, and the `count` lowest bits of a value that has no others: at most 32.
  TERSUM_HOST_INLINE void put_behind(std::uint32_t zeros, std::uint64_t value, std::uint32_t count)
  {
    for (; zeros >= 24; zeros -= 24) { put(0, 24); }
    put((value << 1 | 1u) << zeros, zeros + 1 + count);
  }

  //! A number in a Golomb-Rice code and, unless it is zero, its sign.
  TERSUM_HOST_INLINE void code(std::uint32_t number, std::uint32_t minus, std::uint32_t order)
  {
    std::uint32_t const sign = number != 0 ? 1u : 0u;
    std::uint64_t const rest = number & ((1u << order) - 1);
    put_behind(number >> order, rest | std::uint64_t{minus & sign} << order, order + sign);
  }

  //! A run of zeros, and the code behind it, which is not zero.
  TERSUM_HOST_INLINE void run_and_code(std::uint32_t zeros,
                                       std::uint32_t number,
                                       std::uint32_t minus,
                                       rice_orders orders)
  {
    std::uint32_t const moved      = number - 1 + (1u << orders.magnitudes);
    auto const bits                = static_cast<std::uint32_t>(std::bit_width(moved)) - 1;
    std::uint32_t const longer     = bits - orders.magnitudes;
    std::uint64_t const rest       = moved - (1u << bits);
    std::uint32_t const order      = zeros > 0 ? orders.runs : 0u;
    std::uint32_t const many       = zeros > 0 ? ((zeros - 1) >> order) + 1 : 0u;
    std::uint64_t const few        = (zeros - 1) & ((1u << order) - 1);
    std::uint64_t const signed_few = few | std::uint64_t{minus} << order;
    std::uint32_t const first      = many + 1 + order + 1;
    std::uint32_t const second     = longer + 1 + bits;
    if (first + second <= window) {
      put((signed_few << 1 | 1u) << many | (rest << 1 | 1u) << longer << first, first + second);
    } else {
      put_behind(many, signed_few, order + 1);
      put_behind(longer, rest, bits);
    }
  }

  //! Zeros in line.
  TERSUM_HOST_INLINE void zeros(std::uint32_t count, rice_orders orders)
  {
    std::uint32_t const more = count - 1;
    put(1, 1 + orders.magnitudes);
    put_behind(more >> orders.runs, more & ((1u << orders.runs) - 1), orders.runs);
  }

  //! Adds the bits to the words of the message, whose first and last may hold bits of other chunks.
  TERSUM_HOST_INLINE void finish(std::uint32_t* words, room const& copy)
  {
    std::memcpy(to_, &pending_, sizeof pending_);
    auto const bits  = static_cast<std::size_t>(to_ - copy.bytes) * 8 + held_;
    auto const count = (bits + 31) / 32;
    auto const add   = [&](std::size_t i) {
      std::uint32_t word;
      std::memcpy(&word, copy.bytes + 4 * i, sizeof word);
      __atomic_fetch_add(words + first_ + i, word, __ATOMIC_RELAXED);
    };
    add(0);
    if (count > 1) { add(count - 1); }
    if (count > 2) { std::memcpy(words + first_ + 1, copy.bytes + 4, 4 * (count - 2)); }
  }

 private:
  std::byte* to_;
  std::uint64_t pending_ = 0;
  std::uint32_t held_;
  std::uint32_t first_;
};

//! @brief Reads what `window_writer` or `bit_writer` wrote, and of other words the same as `bit_reader`.
class window_reader {
  //! Words behind the last bit: a code that begins before it may end less than 200 bits behind it.
  static constexpr std::uint32_t beyond = 10;

 public:
  //! Room for words of which some lie behind the last. Apart, so that readers fit into registers.
  struct room {
    std::uint32_t words[most_chunk_bits / 32 + 1 + beyond];
  };

  //! @param count  Words that there are.
  //! @param from   The number of the first bit.
  //! @param bits   How many are to be read: less than `most_chunk_bits`.
  TERSUM_HOST_INLINE window_reader(std::uint32_t const* words,
                                   std::uint64_t count,
                                   std::uint32_t from,
                                   std::uint32_t bits,
                                   room& copy)
    : bytes_{reinterpret_cast<std::byte const*>(words + from / 32)}, at_{from % 32}, end_{from %
                                                                                            32 +
                                                                                          bits}
  {
    std::uint64_t const left = from / 32 < count ? count - from / 32 : 0;
    std::uint64_t const size = end_ / 32 + beyond;
    if (left < size) {
      // Zeros behind the end.
      if (left > 0) { std::memcpy(copy.words, words + from / 32, left * sizeof(std::uint32_t)); }
      std::fill(copy.words + left, copy.words + size, 0u);
      bytes_ = reinterpret_cast<std::byte const*>(copy.words);
    }
  }

  //! Whether there is another bit.
  [[nodiscard]] TERSUM_HOST_INLINE bool more() const { return at_ < end_; }

  //! At most 31 bits.
  [[nodiscard]] TERSUM_HOST_INLINE std::uint32_t take(std::uint32_t count)
  {
    std::uint64_t const value = next() & ((std::uint64_t{1} << count) - 1);
    at_ += count;
    return static_cast<std::uint32_t>(value);
  }

  [[nodiscard]] TERSUM_HOST_INLINE std::uint32_t rice(std::uint32_t order)
  {
    std::uint32_t const zeros = this->zeros();
    return (zeros << order) + take(order);
  }

  //! A number of zeros before a code.
  [[nodiscard]] TERSUM_HOST_INLINE std::uint32_t run(std::uint32_t order)
  {
    return take(1) != 0 ? 0u : rice(order) + 1;
  }

  [[nodiscard]] TERSUM_HOST_INLINE std::uint32_t exponential(std::uint32_t order)
  {
    std::uint32_t const bits = (zeros() + order) & 31u;  // of no message that was disturbed more
    return (1u << bits) + take(bits) - (1u << order);
  }

  //! Nothing more is read.
  TERSUM_HOST_INLINE void stop() { at_ = end_; }

  //! @name Codes from one window
  //! If not all of it lies there, they read nothing and return false.
  //! @{
  //! The magnitude of a code and, unless it is zero, its sign; in line, of a zero how many follow it.
  [[nodiscard]] TERSUM_HOST_INLINE bool code(rice_orders orders,
                                             std::uint32_t& zeros,
                                             std::uint32_t& code,
                                             std::uint32_t& minus)
  {
    std::uint32_t const order = orders.magnitudes;
    std::uint64_t const all   = next();
    auto const many           = static_cast<std::uint32_t>(std::countr_zero(all | last_bit));
    std::uint64_t const rest  = all >> many >> 1;
    std::uint64_t const after = rest >> order;  // the sign, or a number of zeros
    auto const high           = static_cast<std::uint32_t>(std::countr_zero(after | last_bit));
    auto const low = static_cast<std::uint32_t>(after >> high >> 1) & ((1u << orders.runs) - 1);
    code = (many << order) + static_cast<std::uint32_t>(rest & ((std::uint64_t{1} << order) - 1));
    std::uint32_t const is_zero = code == 0 ? 1u : 0u;
    std::uint32_t const counted = 0u - (is_zero & orders.in_line);  // all bits or none
    std::uint32_t const taken =
      many + 1 + order + (is_zero ^ 1u) + (counted & (high + 1 + orders.runs));
    if (taken > window) { return false; }
    zeros = counted & ((high << orders.runs) + low);
    minus = static_cast<std::uint32_t>(after) & (is_zero ^ 1u);
    at_ += taken;
    return true;
  }
  //! A run of zeros, and the magnitude and the sign of the code behind it.
  [[nodiscard]] TERSUM_HOST_INLINE bool run_and_code(rice_orders orders,
                                                     std::uint32_t& zeros,
                                                     std::uint32_t& code,
                                                     std::uint32_t& minus)
  {
    std::uint64_t const all   = next();
    auto const many           = static_cast<std::uint32_t>(std::countr_zero(all | last_bit));
    std::uint64_t const few   = all >> many >> 1;
    std::uint32_t const order = orders.runs & (0u - static_cast<std::uint32_t>(many != 0));
    std::uint64_t const signs = few >> order;
    std::uint64_t const ones  = signs >> 1;
    auto const longer         = static_cast<std::uint32_t>(std::countr_zero(ones | last_bit));
    std::uint32_t const bits  = longer + orders.magnitudes;
    std::uint32_t const taken = many + order + longer + bits + 3;
    if (taken > window || bits > 31 || many > 32) { return false; }
    std::uint32_t const highest = 1u << bits;
    auto const rest             = static_cast<std::uint32_t>(ones >> longer >> 1);
    // Less 2^order, plus one: 0 without an order.
    zeros =
      (many << order) + (static_cast<std::uint32_t>(few) & ((1u << order) - 1)) + 1 - (1u << order);
    minus = static_cast<std::uint32_t>(signs) & 1u;
    code  = highest + (rest & (highest - 1)) - (1u << orders.magnitudes) + 1;
    at_ += taken;
    return true;
  }
  //! @}

 private:
  static constexpr std::uint32_t window   = 57;                      //!< Bits that `next` has.
  static constexpr std::uint64_t last_bit = std::uint64_t{1} << 63;  //!< Behind them.
  [[nodiscard]] TERSUM_HOST_INLINE std::uint64_t next() const
  {
    std::uint64_t bits;
    std::memcpy(&bits, bytes_ + at_ / 8, sizeof bits);
    return bits >> at_ % 8;
  }
  //! Zeros up to the next one, which is read, too: 32 at once, while there are more bits.
  [[nodiscard]] TERSUM_HOST_INLINE std::uint32_t zeros()
  {
    std::uint32_t count = 0;
    auto low            = static_cast<std::uint32_t>(next());
    while (low == 0 && more()) {
      count += 32;
      at_ += 32;
      low = static_cast<std::uint32_t>(next());
    }
    if (low != 0) {
      auto const here = static_cast<std::uint32_t>(std::countr_zero(low));
      count += here;
      at_ += here + 1;
    }
    return count;
  }

  std::byte const* bytes_;
  std::uint32_t at_;
  std::uint32_t end_;
};

}  // namespace tersum::inline v0::detail
