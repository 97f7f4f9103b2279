// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The sum of packed codes that stops at the ends of its lanes.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/std.hpp>
#include <tersum/quantize/packed_codes.hpp>

namespace tersum::inline v0 {

namespace detail {

//! @brief How well saturating lanes carry the sum of independent normal coordinates.
struct lane_profile {
  float clip;        //!< Root mean squares of the sum from zero to the end of the lanes.
  float distortion;  //!< Mean squared error of the sum over its mean square.
};

//! @brief The best clip and its distortion, from a table that was simulated for 1, 2, 4 .. 64 ranks.
//!
//! The simulation has normal coordinates, stratified rounding, sums in a ring, and head-room that is tracked with a margin of
//! 1.1 until it is steady. Numbers of ranks between two entries take the larger one, numbers above 64 the last. Where two
//! clips have about the same error the table has the larger one, because real gradients are less even than normal ones.
[[nodiscard]] TERSUM_HOST_DEVICE constexpr lane_profile saturating_profile(int bits,
                                                                           int world) noexcept
{
  // clang-format off
  constexpr int worlds                 = 7;
  constexpr lane_profile two[worlds]   = {{1.0f, .267f}, {1.1f, .335f}, {1.1f, .495f}, {1.1f, .699f}, {1.1f, .839f}, {1.1f, .917f}, {1.1f, .960f}};
  constexpr lane_profile four[worlds]  = {{2.3f, .0222f}, {2.0f, .0304f}, {2.0f, .0464f}, {1.8f, .0705f}, {1.6f, .114f}, {1.6f, .174f}, {1.4f, .264f}};
  constexpr lane_profile eight[worlds] = {{3.8f, .000178f}, {3.6f, .000248f}, {3.6f, .000411f}, {3.4f, .000701f}, {3.2f, .00117f}, {2.9f, .00198f}, {2.9f, .00368f}};
  // clang-format on
  int at = 0;
  while (at < worlds - 1 && (1 << at) < world) { ++at; }
  return bits == 2 ? two[at] : bits == 4 ? four[at] : eight[at];
}

}  // namespace detail

//! @brief Adds the lanes of two words, each clamped to +-(2^(Bits-1) - 1); -2^(Bits-1) is never produced.
//!
//! It is commutative, but not associative: the order of a reduction is part of its result. Lanes may hold any bits on input: a lane of
//! -2^(Bits-1) counts as that value, and the sum is clamped like any other. The function object is what an MPI_Op, a Gloo reduce function
//! or a device-side reduction calls. On sm_90 a lane of 4 bits takes 2.2 instructions. Source: Han et al. (HotNets'24), section 3.2.2.
//!
//! @par Example
//! @snippet examples/kernels/sum_over_peers.hpp add
//! @tparam Bits  Lane width: 2, 4 or 8 (16 when the sum is not tracked).
template <int Bits>
struct saturating_add {
  using element                     = std::uint32_t;
  static constexpr bool native      = false;
  static constexpr bool associative = false;
  static constexpr bool exact       = false;

  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint32_t operator()(
    std::uint32_t a, std::uint32_t b) const noexcept
  {
    using lanes = packed_codes<Bits>;
    // The low bits add up within their lane, and their carry stands where the sign was. The carry and both signs tell
    // whether the sum leaves two's complement, and which sign it has.
    std::uint32_t const low   = (a & ~lanes::signs) + (b & ~lanes::signs);
    std::uint32_t const leave = ~(a ^ b) & (a ^ low);
    std::uint32_t const sign  = a ^ ((a ^ b) & ~(a ^ low));
    std::uint32_t const sum   = (low & ~lanes::signs) | (sign & lanes::signs);
    // Finds lanes of the lowest code, -2^(Bits-1): only they turn positive when one is subtracted. A lane of zero borrows
    // from the next lane, in which the code -2^(Bits-1) + 1 then looks like the lowest. No harm: both become -2^(Bits-1) + 1.
    std::uint32_t const less = sum - lanes::ones;
    std::uint32_t const stay = ~(leave | (sum & ~less)) & lanes::signs;
    // Lanes whose sum leaves the range take the limit of its sign. This form is one instruction on GPUs (shift and add).
    std::uint32_t const mask = (stay >> (Bits - 1)) + ~lanes::signs;
    std::uint32_t const end  = ((sum & lanes::signs) >> (Bits - 2)) + ~lanes::signs;
    return sum ^ ((sum ^ end) & mask);
  }

  //! @brief The same of vectors of words, by `add_bytes`: lanes of 4 bits lie in the upper halves of bytes; one summand has others below.
  //!
  //! The sum of two lanes of 2 bits is -1, 0 or 1, and is found bit by bit. It is negative if both lanes are, and if one is, unless
  //! they are -1 and 1. It is not zero if it is negative, or if no lane is negative and one of them is 1.
  template <class Words>
  requires(Bits <= 8) [[nodiscard]] TERSUM_HOST_INLINE static Words
    add(Words const& a, Words const& b)
  {
    if constexpr (Bits == 2) {
      Words const low      = 0x55555555u;
      Words const signs_a  = a >> 1;
      Words const signs_b  = b >> 1;
      Words const any      = signs_a | signs_b;
      Words const negative = (signs_a & signs_b) | (any & ~(a & b));
      Words const not_zero = negative | ((a | b) & ~any);
      return (not_zero & low) | (negative & low) << 1;
    } else {
      Words const upper = Bits == 8 ? 0xffffffffu : 0xf0f0f0f0u;
      Words const least = Bits == 8 ? 0x81818181u : 0x90909090u;
      Words const odd   = add_bytes(a, b & upper, least) & upper;  // nothing carries from below
      if (Bits == 8) { return odd; }
      Words const even = add_bytes(a << 4, b << 4 & upper, least);
      return odd | (even >> 4 & ~upper);
    }
  }
};

//! @brief Codes are summed in lanes of their own width: the wire has no spare bits, and a sum that overflows saturates.
//!
//! The decoder counts the lanes that stand at a limit. The head-room of the range decides how many do.
//! @tparam Bits  Lane width: 2, 4, 8 or 16.
template <int Bits>
struct saturating_sum {
  using op = saturating_add<Bits>;
  template <int Other>
  using with_bits                  = saturating_sum<Other>;  //!< The same in other lanes.
  static constexpr int lane_bits   = Bits;
  static constexpr bool biased     = false;  //!< Lanes are two's complement.
  static constexpr bool saturating = true;
  constexpr description describe() const { return {"saturating_sum", Bits}; }

  //! Any number of ranks can be summed, since what does not fit saturates.
  [[nodiscard]] static constexpr int max_world(int) noexcept
  {
    return std::numeric_limits<int>::max();
  }

  //! @brief The clip with the least error for that many ranks: root mean squares of the sum from zero to the end of the lanes.
  [[nodiscard]] TERSUM_HOST_DEVICE static constexpr float best_clip(int world) noexcept
  {
    return detail::saturating_profile(Bits, world).clip;
  }

  //! @brief The error of the sum at that clip, over the energy of the sum.
  [[nodiscard]] static constexpr float distortion(int world) noexcept
  {
    return detail::saturating_profile(Bits, world).distortion;
  }
};

static_assert(reduce_op<saturating_add<4>>, "tersum: must model tersum::reduce_op");
static_assert(reducer<saturating_sum<4>>, "tersum: must model tersum::reducer");

}  // namespace tersum::inline v0
