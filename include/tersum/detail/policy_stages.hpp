// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Stages that a policy adds to those of its codec.

#pragma once

#include <tersum/stages.hpp>

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

//! Stages that a reducer adds once the payload is reduced; none where there is no reducer.
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

}  // namespace tersum::inline v0::detail
