// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Forms of exchange by name that are no codec of one collective.

#pragma once

#include "run_levels.hpp"
#include "run_served.hpp"

#include <tersum/presets.hpp>
#include <tersum/sharded_presets.hpp>
#include <tersum/two_level_codec.hpp>

#include <string_view>

namespace compare_codecs {

//! @name Forms by name, on the CPU
//! @{
//! Halves within hosts of 2 and of 4 ranks.
template <class Visitor, class Codec>
void visit_hosts(Visitor visit, std::string_view of_2, std::string_view of_4, Codec const& between)
{
  tersum::two_level_codec const codec{between};
  visit(of_2, "the codec between hosts of 2 ranks, halves within", on_hosts{codec, 2});
  visit(of_4, "the same, hosts of 4 ranks", on_hosts{codec, 4});
}

//! Two levels, of which codes between hosts are summed.
template <class Visitor>
void for_each_summed_level(Visitor visit)
{
  namespace p = tersum::presets;
  visit_hosts(visit, "hosts2_fp16", "hosts4_fp16", p::fp16);
  visit_hosts(visit, "hosts2_rotated_sat4", "hosts4_rotated_sat4", p::rotated_sat4);
}

//! Two levels, of which codes between hosts are decoded and added.
template <class Visitor>
void for_each_other_level(Visitor visit)
{
  namespace p = tersum::presets;
  visit_hosts(visit, "hosts2_two_shot_2", "hosts4_two_shot_2", p::two_shot_2);
  visit_hosts(visit, "hosts2_two_shot_4", "hosts4_two_shot_4", p::two_shot_4);
  auto const in_bytes = tersum::two_level_codec<p::two_shot<4>, p::sharded<8>, p::values<8>>{};
  visit("hosts2_two_shot_4_in_8", "hosts2_two_shot_4, 8 bits within", on_hosts{in_bytes, 2});
  visit("hosts4_two_shot_4_in_8", "the same, hosts of 4 ranks", on_hosts{in_bytes, 4});
  visit_hosts(visit, "hosts2_allocated_2", "hosts4_allocated_2", p::allocated_2);
  visit_hosts(visit, "hosts2_allocated_4", "hosts4_allocated_4", p::allocated_4);
  visit_hosts(visit, "hosts2_gathered_4", "hosts4_gathered_4", p::gathered_4);
}

//! Workers of a parameter server.
template <class Visitor>
void for_each_served_form(Visitor visit)
{
  namespace p = tersum::presets;
  visit("served_4",
        "a parameter server: values_4 up and down",
        through_server{p::values_4, p::values_4});
  visit(
    "served_4_ef", "the same with error feedback", through_server{p::values_4_ef, p::values_4_ef});
  visit("served_4_8", "values_4 up, values_8 down", through_server{p::values_4, p::values_8});
  visit("served_8", "values_8 up and down", through_server{p::values_8, p::values_8});
  visit("served_half", "values_half up and down", through_server{p::values_half, p::values_half});
}

//! All of them.
template <class Visitor>
void for_each_form(Visitor visit)
{
  for_each_summed_level(visit);
  for_each_other_level(visit);
  for_each_served_form(visit);
}
//! @}

}  // namespace compare_codecs
