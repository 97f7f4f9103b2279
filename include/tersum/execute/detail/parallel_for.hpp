// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A loop over independent items on the threads of OpenMP, or on the calling thread alone.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/execute/detail/with_subnormals.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

#if defined(_OPENMP)
inline namespace openmp {
#else
inline namespace serial {
#endif

//! @brief Calls body(i) for 0 <= i < count, in contiguous shares of equal size. The caller has `with_subnormals`.
template <class Body>
void parallel_for([[maybe_unused]] int threads, std::uint64_t count, Body const& body)
{
  auto const end = static_cast<std::int64_t>(count);
#if defined(_OPENMP)
  int const used = static_cast<int>(
    minimum(static_cast<std::uint64_t>(threads), maximum<std::uint64_t>(count, 1)));
#pragma omp parallel num_threads(used) if (used > 1)
  {
    with_subnormals const scope;
#pragma omp for schedule(static) nowait
    for (std::int64_t i = 0; i < end; ++i) { body(static_cast<std::uint64_t>(i)); }
  }
#else
  for (std::int64_t i = 0; i < end; ++i) { body(static_cast<std::uint64_t>(i)); }
#endif
}

//! @brief Cuts 0 .. count-1 into one contiguous share for each thread, and calls body(first, last) for it there. All shares
//! but the last are multiples of `unit`. A second thread takes part from `least` items on.
template <class Body>
void each_share(
  int threads, std::uint64_t count, std::uint64_t least, std::uint64_t unit, Body const& body)
{
  std::uint64_t const most   = maximum<std::uint64_t>((count + least - 1) / least, 1);
  std::uint64_t const shares = minimum(static_cast<std::uint64_t>(threads), most);
  std::uint64_t const size   = round_up((count + shares - 1) / shares, unit);
  parallel_for(threads, size == 0 ? 0 : (count + size - 1) / size, [&](std::uint64_t share) {
    body(share * size, minimum(count, (share + 1) * size));
  });
}

}  // namespace serial or openmp

}  // namespace tersum::inline v0::detail
