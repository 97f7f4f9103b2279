// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The group of threads that share a chunk in a block.

#pragma once

#include <tersum/block/block_context.hpp>
#include <tersum/block/group.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0 {

//! @brief The arithmetic of a block context, as policies are given it: callable where host and device code is compiled.
template <block_context Context>
struct context_arithmetic {
  TERSUM_EXEC_CHECK_DISABLE
  [[nodiscard]] TERSUM_INLINE static float add(float a, float b) { return Context::add(a, b); }
  [[nodiscard]] TERSUM_INLINE static std::uint32_t add(std::uint32_t a, std::uint32_t b)
  {
    return a + b;
  }
  TERSUM_EXEC_CHECK_DISABLE
  [[nodiscard]] TERSUM_INLINE static float subtract(float a, float b)
  {
    return Context::subtract(a, b);
  }
  TERSUM_EXEC_CHECK_DISABLE
  [[nodiscard]] TERSUM_INLINE static float multiply(float a, float b)
  {
    return Context::multiply(a, b);
  }
  TERSUM_EXEC_CHECK_DISABLE
  [[nodiscard]] TERSUM_INLINE static float divide(float a, float b)
  {
    return Context::divide(a, b);
  }
  TERSUM_EXEC_CHECK_DISABLE
  [[nodiscard]] TERSUM_INLINE static float square_root(float a) { return Context::square_root(a); }
  TERSUM_EXEC_CHECK_DISABLE
  [[nodiscard]] TERSUM_INLINE static float square_root_from_zero(float a)
  {
    return Context::square_root_from_zero(a);
  }
  TERSUM_EXEC_CHECK_DISABLE
  [[nodiscard]] TERSUM_INLINE static float fma(float a, float b, float c)
  {
    return Context::fma(a, b, c);
  }
};

//! @brief The threads of a block that share a chunk. They are consecutive, and their number divides that of the block.
//!
//! Groups of up to 32 threads synchronize as a warp, so all its groups must take part. A larger group is a whole block.
//! @tparam Threads  A power of two up to 1024; `block_chunk<Size>::threads` for the threads of such a chunk.
template <block_context Context, int Threads>
class block_group : public context_arithmetic<Context> {
  static_assert(Threads >= 1 && Threads <= 1024 && (Threads & (Threads - 1)) == 0,
                "tersum: block_group<Context, Threads> needs a power of two up to 1024");

 public:
  static constexpr int scratch_words = detail::group_lanes;  //!< Shared memory of a group.

  //! @param scratch  `scratch_words` of shared memory, this group's own.
  TERSUM_EXEC_CHECK_DISABLE
  TERSUM_INLINE block_group(Context const& ctx, void* scratch)
    : context_{ctx}, scratch_{scratch}, rank_{static_cast<int>(ctx.thread_rank() % Threads)}
  {
  }

  [[nodiscard]] TERSUM_INLINE int rank() const { return rank_; }
  [[nodiscard]] TERSUM_INLINE static constexpr int size() noexcept { return Threads; }

  TERSUM_EXEC_CHECK_DISABLE
  TERSUM_INLINE void sync() const
  {
    if constexpr (Threads <= 32) {
      context_.sync_warp();
    } else {
      context_.sync_block();
    }
  }

  TERSUM_EXEC_CHECK_DISABLE
  template <class Body>
  TERSUM_INLINE void each(int count, Body const& body) const
  {
    for (int i = rank_; i < count; i += Threads) { body(i); }
  }

  TERSUM_EXEC_CHECK_DISABLE
  template <class Term>
  [[nodiscard]] TERSUM_INLINE auto sum(int count, Term const& term) const
  {
    using value = std::remove_cvref_t<decltype(term(0))>;
    return fold<value>(count, term, [](value a, value b) { return block_group::add(a, b); });
  }

  TERSUM_EXEC_CHECK_DISABLE
  template <class Term>
  [[nodiscard]] TERSUM_INLINE float maximum(int count, Term const& term) const
  {
    auto const magnitude = [&](int i) { return detail::float_bits(term(i)) & 0x7fffffffu; };
    auto const larger    = [](std::uint32_t a, std::uint32_t b) { return detail::maximum(a, b); };
    return detail::bits_float(fold<std::uint32_t>(count, magnitude, larger));
  }

 private:
  // Each of 128 lanes combines its terms, beginning with zero. Then upper halves are combined with lower ones to one lane.
  TERSUM_EXEC_CHECK_DISABLE
  template <class Value, class Term, class Combine>
  [[nodiscard]] TERSUM_INLINE Value fold(int count, Term const& term, Combine const& combine) const
  {
    Value* const lanes = static_cast<Value*>(scratch_);
    for (int lane = rank_; lane < detail::group_lanes; lane += Threads) {
      Value total{};
      for (int i = lane; i < count; i += detail::group_lanes) { total = combine(total, term(i)); }
      lanes[lane] = total;
    }
    sync();
    for (int half_of = detail::group_lanes / 2; half_of > 0; half_of /= 2) {
      for (int i = rank_; i < half_of; i += Threads) {
        lanes[i] = combine(lanes[i], lanes[i + half_of]);
      }
      sync();
    }
    Value const result = lanes[0];
    sync();
    return result;
  }

  Context const& context_;
  void* scratch_;
  int rank_;
};

}  // namespace tersum::inline v0
