// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Integers of a chunk in bits of unlike number: zeros as runs, everything in Golomb-Rice codes.

#pragma once

#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/types.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! @brief How the codes of a chunk are written.
//!
//! Under order k a number is as many zeros as it has multiples of 2^k, a one, and the k bits that remain, from the lowest on: Golomb-Rice
//! (Golomb 1966, Rice 1979). Exponential-Golomb codes (Teuhola 1978) of order k are of the number plus 2^k: a zero for each of its bits
//! beyond k + 1, a one, and its bits but the highest.
//!
//! Each code that is not zero is the number of zeros before it, its sign, and its magnitude less one in an exponential-Golomb code; zeros
//! behind the last are not written. Where `runs` is `none`, hardly any code is zero: each is its magnitude in a Golomb-Rice code and, unless
//! that is zero, its sign.
struct rice_orders {
  static constexpr std::uint32_t none = 15;

  std::uint32_t runs       = 0;  //!< Below 15, or `none`.
  std::uint32_t magnitudes = 0;  //!< Below 32.

  friend constexpr bool operator==(rice_orders, rice_orders) noexcept = default;
};

//! @brief What the orders of a chunk follow from.
struct magnitude_counts {
  std::uint32_t some = 0;  //!< Codes that are not zero.
  std::uint32_t end  = 0;  //!< One more than the place of the last of them.
  std::uint64_t sum  = 0;  //!< Of their magnitudes.
};

//! The order under which `count` numbers of this sum are shortest, if they are distributed geometrically (Kiely 2004, with .481 as 62/129).
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t rice_order(std::uint32_t count,
                                                               std::uint64_t sum)
{
  std::uint64_t const limit = 31 * (2 * sum + count);
  std::uint64_t reach       = std::uint64_t{count} * 129;
  std::uint32_t order       = 0;
  while (reach <= limit && order < 30) {
    reach *= 2;
    ++order;
  }
  return order;
}

//! The orders of a chunk of `size` codes, not all of which are zero, by what both ways are expected to take.
[[nodiscard]] TERSUM_INLINE constexpr rice_orders choose_orders(std::uint32_t size,
                                                                magnitude_counts const& counts)
{
  std::uint32_t const some   = counts.some;
  std::uint32_t const zeros  = counts.end - some;
  std::uint64_t const beyond = counts.sum - some;
  std::uint32_t const runs   = rice_order(some, zeros);
  std::uint32_t const one    = rice_order(some, beyond);
  std::uint32_t const all    = rice_order(size, counts.sum);
  std::uint64_t const as_runs =
    std::uint64_t{some} * (2 + runs + one) + (zeros >> runs) + (beyond >> one);
  std::uint64_t const as_all = std::uint64_t{size} * (1 + all) + (counts.sum >> all);
  if (as_all < as_runs) { return {rice_orders::none, all}; }
  return {runs, one > 0 ? one - 1 : 0};
}

//! One less than the bits of a number above zero and below 2^31.
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t floor_log2(std::uint32_t number)
{
  // A float holds 24 bits.
  std::uint32_t const below = number >> 24 != 0 ? 8u : 0u;
  return (detail::float_bits(static_cast<float>(number >> below)) >> 23) - 127 + below;
}

//! Bits of a number in an exponential-Golomb code; both together are below 2^31.
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t exponential_bits(std::uint32_t number,
                                                                     std::uint32_t order)
{
  return 2 * floor_log2(number + (1u << order)) + 1 - order;
}

//! Bits of a number in a Golomb-Rice code.
[[nodiscard]] TERSUM_INLINE constexpr std::uint32_t rice_bits(std::uint32_t number,
                                                              std::uint32_t order)
{
  return (number >> order) + 1 + order;
}

//! @brief The magnitude of the code of a value: that of the nearest multiple of a step but for a dead zone, which saves more than it loses where
//! codes have unlike lengths. From .6 of a step on a value counts as the next one.
//! @param inverse  One over the step; the quotient must be below 2^30.
TERSUM_EXEC_CHECK_DISABLE
template <class Arithmetic>
[[nodiscard]] TERSUM_INLINE std::uint32_t code_magnitude(Arithmetic const&,
                                                         float value,
                                                         float inverse)
{
  float const magnitude = detail::bits_float(detail::float_bits(value) & 0x7fffffffu);
  float const quotient  = Arithmetic::multiply(magnitude, inverse);
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(Arithmetic::add(quotient, 0.4f)));
}

//! @brief Writes bits to words of zeros, from the lowest bit of each on. The first and the last word may hold bits of others: it adds to
//! them. All words between are its own.
//! @tparam Machine  Has store(word*, word) and atomic_add(word*, word): a block context, or `host_machine`.
template <class Machine>
class bit_writer {
 public:
  //! @param from  The number of the first bit.
  TERSUM_EXEC_CHECK_DISABLE
  TERSUM_INLINE bit_writer(Machine const& machine, std::uint32_t* words, std::uint32_t from)
    : machine_{&machine}, word_{words + from / 32}, held_{from % 32}
  {
  }

  //! The `count` lowest bits of a value that has no others: at most 32.
  TERSUM_EXEC_CHECK_DISABLE
  TERSUM_INLINE void put(std::uint32_t value, std::uint32_t count)
  {
    pending_ |= static_cast<std::uint64_t>(value) << held_;
    held_ += count;
    if (held_ >= 32) {
      auto const word = static_cast<std::uint32_t>(pending_);
      if (first_) {
        machine_->atomic_add(word_, word);
      } else {
        machine_->store(word_, word);
      }
      first_ = false;
      ++word_;
      pending_ >>= 32;
      held_ -= 32;
    }
  }

  //! A number in a Golomb-Rice code.
  TERSUM_EXEC_CHECK_DISABLE
  TERSUM_INLINE void rice(std::uint32_t number, std::uint32_t order)
  {
    std::uint32_t zeros = number >> order;
    for (; zeros >= 32; zeros -= 32) { put(0, 32); }
    put(1u << zeros, zeros + 1);
    put(number & ((1u << order) - 1), order);
  }

  //! A number in an exponential-Golomb code.
  TERSUM_EXEC_CHECK_DISABLE
  TERSUM_INLINE void exponential(std::uint32_t number, std::uint32_t order)
  {
    std::uint32_t const moved = number + (1u << order);
    std::uint32_t const bits  = floor_log2(moved);
    put(1u << (bits - order), bits - order + 1);
    put(moved - (1u << bits), bits);
  }

  //! The bits that do not fill a word.
  TERSUM_EXEC_CHECK_DISABLE
  TERSUM_INLINE void finish()
  {
    if (held_ > 0) { machine_->atomic_add(word_, static_cast<std::uint32_t>(pending_)); }
  }

 private:
  Machine const* machine_;
  std::uint32_t* word_;
  std::uint64_t pending_ = 0;
  std::uint32_t held_;
  bool first_ = true;
};

//! @brief Reads what `bit_writer` wrote. Whatever the words are, it ends, and reads none behind the last.
//! @tparam Machine  Has load(word const*) and population(word): a block context, or `host_machine`.
template <class Machine>
class bit_reader {
 public:
  //! @param count  Words that there are.
  //! @param from   The number of the first bit.
  //! @param bits   How many are to be read.
  TERSUM_EXEC_CHECK_DISABLE
  TERSUM_INLINE bit_reader(Machine const& machine,
                           std::uint32_t const* words,
                           std::uint64_t count,
                           std::uint32_t from,
                           std::uint32_t bits)
    : machine_{&machine}, words_{words}, count_{count}, next_{from / 32},
      left_{static_cast<std::int32_t>(bits)}
  {
    fill();
    drop(from % 32);
    left_ += static_cast<std::int32_t>(from % 32);
    fill();
  }

  //! Whether there is another bit.
  [[nodiscard]] TERSUM_INLINE bool more() const { return left_ > 0; }

  //! At most 31 bits.
  TERSUM_EXEC_CHECK_DISABLE
  [[nodiscard]] TERSUM_INLINE std::uint32_t take(std::uint32_t count)
  {
    std::uint32_t const value = static_cast<std::uint32_t>(pending_) & ((1u << count) - 1);
    drop(count);
    fill();
    return value;
  }

  TERSUM_EXEC_CHECK_DISABLE
  [[nodiscard]] TERSUM_INLINE std::uint32_t rice(std::uint32_t order)
  {
    std::uint32_t const zeros = this->zeros();
    return (zeros << order) + take(order);
  }

  TERSUM_EXEC_CHECK_DISABLE
  [[nodiscard]] TERSUM_INLINE std::uint32_t exponential(std::uint32_t order)
  {
    std::uint32_t const bits = (zeros() + order) & 31u;  // of no message that was disturbed more
    return (1u << bits) + take(bits) - (1u << (order & 31u));
  }

 private:
  TERSUM_INLINE void drop(std::uint32_t count)
  {
    pending_ >>= count;
    held_ -= static_cast<std::int32_t>(count);
    left_ -= static_cast<std::int32_t>(count);
  }
  //! Zeros up to the next one, which is dropped, too.
  TERSUM_EXEC_CHECK_DISABLE
  [[nodiscard]] TERSUM_INLINE std::uint32_t zeros()
  {
    std::uint32_t count = 0;
    auto low            = static_cast<std::uint32_t>(pending_);
    while (low == 0 && more()) {
      count += 32;
      drop(32);
      fill();
      low = static_cast<std::uint32_t>(pending_);
    }
    if (low != 0) {
      std::uint32_t const here = Machine::population((low & (0u - low)) - 1);
      count += here;
      drop(here);
      drop(1);
      fill();
    }
    return count;
  }
  //! So that at least 32 bits are at hand.
  TERSUM_EXEC_CHECK_DISABLE
  TERSUM_INLINE void fill()
  {
    while (held_ < 32) {
      std::uint64_t const word = next_ < count_ ? machine_->load(words_ + next_) : 0u;
      pending_ |= word << held_;
      held_ += 32;
      ++next_;
    }
  }

  Machine const* machine_;
  std::uint32_t const* words_;
  std::uint64_t count_;
  std::uint64_t next_;
  std::uint64_t pending_ = 0;
  std::int32_t held_     = 0;
  std::int32_t left_;
};

}  // namespace tersum::inline v0
