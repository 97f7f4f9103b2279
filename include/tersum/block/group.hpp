// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What works on one chunk: a host thread, or the threads of a block that share it. The plain forms of policies are
//! written against it, once, and give the same bits on all of them.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0 {

// clang-format off
namespace detail {

//! Stand for what `each`, `sum` and `maximum` are given.
struct any_body { void operator()(int i) const; };
struct any_term { float operator()(int i) const; };

}  // namespace detail

//! @name Atoms of a group
//! @{
template <class T> concept has_rank    = requires(T const g) { { g.rank() } -> std::convertible_to<int>; };   //!< This thread's number in its group.
template <class T> concept has_size    = requires(T const g) { { g.size() } -> std::convertible_to<int>; };   //!< Threads of the group.
template <class T> concept has_sync    = requires(T const g) { g.sync(); };                                   //!< What any thread wrote before, all threads see after.
template <class T> concept has_each    = requires(T const g) { g.each(0, detail::any_body{}); };              //!< each(count, body): body(i) for 0 <= i < count, shared among the threads; no `sync`.
template <class T> concept has_sum     = requires(T const g) {
  { g.sum(0, detail::any_term{}) } -> std::same_as<float>; };     //!< sum(count, term): of term(i) for 0 <= i < count, on all threads: the same bits for any size.
template <class T> concept has_maximum = requires(T const g) {
  { g.maximum(0, detail::any_term{}) } -> std::same_as<float>; }; //!< maximum(count, term): of the magnitudes; NaN is above infinity.
template <class T> concept has_arithmetic = requires(float v) {   //!< Each operation is rounded once and never contracted into another.
  { T::add(v, v) } -> std::same_as<float>;
  { T::subtract(v, v) } -> std::same_as<float>;
  { T::multiply(v, v) } -> std::same_as<float>;
  { T::divide(v, v) } -> std::same_as<float>;
  { T::square_root(v) } -> std::same_as<float>;
  { T::fma(v, v, v) } -> std::same_as<float>; };
//! @}

//! @brief What works on one chunk. The chunk is memory that all threads of the group reach.
//!
//! All threads call `sync`, `sum` and `maximum` together, and how often must not depend on data. What has been written to a
//! chunk is read by others after `sync`.
template <class T> concept group = has_rank<T> && has_size<T> && has_sync<T> && has_each<T> && has_sum<T> && has_maximum<T> && has_arithmetic<T>;
// clang-format on

namespace detail {

//! How many sums `group::sum` makes side by side: term i goes to sum i modulo this.
inline constexpr int group_lanes = 128;

//! @brief Returns the value, and hides from the compiler where it comes from: so a product is rounded before it is added.
[[nodiscard]] TERSUM_INLINE float as_rounded(float value) noexcept
{
#if defined(__CUDA_ARCH__)
#elif defined(__x86_64__)
  asm("" : "+x"(value));
#elif defined(__aarch64__)
  asm("" : "+w"(value));
#elif defined(__GNUC__)
  asm("" : "+m"(value));
#endif
  return value;
}

}  // namespace detail

//! @brief One host thread that has a chunk for itself.
class host_group {
 public:
  [[nodiscard]] TERSUM_INLINE static constexpr int rank() noexcept { return 0; }
  [[nodiscard]] TERSUM_INLINE static constexpr int size() noexcept { return 1; }
  TERSUM_INLINE static void sync() noexcept {}

  TERSUM_EXEC_CHECK_DISABLE
  template <class Body>
  TERSUM_INLINE static void each(int count, Body const& body)
  {
    for (int i = 0; i < count; ++i) { body(i); }
  }

  //! Term i is added to sum i modulo 128, in ascending order; then the upper half of the sums to the lower half, and so on.
  TERSUM_EXEC_CHECK_DISABLE
  template <class Term>
  [[nodiscard]] TERSUM_INLINE static auto sum(int count, Term const& term)
  {
    using value = std::remove_cvref_t<decltype(term(0))>;
    value sums[detail::group_lanes]{};
    // A loop over sums within one over terms: that one becomes vectors.
    int const whole = count / detail::group_lanes * detail::group_lanes;
    for (int first = 0; first < whole; first += detail::group_lanes) {
      for (int lane = 0; lane < detail::group_lanes; ++lane) {
        sums[lane] = add(sums[lane], term(first + lane));
      }
    }
    for (int i = whole; i < count; ++i) { sums[i - whole] = add(sums[i - whole], term(i)); }
    for (int half_of = detail::group_lanes / 2; half_of > 0; half_of /= 2) {
      for (int i = 0; i < half_of; ++i) { sums[i] = add(sums[i], sums[i + half_of]); }
    }
    return sums[0];
  }

  TERSUM_EXEC_CHECK_DISABLE
  template <class Term>
  [[nodiscard]] TERSUM_INLINE static float maximum(int count, Term const& term)
  {
    std::uint32_t largest = 0;
    for (int i = 0; i < count; ++i) {
      largest = detail::maximum(largest, detail::float_bits(term(i)) & 0x7fffffffu);
    }
    return detail::bits_float(largest);
  }

  //! @name Arithmetic
  //! @{
  [[nodiscard]] TERSUM_INLINE static float add(float a, float b) { return a + b; }
  [[nodiscard]] TERSUM_INLINE static std::uint32_t add(std::uint32_t a, std::uint32_t b)
  {
    return a + b;
  }
  [[nodiscard]] TERSUM_INLINE static float subtract(float a, float b) { return a - b; }
  [[nodiscard]] TERSUM_INLINE static float multiply(float a, float b)
  {
    return detail::as_rounded(a * b);
  }
  [[nodiscard]] TERSUM_INLINE static float divide(float a, float b) { return a / b; }
  [[nodiscard]] TERSUM_INLINE static float square_root(float a) { return ::sqrtf(a); }
  [[nodiscard]] TERSUM_INLINE static float fma(float a, float b, float c)
  {
    return ::fmaf(a, b, c);
  }
  //! @}
};

static_assert(group<host_group>, "tersum: must model tersum::group");
static_assert(group<detail::any_group>, "tersum: what concepts ask policies with is a group");

}  // namespace tersum::inline v0
