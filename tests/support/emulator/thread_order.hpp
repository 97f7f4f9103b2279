// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The order in which the emulator runs blocks, warps and lanes.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <random>
#include <vector>

namespace tersum::emulator {

//! @brief Who runs first among threads that may all run. A correct kernel body gives the same
//! bytes in every order; one that misses a barrier does not.
//!
//! `forward` and `reverse` let each warp run as far ahead of the others as its barriers allow;
//! `shuffled` interleaves warps at random, and is a pure function of its seed.
struct thread_order {
  enum class rule : unsigned char { forward, reverse, shuffled };

  rule how           = rule::forward;
  std::uint64_t seed = 0;  //!< Of `shuffled` alone.

  friend std::ostream& operator<<(std::ostream& out, thread_order order)
  {
    switch (order.how) {
      case rule::forward: return out << "forward";
      case rule::reverse: return out << "reverse";
      case rule::shuffled: break;
    }
    return out << "shuffled(" << order.seed << ")";
  }
};

inline constexpr thread_order forward{};
inline constexpr thread_order reverse{.how = thread_order::rule::reverse};

[[nodiscard]] constexpr thread_order shuffled(std::uint64_t seed)
{
  return {.how = thread_order::rule::shuffled, .seed = seed};
}

//! The orders that every kernel body should be run in.
inline constexpr std::array thread_orders{forward, reverse, shuffled(1)};

//! @brief The ranks 0 .. count - 1 in the order in which to visit them.
class visiting_order {
 public:
  visiting_order(unsigned count, thread_order order, std::mt19937_64& random)
    : ranks_(count), how_{order.how}, random_{&random}
  {
    std::iota(ranks_.begin(), ranks_.end(), 0U);
    if (how_ == thread_order::rule::reverse) { std::reverse(ranks_.begin(), ranks_.end()); }
  }

  //! The next round of visits. The reference holds until the next call.
  [[nodiscard]] std::vector<unsigned> const& next()
  {
    if (how_ == thread_order::rule::shuffled) {
      std::shuffle(ranks_.begin(), ranks_.end(), *random_);
    }
    return ranks_;
  }

  //! Whether to go on with the rank at hand rather than pass to the next one.
  [[nodiscard]] bool stays()
  {
    return how_ != thread_order::rule::shuffled || (*random_)() % 4 != 0;
  }

 private:
  std::vector<unsigned> ranks_;
  thread_order::rule how_;
  std::mt19937_64* random_;
};

}  // namespace tersum::emulator
