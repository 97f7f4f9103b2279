// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kinds of codecs and of chunkers that exchanges treat differently.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/detail/std.hpp>

namespace tersum::inline v0 {

//! @brief What the ranks agree on before they encode: `Codec::agreement_kind`.
namespace agreement {
struct none {};     //!< Nothing: there is no `agreed_wire`.
struct norms {};    //!< The squared norms of the chunks, by which chunks are chosen.
struct steps {};    //!< What the range measures, from which each chunk's quantization step follows.
struct factors {};  //!< P of low-rank factors.

}  // namespace agreement

//! @brief What a codec sends: `Codec::payload_kind`.
namespace payload {

struct codes {};   //!< Codes that the transport's reduction adds: `summed_codes` under `in_wire`.
struct values {};  //!< Elements that every transport adds: `cast` under `in_wire`.
struct parts {};   //!< Codes that owners of parts decode, add and encode again: `two_shot`.
struct shards {};  //!< Codes of each shard, which its rank decodes and adds: `shard`.
struct summed {};  //!< Codes that a reduce-scatter adds: `summed_codes` under `shard`.
struct published {};    //!< Codes of each rank's own shard, which every rank decodes: `publish`.
struct copies {};       //!< Codes of all ranks, which every rank decodes and adds: `gather`.
struct coordinates {};  //!< Each rank's own coordinates, gathered.
struct factors {};      //!< Factors of matrices: `low_rank_codec`.

}  // namespace payload

//! @name Kinds of codecs
//! @{
template <class Codec, class Kind>
concept sends = std::is_same_v<typename Codec::payload_kind, Kind>;

//! Parts are scattered to owners, which decode, add and encode them again.
template <class Codec>
concept scattering = sends<Codec, payload::parts>;

//! Every rank decodes and adds the codes of its own shard: `reduce_scatter_mean`.
template <class Codec>
concept sharding = sends<Codec, payload::shards>;

//! Every rank decodes the sum of the codes of its own shard.
template <class Codec>
concept summing = sends<Codec, payload::summed>;

//! Every rank ends with the mean of its own shard.
template <class Codec>
concept ending_in_shards = sharding<Codec> || summing<Codec>;

//! Every rank decodes the codes that the ranks make of their own shards: `all_gather_values`.
template <class Codec>
concept publishing = sends<Codec, payload::published>;

//! Every rank has a shard.
template <class Codec>
concept in_shards = sharding<Codec> || publishing<Codec>;

//! Every rank decodes and adds the codes of all ranks.
template <class Codec>
concept copying = sends<Codec, payload::copies>;

//! The round gathers what each rank sends instead of reducing it.
template <class Codec>
concept gathering = sends<Codec, payload::coordinates>;

//! Factors of matrices travel: `low_rank_codec`.
template <class Codec>
concept is_low_rank = sends<Codec, payload::factors>;

//! Coordinates are only converted.
template <class Codec>
inline constexpr bool casts = sends<Codec, payload::values>;

//! The ranks agree on something: there is an `agreed_wire`.
template <class Codec>
inline constexpr bool agrees = !std::is_same_v<typename Codec::agreement_kind, agreement::none>;

//! Some chunks do not travel.
template <class Codec>
concept selects = selecting_chunker<typename Codec::chunker_type>;

//! Chunks that travel differ in width.
template <class Codec>
concept several_bits = detail::has_several_bits<typename Codec::chunker_type>();

//! How many codecs `at_level` has: one of each width.
//! @{
template <class Codec>
inline constexpr int level_count = 1;
template <several_bits Codec>
inline constexpr int level_count<Codec> = Codec::chunker_type::level_count;
//! @}

//! What a step lost is kept for the next one, and is part of what that encodes.
template <class Codec>
inline constexpr bool feeds_back =
  Codec::feedback_type::enabled && !has_owners_only<typename Codec::feedback_type>;

//! Owners of parts keep what their encoding lost: the owner of a chunk does not change.
template <class Codec>
inline constexpr bool owner_feeds_back =
  scattering<Codec>&& Codec::feedback_type::enabled && !selects<Codec> &&
  has_adds_lost<typename Codec::feedback_type> && !has_ranks_only<typename Codec::feedback_type>;

//! What is kept has a weight that depends on the step and on a gain of the caller, which lies in the state.
template <class Codec>
inline constexpr bool weighs_kept =
  (feeds_back<Codec> || owner_feeds_back<Codec>)&&has_kept_weight<typename Codec::feedback_type>;

//! In what the state keeps what feedback keeps: float or bfloat16.
template <class Codec>
using residual_element = typename detail::residual_of_feedback<typename Codec::feedback_type>::type;

//! What is coded is the difference to what all ranks hold already.
template <class Codec>
inline constexpr bool codes_differences = detail::of_differences<typename Codec::feedback_type>;

//! Coordinates are divided by scales before they are encoded, and multiplied after they were decoded.
template <class Codec>
concept in_metric = Codec::metric_type::scaled;

//! These scales follow the means that were decoded.
template <class Codec>
concept keeps_metric = in_metric<Codec> && has_update<typename Codec::metric_type>;

//! In what the state keeps these scales: float or bfloat16.
template <class Codec>
using metric_scale = typename detail::scale_of<typename Codec::metric_type>::type;

//! Owners of parts encode the mean in other codes than those that they were sent.
template <class Codec>
concept ways_differ =
  !std::is_same_v<typename Codec::mean_quantizer_type, typename Codec::quantizer_type>;

//! The head-room follows the correlation of the ranks in the last exchange.
template <class Codec>
concept tracks = Codec::range_type::headroom_type::tracked;

//! Sums beyond a lane stay at its limit, and are counted.
template <class Codec>
concept saturates = Codec::reducer_type::saturating;

//! One scalar is agreed on for each tensor instead of each chunk.
template <class Codec>
concept per_tensor = detail::measures<typename Codec::range_type, statistic::tensor_square_norm>;
//! @}

namespace detail {

//! The ranks agree on a step for each chunk; casts have none, and chunks of a two-shot codec have scales of their own.
template <class Codec>
concept has_steps = std::is_same_v<typename Codec::agreement_kind, agreement::steps>;

//! Whether the norms of chunks are what the ranks agree on.
template <class Codec>
concept norms_travel =
  !has_steps<Codec> || measures<typename Codec::range_type, statistic::chunk_square_norm>;

//! What ranks measure of chunks: by the range's plain form; their largest magnitudes; their squared norms, which are added up over
//! tensors where they do not travel themselves.
//! @{
template <class Codec>
inline constexpr bool measures_plainly =
  has_steps<Codec> && !has_measurement<typename Codec::range_type>;
template <class Codec>
inline constexpr bool measures_magnitudes =
  measures<typename Codec::range_type, statistic::chunk_magnitude>;
template <class Codec>
inline constexpr bool measures_norms = norms_travel<Codec> || per_tensor<Codec> || tracks<Codec>;
template <class Codec>
inline constexpr bool adds_norms = measures_norms<Codec> && !norms_travel<Codec>;
//! @}

//! Codecs whose payload consists of parts of ranks, with codes of chunks and a scale for each.
template <class Codec>
concept has_parts = scattering<Codec> || in_shards<Codec> || copying<Codec>;

//! Codecs that write the residual while they encode, and must know by then what was not finite on any rank.
template <class Codec>
inline constexpr bool moves_with_codes = feeds_back<Codec>&& agrees<Codec> && !has_parts<Codec>;

}  // namespace detail

}  // namespace tersum::inline v0
