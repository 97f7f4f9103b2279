// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Policies that users of the library write go with each of the library's.

#include "../../examples/your_own/dead_zone_quantizer.hpp"
#include "../../examples/your_own/decaying_feedback.hpp"
#include "../../examples/your_own/even_codes.hpp"
#include "../../examples/your_own/every_kth_chunk.hpp"
#include "../../examples/your_own/largest_mean.hpp"
#include "../../examples/your_own/mean_in_halves.hpp"
#include "../../examples/your_own/mean_magnitude.hpp"
#include "../../examples/your_own/partitioned_sum.hpp"
#include "../../examples/your_own/signed_permutation.hpp"
#include "conformance/all_pairs.hpp"

using namespace tersum;
using namespace tersum::tests::pairs;

namespace {

//! The stranger of a role with all policies of the other roles.
template <role Role, class Strangers>
void try_strangers(Strangers strangers)
{
  if constexpr (Role != of_chunks) { try_roles<Role, of_chunks>(strangers, chunkers{}); }
  if constexpr (Role != of_rotation) { try_roles<Role, of_rotation>(strangers, rotators{}); }
  if constexpr (Role != of_coding) { try_roles<Role, of_coding>(strangers, coders{}); }
  if constexpr (Role != of_rounds) { try_roles<Role, of_rounds>(strangers, forms{}); }
  if constexpr (Role != of_losses) { try_roles<Role, of_losses>(strangers, feedbacks{}); }
  if constexpr (Role != of_units) { try_roles<Role, of_units>(strangers, metrics{}); }
}

TEST_CASE("[conformance] policies of users go with all other roles, or say why not")
{
  try_strangers<of_chunks>(list<every_kth_chunk<256, 2>>{});
  try_strangers<of_rotation>(list<signed_permutation>{});
  try_strangers<of_rounds>(list<mean_in_halves>{});
  try_strangers<of_losses>(list<decaying_feedback>{});
  try_strangers<of_units>(list<largest_mean>{});
}

using independent_8 = stochastic_quantizer<8, independent>;
template <class Range, class Quantizer>
using widened = summed_codes<Range, Quantizer, widening_sum<8, 16>>;
template <class Range, class Quantizer>
using guarded = summed_codes<Range, Quantizer, guard_lanes<16>>;
template <class Range, class Quantizer>
using partitioned = summed_codes<Range, Quantizer, partitioned_sum<16>>;

TEST_CASE("[conformance] coders of users, and of their policies, go with all other roles")
{
  try_roles<of_coding, of_rounds>(list<scaled_codes<even_codebook>>{}, forms{});
  try_strangers<of_coding>(
    list<even_codes,
         widened<mean_magnitude, stochastic_quantizer<8>>,
         summed_codes<rms_range<>, dead_zone_quantizer<8>, saturating_sum<8>>,
         partitioned<rms_range<no_headroom>, stochastic_quantizer<8>>>{});
}

TEST_CASE("[conformance] ranges, quantizers and reducers of users go with each other's roles")
{
  using user     = dead_zone_quantizer<8>;
  using of_users = list<guarded<mean_magnitude, nearest_quantizer<8>>,
                        widened<mean_magnitude, independent_8>,
                        widened<absmax_range<>, user>,
                        guarded<global_range<>, user>,
                        guarded<rms_range<no_headroom>, user>,
                        partitioned<absmax_range<>, nearest_quantizer<8>>,
                        partitioned<global_range<>, independent_8>>;
  try_roles<of_coding, of_rotation>(of_users{}, list<partial_hadamard<256>>{});
}

}  // namespace
