// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The block context of the emulator: what a kernel body sees of its thread and block.

#pragma once

#include "../tile_product.hpp"
#include "block.hpp"

#include <tersum/random/philox.hpp>
#include <tersum/types.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>

namespace tersum::emulator {

//! @brief A block context made of fibers. Same meaning, operation by operation, as the CUDA one,
//! but for one thing: what is undefined there ends the launch with a failure here.
class host_context {
 public:
  host_context(block& owner, unsigned thread) : block_{&owner}, thread_{thread} {}

  [[nodiscard]] unsigned thread_rank() const { return thread_; }
  [[nodiscard]] unsigned block_threads() const { return block_->shape().threads; }
  [[nodiscard]] std::uint32_t block_rank() const { return block_->rank(); }
  [[nodiscard]] std::uint32_t grid_blocks() const { return block_->shape().blocks; }
  [[nodiscard]] void* shared() const { return block_->shared(); }

  void sync_block() const { block_->wait(thread_, activity::sync_block); }
  void sync_warp() const { block_->wait(thread_, activity::sync_warp); }

  //! @name Of a launch whose blocks run together
  //! @{
  [[nodiscard]] std::uint32_t arrive_grid() const { return block_->arrive_grid(thread_); }
  void wait_grid(std::uint32_t arrival) const { block_->wait_grid(thread_, arrival); }
  //! @}

  template <class T>
  [[nodiscard]] T shuffle_xor(T value, unsigned mask) const
  {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, std::uint32_t>);
    if (mask >= block::warp_threads) {
      block_->fail(thread_, "shuffles with the mask ", mask, ", above 31");
    }
    auto const word   = std::bit_cast<std::uint32_t>(value);
    auto const* words = block_->exchange(thread_, activity::shuffle_xor, word);
    return std::bit_cast<T>(words[(thread_ % block::warp_threads) ^ mask]);
  }

  template <class T>
  [[nodiscard]] T shuffle(T value, std::uint32_t from) const
  {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, std::uint32_t>);
    auto const word   = std::bit_cast<std::uint32_t>(value);
    auto const* words = block_->exchange(thread_, activity::shuffle, word);
    return std::bit_cast<T>(words[from % block::warp_threads]);
  }

  [[nodiscard]] std::uint32_t warp_sum(std::uint32_t value) const
  {
    auto const* words = block_->exchange(thread_, activity::warp_sum, value);
    return std::accumulate(words, words + block::warp_threads, std::uint32_t{0});
  }

  [[nodiscard]] std::uint32_t warp_max(std::uint32_t value) const
  {
    auto const* words = block_->exchange(thread_, activity::warp_max, value);
    return *std::max_element(words, words + block::warp_threads);
  }

  [[nodiscard]] unsigned lane() const { return thread_ % block::warp_threads; }

  //! The sum of the values of the lanes up to this one.
  [[nodiscard]] std::uint32_t warp_scan(std::uint32_t value) const
  {
    auto const* words = block_->exchange(thread_, activity::warp_sum, value);
    return std::accumulate(words, words + lane(), value);
  }

  //! @name Value j of lane l is place l % 4 of the row of four floats that lane 8 j + l/4 points to
  //! @{
  void load_matrix(float const* row, float* v) const
  {
    place_in_rows(row, [&](unsigned j, float* at) { v[j] = load(at); });
  }
  void store_matrix(float* row, float const* v) const
  {
    place_in_rows(row, [&](unsigned j, float* at) { store(at, v[j]); });
  }
  //! @}

  //! @brief c += a b, where a is 16 x 16, b 16 x 8 and c 16 x 8: `mma.m16n8k16` with operands of halves.
  //!
  //! The lanes hold the tiles as PTX's section on the fragments of that instruction says: two neighbours of a row of a,
  //! or of a column of b, in a word. Products are exact, their sum is double, and is rounded once.
  void multiply_tiles(float (&c)[4],
                      std::uint32_t const (&a)[4],
                      std::uint32_t b0,
                      std::uint32_t b1) const
  {
    add_tile_products(a, b0, b1, [&](unsigned i, auto const& product) {
      c[i] = static_cast<float>(product(static_cast<double>(c[i])));
    });
  }

  //! @brief The same product of halves, rounded once to half: the two of a row in a word.
  void multiply_tiles_to_half(std::uint32_t (&d)[2],
                              std::uint32_t const (&a)[4],
                              std::uint32_t b0,
                              std::uint32_t b1) const
  {
    d[0] = d[1] = 0;
    add_tile_products(a, b0, b1, [&](unsigned i, auto const& product) {
      std::uint32_t const bits = from_float<half>(static_cast<float>(product(0.0))).bits;
      d[i / 2] |= bits << 16 * (i % 2);
    });
  }

  template <class Element>
  [[nodiscard]] static std::uint32_t add_pair(std::uint32_t a, std::uint32_t b)
  {
    std::uint32_t sum = 0;
    for (unsigned shift = 0; shift < 32; shift += 16) {
      float const first  = to_float(Element::from_bits(static_cast<std::uint16_t>(a >> shift)));
      float const second = to_float(Element::from_bits(static_cast<std::uint16_t>(b >> shift)));
      sum |= std::uint32_t{from_float<Element>(first + second).bits} << shift;
    }
    return sum;
  }

  [[nodiscard]] static std::uint32_t minus_pair(float first, float second)
  {
    return (std::signbit(first) ? 0xffffu : 0u) | (std::signbit(second) ? 0xffff0000u : 0u);
  }
  [[nodiscard]] static std::uint32_t min_pair(std::uint32_t a, std::uint32_t b)
  {
    return std::min(a >> 16, b >> 16) << 16 | std::min(a & 0xffffu, b & 0xffffu);
  }

  //! @brief One access of sizeof(T) bytes.
  template <class T>
  [[nodiscard]] T load(T const* address) const
  {
    check_access(address, "loads");
    T value;
    std::memcpy(&value, address, sizeof(T));  // a kernel may view the same bytes as several types
    return value;
  }

  //! @brief One access of sizeof(T) bytes.
  template <class T>
  void store(T* address, T value) const
  {
    check_access(address, "stores");
    std::memcpy(address, &value, sizeof(T));
  }

  void store_global(word4* address, word4 const& value) const { store(address, value); }

  // Fibers run one at a time: any update is atomic.
  void atomic_add(std::uint32_t* address, std::uint32_t value) const
  {
    check_access(address, "adds");
    *address += value;
  }
  void atomic_add(std::uint64_t* address, std::uint64_t value) const
  {
    check_access(address, "adds");
    *address += value;
  }
  void atomic_max(std::uint32_t* address, std::uint32_t value) const
  {
    check_access(address, "raises");
    *address = *address < value ? value : *address;
  }
  bool is_last(std::uint32_t* counter, std::uint32_t calls) const
  {
    check_access(counter, "counts");
    bool const last = ++*counter == calls;
    if (last) { *counter = 0; }
    return last;
  }
  void atomic_or(std::uint32_t* address, std::uint32_t value) const
  {
    check_access(address, "ors");
    *address |= value;
  }

  // Each is rounded once. Inlined, the compiler might contract a product into a sum that follows.
  [[gnu::noinline]] static float add(float a, float b) { return a + b; }
  [[gnu::noinline]] static float subtract(float a, float b) { return a - b; }
  [[gnu::noinline]] static float multiply(float a, float b) { return a * b; }
  [[gnu::noinline]] static float divide(float a, float b) { return a / b; }
  [[gnu::noinline]] static float fma(float a, float b, float c) { return std::fma(a, b, c); }
  [[gnu::noinline]] static double fma(double a, double b, double c) { return std::fma(a, b, c); }
  [[gnu::noinline]] static float square_root(float a) { return std::sqrt(a); }
  static constexpr bool adds_two =
    true;  //!< In the order of a GPU that does; the bits are the same.
  static void two_butterflies(float& a0, float& a1, float& b0, float& b1)
  {
    float const less0 = subtract(a0, b0), less1 = subtract(a1, b1);
    a0 = add(a0, b0);
    a1 = add(a1, b1);
    b0 = less0;
    b1 = less1;
  }
  static void butterfly(float& a, float& b)
  {
    float const less = fma(b, -1.0f, a);
    a                = fma(b, 1.0f, a);
    b                = less;
  }
  static void two_fma(float& a0, float& a1, float b, float c)
  {
    a0 = fma(a0, b, c);
    a1 = fma(a1, b, c);
  }
  [[gnu::noinline]] static float divide_moderate(float a, float b) { return a / b; }
  [[gnu::noinline]] static float square_root_moderate(float a) { return std::sqrt(a); }
  [[gnu::noinline]] static float square_root_from_zero(float a) { return std::sqrt(a); }

  [[nodiscard]] static float max_magnitude(float most, float a)
  {
    return std::isnan(most) || std::isnan(a) ? std::numeric_limits<float>::quiet_NaN()
                                             : std::max(most, std::abs(a));
  }

  [[nodiscard]] static float fma_within_one(float a, float b, float c)
  {
    return std::min(1.0f, std::max(0.0f, fma(a, b, c)));  // NaN becomes 0, as on a device
  }

  [[nodiscard]] static std::uint32_t bits(float value)
  {
    return std::bit_cast<std::uint32_t>(value);
  }
  [[nodiscard]] static float from_bits(std::uint32_t word) { return std::bit_cast<float>(word); }

  //! Byte k of the result is the byte of (a: 0 to 3, b: 4 to 7) that nibble k of `selector` names.
  [[nodiscard]] static std::uint32_t select_bytes(std::uint32_t a,
                                                  std::uint32_t b,
                                                  std::uint32_t selector)
  {
    std::uint64_t const bytes = a | static_cast<std::uint64_t>(b) << 32;
    std::uint32_t result      = 0;
    for (unsigned k = 0; k < 4; ++k) {
      unsigned const chosen = selector >> (4 * k) & 7U;
      result |= static_cast<std::uint32_t>(bytes >> (8 * chosen) & 0xFFU) << (8 * k);
    }
    return result;
  }

  //! max(min(a + b, high), 0) where a + b does not wrap.
  [[nodiscard]] static std::int32_t add_clamp(std::int32_t a, std::int32_t b, std::int32_t high)
  {
    std::int64_t const sum = std::int64_t{a} + b;  // what hostile norms make may wrap on a device
    return static_cast<std::int32_t>(std::max<std::int64_t>(std::min<std::int64_t>(sum, high), 0));
  }

  using product = wide_product;  //!< How `philox4x32` multiplies.

  [[nodiscard]] static std::uint32_t population(std::uint32_t word)
  {
    return static_cast<std::uint32_t>(std::popcount(word));
  }

  //! sum + the scalar product of the unsigned bytes of a and b.
  [[nodiscard]] static std::uint32_t dot_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t sum)
  {
    for (unsigned k = 0; k < 32; k += 8) { sum += (a >> k & 0xFFU) * (b >> k & 0xFFU); }
    return sum;
  }

  //! @name Conversions of gradient elements
  //! @{
  template <class Element>
  [[nodiscard]] static float value(Element a)
  {
    return to_float(a);
  }
  template <class Element>
  [[nodiscard]] static Element element(float a)
  {
    return from_float<Element>(a);
  }
  template <class Element>
  [[nodiscard]] static Element finite_element(float a)
  {
    return detail::finite_from_float<Element>(a);
  }
  template <class Element>
  [[nodiscard]] static std::uint32_t pack(float first, float second)
  {
    return from_float<Element>(first).bits |
           static_cast<std::uint32_t>(from_float<Element>(second).bits) << 16;
  }
  template <class Element>
  [[nodiscard]] static std::uint32_t pack_finite(float first, float second)
  {
    return finite_element<Element>(first).bits |
           static_cast<std::uint32_t>(finite_element<Element>(second).bits) << 16;
  }
  //! @}

 private:
  template <class Each>
  void place_in_rows(float const* row, Each const& each) const
  {
    check_access(reinterpret_cast<word4 const*>(row), "moves");
    auto const address = std::bit_cast<std::array<std::uint32_t, 2>>(row);
    auto const* rows =
      block_->exchange(thread_, activity::move_matrix, tile_operands{address[0], address[1]});
    unsigned const lane = thread_ % block::warp_threads;
    for (unsigned j = 0; j < 4; ++j) {
      tile_operands const& from = rows[8 * j + lane / 4];
      each(j, std::bit_cast<float*>(std::array{from[0], from[1]}) + lane % 4);
    }
  }

  //! Calls each(i, product) for the four elements of this lane's part of a b; product(start) adds theirs to `start`.
  template <class Each>
  void add_tile_products(std::uint32_t const (&a)[4],
                         std::uint32_t b0,
                         std::uint32_t b1,
                         Each const& each) const
  {
    auto const* lanes = block_->exchange(
      thread_, activity::multiply_tiles, tile_operands{a[0], a[1], a[2], a[3], b0, b1});
    auto const value_at = [&](unsigned lane, unsigned word, unsigned place) {
      std::uint32_t const bits = lanes[lane][word] >> 16 * place;
      return static_cast<double>(to_float(half::from_bits(static_cast<std::uint16_t>(bits))));
    };
    unsigned const lane = thread_ % block::warp_threads;
    for (unsigned i = 0; i < 4; ++i) {
      each(i, [&](double start) { return tests::tile_element(lane, i, start, value_at); });
    }
  }

  template <class T>
  void check_access(T const* address, char const* verb) const
  {
    static_assert(std::is_trivially_copyable_v<T>);
    static_assert(std::has_single_bit(sizeof(T)) && sizeof(T) <= 16);
    std::uintptr_t const remainder = reinterpret_cast<std::uintptr_t>(address) % sizeof(T);
    if (remainder == 0) { return; }
    block_->fail(thread_,
                 verb,
                 " ",
                 sizeof(T),
                 " bytes at an address that is ",
                 remainder,
                 " past a multiple of ",
                 sizeof(T));
  }

  block* block_;
  unsigned thread_;
};

}  // namespace tersum::emulator
