// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Integers in about as many bits as they have information, by adaptive arithmetic coding. For the CPU.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! The probability that a bit is 0, in units of 2^-15, as learned from the bits before: each moves it by 1/32 of what is missing.
struct adaptive_bit {
  std::uint16_t zero = 1 << 14;

  constexpr void learn(bool bit) noexcept
  {
    unsigned const now = zero;
    zero = static_cast<std::uint16_t>(bit ? now - (now >> 5) : now + ((32768 - now) >> 5));
  }
};

//! @brief Writes bits, each in -log2 of its probability bits: a range coder of binary decisions.
//!
//! It is the coder of LZMA (Pavlov), after G. N. N. Martin, "Range encoding" (1979). Only integers: the bytes are the same everywhere.
class entropy_encoder {
 public:
  //! @param room  Where the bytes go. Once they do not fit, none is written beyond it, and `fits` is false.
  explicit constexpr entropy_encoder(std::span<std::byte> room) noexcept : room_(room) {}

  //! Writes a bit, of which `probability` then learns. Returns it, as the decoder does.
  constexpr bool bit(adaptive_bit& probability, bool bit) noexcept
  {
    std::uint32_t const bound = (range_ >> 15) * probability.zero;
    if (bit) {
      low_ += bound;
      range_ -= bound;
    } else {
      range_ = bound;
    }
    probability.learn(bit);
    fill();
    return bit;
  }

  //! Writes a bit that is 0 or 1 equally often, in one bit.
  constexpr bool even_bit(bool bit) noexcept
  {
    range_ >>= 1;
    if (bit) { low_ += range_; }
    fill();
    return bit;
  }

  //! Writes what is pending. Returns how many bytes there are: the last is not zero.
  constexpr std::size_t finish() noexcept
  {
    for (int i = 0; i < 5; ++i) { shift(); }
    while (fits() && size_ > 0 && room_[size_ - 1] == std::byte{}) { --size_; }
    return size_;
  }

  [[nodiscard]] constexpr bool fits() const noexcept { return size_ <= room_.size(); }

 private:
  constexpr void fill() noexcept
  {
    while (range_ < (1u << 24)) {
      range_ <<= 8;
      shift();
    }
  }

  // The highest byte of low is final unless a carry may still come: then it waits, with all bytes of ones behind it.
  constexpr void shift() noexcept
  {
    if (low_ < 0xff000000u || (low_ >> 32) != 0) {
      auto const carry = static_cast<std::uint8_t>(low_ >> 32);
      for (; waiting_ > 0; --waiting_) {
        put(static_cast<std::byte>(static_cast<std::uint8_t>(first_ + carry)));
        first_ = 0xff;
      }
      first_ = static_cast<std::uint8_t>(low_ >> 24);
    }
    ++waiting_;
    low_ = (low_ & 0xffffff) << 8;
  }

  constexpr void put(std::byte byte) noexcept
  {
    // The first byte is always zero, since low stays below 2^32 until one was shifted out.
    if (begun_ && size_ < room_.size()) { room_[size_] = byte; }
    if (begun_ && size_ <= room_.size()) { ++size_; }
    begun_ = true;
  }

  std::span<std::byte> room_;
  std::uint64_t low_     = 0;
  std::uint64_t waiting_ = 1;
  std::size_t size_      = 0;
  std::uint32_t range_   = ~0u;
  std::uint8_t first_    = 0;
  bool begun_            = false;
};

//! Reads what `entropy_encoder` wrote, with the same probabilities in the same order. Behind the end it reads zeros: whatever the
//! bytes are, it returns bits.
class entropy_decoder {
 public:
  explicit constexpr entropy_decoder(std::span<std::byte const> bytes) noexcept : bytes_(bytes)
  {
    for (int i = 0; i < 4; ++i) { code_ = code_ << 8 | next(); }
  }

  //! The next bit; the second argument is ignored, so that one function can both write and read.
  constexpr bool bit(adaptive_bit& probability, bool = false) noexcept
  {
    std::uint32_t const bound = (range_ >> 15) * probability.zero;
    bool const bit            = code_ >= bound;
    if (bit) {
      code_ -= bound;
      range_ -= bound;
    } else {
      range_ = bound;
    }
    probability.learn(bit);
    fill();
    return bit;
  }

  constexpr bool even_bit(bool = false) noexcept
  {
    range_ >>= 1;
    bool const bit = code_ >= range_;
    if (bit) { code_ -= range_; }
    fill();
    return bit;
  }

 private:
  constexpr void fill() noexcept
  {
    while (range_ < (1u << 24)) {
      range_ <<= 8;
      code_ = code_ << 8 | next();
    }
  }
  constexpr std::uint32_t next() noexcept
  {
    return read_ < bytes_.size() ? std::to_integer<std::uint32_t>(bytes_[read_++]) : 0;
  }

  std::span<std::byte const> bytes_;
  std::size_t read_    = 0;
  std::uint32_t range_ = ~0u;
  std::uint32_t code_  = 0;
};

//! @brief What is known of the next code from those before: many zeros, neighbours of like magnitude, either sign.
//!
//! A code is written as: is it 0, its sign, the bits of its magnitude as Elias' gamma counts them, one after the other, then the bits
//! below the highest. Probabilities are kept apart by the mean magnitudes of some 4 and some 32 codes before, and by whether the last
//! two were 0.
class code_model {
 public:
  static constexpr std::int32_t max_code = (1 << 24) - 1;  //!< The largest magnitude of a code.

  //! Writes a code within +-`max_code`, or reads one, whatever is given; returns it.
  //! @param coder  An `entropy_encoder` or an `entropy_decoder`.
  template <class Coder>
  constexpr std::int32_t pass(Coder& coder, std::int32_t code = 0) noexcept
  {
    auto const given   = static_cast<std::uint32_t>(code < 0 ? -code : code);
    unsigned const few = level(few_);
    bool negative      = false;
    std::uint32_t size = 0;
    bool const some =
      coder.bit(nonzero_[(few * levels + level(many_)) * 4 + nonzero_before_], given != 0);
    if (some) {
      negative        = coder.even_bit(code < 0);
      unsigned length = 0;
      while (length < 23 && coder.bit(longer_[few * 23 + length], given >> (length + 1) != 0)) {
        ++length;
      }
      size = 1;
      for (unsigned below = length; below-- > 0;) {
        bool const bit = (given >> below & 1) != 0;
        bool const one =
          below + 1 == length ? coder.bit(second_[length], bit) : coder.even_bit(bit);
        size = size * 2 + (one ? 1 : 0);
      }
    }
    // Means in units of 1/64; rounding keeps them from ever going below zero.
    std::uint32_t const seen = std::min(size, 255u) * 64;
    few_ += seen / 4 - few_ / 4;
    many_ += seen / 32 - many_ / 32;
    nonzero_before_ = (nonzero_before_ << 1 | (some ? 1u : 0u)) & 3u;
    auto const read = static_cast<std::int32_t>(size);
    return negative ? -read : read;
  }

 private:
  static constexpr unsigned levels = 16;
  static constexpr unsigned level(std::uint32_t mean) noexcept
  {
    return std::min(static_cast<unsigned>(std::bit_width(mean)), levels - 1);
  }

  std::array<adaptive_bit, levels * levels * 4> nonzero_{};
  std::array<adaptive_bit, levels * 23> longer_{};
  std::array<adaptive_bit, 24> second_{};
  std::uint32_t few_ = 0, many_ = 0;
  unsigned nonzero_before_ = 0;
};

}  // namespace tersum::inline v0
