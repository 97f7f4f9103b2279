// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Forms of exchange by name that are no codec of one collective.

#pragma once

#include "run_served.hpp"

#include <tersum/presets.hpp>
#include <tersum/sharded_presets.hpp>

#include <string_view>

namespace compare_codecs {

//! @name Forms by name, on the CPU
//! @{
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

//! @}

}  // namespace compare_codecs
