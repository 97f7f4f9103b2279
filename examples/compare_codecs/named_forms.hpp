// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Forms of exchange by name that are no codec of one collective.

#pragma once

#include "run_served.hpp"

#include <tersum/presets.hpp>
#include <tersum/quantize/cast.hpp>
#include <tersum/rotate/no_rotation.hpp>

#include <string_view>

namespace compare_codecs {

//! @name Forms by name, on the CPU
//! @{
//! Workers of a parameter server.
template <class Visitor>
void for_each_served_form(Visitor visit)
{
  namespace p         = tersum::presets;
  using with_feedback = p::values<4, tersum::error_feedback>;
  using in_bytes      = p::values<8>;
  using in_halves     = tersum::codec<tersum::fixed_chunks<1024>,
                                  tersum::no_rotation,
                                  tersum::cast<tersum::half>,
                                  tersum::publish>;
  visit("served_4",
        "a parameter server: codes of 4 bits up and down",
        through_server{p::values_4, p::values_4});
  visit("served_4_ef",
        "the same with error feedback",
        through_server{with_feedback{}, with_feedback{}});
  visit(
    "served_4_8", "codes of 4 bits up, of 8 bits down", through_server{p::values_4, in_bytes{}});
  visit("served_8", "codes of 8 bits up and down", through_server{in_bytes{}, in_bytes{}});
  visit("served_half", "halves up and down", through_server{in_halves{}, in_halves{}});
}

//! @}

}  // namespace compare_codecs
