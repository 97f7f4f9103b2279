// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The presets of the shared library in groups, which are compiled apart: all of the library's, or with TERSUM_C_FEW_PRESETS
//! some of each kind, for tests.

#pragma once

#include "../presets/for_each_preset.hpp"

namespace shared_library {

#if defined(TERSUM_C_FEW_PRESETS)

template <class Visitor>
void for_each_summed_preset(Visitor visit)
{
  visit("fp16", "a cast", tersum::presets::fp16);
  visit("rotated_sat4", "saturating codes", tersum::presets::rotated_sat4);
}

template <class Visitor>
void for_each_choosing_preset(Visitor visit)
{
  visit("topkc_b2_ef", "chosen chunks, with feedback", tersum::presets::topkc_b2_ef);
}

template <class Visitor>
void for_each_low_rank_preset(Visitor visit)
{
  visit("powersgd_r4", "factors", tersum::presets::powersgd_r4);
}

template <class Visitor>
void for_each_two_shot_preset(Visitor visit)
{
  visit("two_shot_4", "two shots", tersum::presets::two_shot_4);
  visit("allocated_2", "two shots, a width for each chunk", tersum::presets::allocated_2);
}

template <class Visitor>
void for_each_sharded_preset(Visitor visit)
{
  visit("sharded_4", "a reduce-scatter", tersum::presets::sharded_4);
  visit("summed_shards_sat4", "one that adds codes", tersum::presets::summed_shards_sat4);
}

#else

using examples::for_each_choosing_preset;
using examples::for_each_low_rank_preset;
using examples::for_each_summed_preset;
using examples::for_each_two_shot_preset;

template <class Visitor>
void for_each_sharded_preset(Visitor visit)
{
  examples::for_each_sharded_preset(visit);
  examples::for_each_summed_shards_preset(visit);
#if !defined(TERSUM_EXAMPLES_FEW)
  visit("sharded_8", "sharded_4 with 8 bits: next to no error", tersum::presets::sharded<8>{});
#endif
}

#endif

//! All of them.
template <class Visitor>
void for_each_preset(Visitor visit)
{
  for_each_summed_preset(visit);
  for_each_choosing_preset(visit);
  for_each_low_rank_preset(visit);
  for_each_two_shot_preset(visit);
  for_each_sharded_preset(visit);
}

}  // namespace shared_library
