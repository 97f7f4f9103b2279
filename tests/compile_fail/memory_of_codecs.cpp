// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Feedback, metrics and chunkers of codecs that cannot have them.

#include <tersum/tersum.hpp>

using namespace tersum;

template <class Codec>
auto const bytes = Codec{}.plan({.coordinates = 4096}, {.size = 2, .rank = 0}).state_bytes();

// Codes of differences, which the wire or the owners would add up as gradients.
// expected: tersum: difference_feedback is for publish
auto const in_sums =
  bytes<presets::tracked_saturating<stochastic_quantizer<8>, difference_feedback>>;
// expected: tersum: difference_feedback is for publish
auto const in_two_shots = bytes<presets::two_shot<8, difference_feedback>>;
// expected: tersum: kept_by_owners is for two_shot with fixed chunks
auto const without_owners =
  bytes<codec<top_chunks<64>, no_rotation, cast<float>, in_wire, kept_by_owners<>>>;
// expected: tersum: a low_rank_codec keeps its residual in float
low_rank_codec<low_rank<4>, cast<float>, low_rank_schedule::paired, kept_in<bfloat16>> const
  residuals;
// A float of each coordinate has an error in units of that coordinate.
// expected: tersum: a cast of all coordinates takes plain_metric
codec<fixed_chunks<1024>, no_rotation, cast<half>, in_wire, no_feedback, kept_diagonal> const
  in_units{};
// Scales follow decoded means, which a rank has of its own shard only.
// expected: tersum: under shard a rank decodes its own shard only
codec<fixed_chunks<256>,
      partial_hadamard<256>,
      scaled_codes<lloyd_max<4>>,
      shard,
      no_feedback,
      kept_diagonal> const of_shards{};

// A budget without a choice: it is not taken for a chunker that sends all.
struct half_a_choice {
  static constexpr int chunk_size = 128;
  float bits                      = 2;
  constexpr description describe() const { return {"half_a_choice"}; }
};
// expected: tersum: a chunker that chooses needs bits, by_norm, score, level_count and several_bits
int const size = codec<half_a_choice, no_rotation, cast<half>, in_wire>::chunk_size;
