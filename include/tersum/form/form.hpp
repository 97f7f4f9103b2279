// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a codec asks of its form: who adds what the ranks send, and in which rounds.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/stages.hpp>
#include <tersum/types.hpp>

#include <concepts>

namespace tersum::inline v0 {

// clang-format off
template <class T> concept has_in_shards   = requires { { T::in_shards } -> std::convertible_to<bool>; };  //!< in_shards: each rank has a shard, and plans take the boundaries.
template <class T> concept has_first_round = requires { typename T::first_round; };                         //!< using first_round: a `stage_list` of the round of what bypasses the codec, if it comes before `stage::encode`.

//! Who adds, and in which rounds: `in_wire`, `two_shot`, `gather`, `shard`, `publish`. It also has these templates:
//! - `payload_kind<Coder>`: one of `tersum::payload`.
//! - `rounds_of<Coder>`: a `stage_list` of what follows `stage::encode`.
//! - `norm_scalar<Chunker>`: the element of the norms by which a chunker chooses, if the coder agrees on nothing else.
//! - `mean_coder<Coder>`: of what is sent once the codes of the ranks were added.
//! - `counts<Codec, Coder>`: what the codec's plans derive from, itself derived from `detail::codec_counts<Codec>`.
//! - `encodings(world)`: how often a value is encoded on its way, for chunkers with several widths.
//! - `suits<Ask, Chunker, Rotator, Coder, Feedback, Metric>()`: empty, or a sentence that names what does not fit; which the compiler says
//!   unless it is asked.
template <class T> concept form = policy<T> && has_in_shards<T> && has_first_round<T>;
// clang-format on

//! What most forms have: no shards, what bypasses the codec summed first, one encoding, and norms in bfloat16.
struct usual_form {
  static constexpr bool in_shards = false;

  using first_round = stage_list<rounds::sum_bypass>;
  template <class Chunker>
  using norm_scalar = bfloat16;
  template <class Coder>
  using mean_coder = Coder;

  [[nodiscard]] static constexpr float encodings(int) noexcept { return 1; }
};

}  // namespace tersum::inline v0
