// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Bits and Golomb codes in words, one behind the other.

#pragma once

#include <tersum/config.hpp>
#include <tersum/quantize/rice_codes.hpp>

#include <cstdint>

namespace tersum::inline v0 {

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
