// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Stages that a policy adds to those of its codec, and what its range has the ranks agree on.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/stages.hpp>

#include <type_traits>

namespace tersum::inline v0::detail {

//! Stages that a rotator of whole tensors adds before the gradient is measured, and after it was decoded.
template <class Rotator>
struct rotator_stages {
  using before = stage_list<>;
  using after  = stage_list<>;
};

template <class Rotator>
requires requires
{
  typename Rotator::stages_before;
  typename Rotator::stages_after;
}
struct rotator_stages<Rotator> {
  using before = typename Rotator::stages_before;
  using after  = typename Rotator::stages_after;
};

template <class Rotator>
using stages_before = typename rotator_stages<Rotator>::before;
template <class Rotator>
using stages_after = typename rotator_stages<Rotator>::after;

//! Stages that a reducer adds once the payload is reduced.
template <class Reducer>
struct reducer_stages {
  using after_sum = stage_list<>;
};

template <class Reducer>
requires requires { typename Reducer::stages_after_sum; }
struct reducer_stages<Reducer> {
  using after_sum = typename Reducer::stages_after_sum;
};

template <class Reducer>
using stages_after_sum = typename reducer_stages<Reducer>::after_sum;

//! The reduction that a range's scalars must not have. Norms of chunks must be summed, and magnitudes and norms of
//! tensors need the maximum; steps derived from anything else would be too small or too large.
template <class Range>
using wrong_op = std::conditional_t<measures<Range, statistic::chunk_square_norm>,
                                    native_max<typename Range::scalar>,
                                    native_sum<typename Range::scalar>>;

}  // namespace tersum::inline v0::detail
