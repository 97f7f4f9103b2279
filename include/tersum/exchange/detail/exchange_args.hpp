// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What every kernel of an exchange is given: the codec, and pointers into the caller's memory.

#pragma once

#include <tersum/chunk/chunk_key.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/codec.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/detail/width_costs.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/exchange/detail/shard_map.hpp>
#include <tersum/feedback/detail/byte_block.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/plan.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/range/chunk_step.hpp>
#include <tersum/state.hpp>
#include <tersum/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief What kernels of a codec with parts are given besides. `payload` is what this rank sends.
template <class Residual>
struct part_args {
  std::uint32_t* received;   // of two_shot
  std::uint32_t* gathered;   // what all ranks decode
  Residual* owner_residual;  // chunk_size values, or a byte_chunk, for each owned chunk, or null
  std::uint64_t part_words;  // of two_shot
  part_range recompressed;   // of two_shot: where the chunks begin that are at hand
  std::uint32_t tiles;       // of per_hop: elements of the payload
};

//! @brief The same where the ways differ.
template <class Residual>
struct two_way_args : part_args<Residual> {
  std::uint64_t mean_words;  // of a part of the mean
};

//! @brief What kernels of a sharded codec are given besides. From `stage::decode` on, `gradient` is the rank's shard.
struct shard_args {
  std::uint32_t* received;
  shard_record* records;  // one a rank
  std::uint64_t begin;    // coordinates of this rank's shard
  std::uint64_t end;
};

//! @brief What kernels of a values codec are given besides. In `gather_bypass` and `encode` the gradient is the rank's shard, in
//! all other stages the values of all ranks.
struct values_args {
  std::uint32_t* gathered;
  shard_record* records;  // one a rank
  float* held;            // of differences: a value for each of the shard, or null
  std::uint64_t begin;    // coordinates of this rank's shard
  std::uint64_t end;
};

//! @brief What kernels of a codec of summed shards are given besides.
struct summed_args {
  std::uint32_t* received;  // the sum of this rank's part
  std::uint64_t begin;      // coordinates of this rank's shard
  std::uint64_t end;
  std::uint64_t first;   // its first chunk
  std::uint64_t chunks;  // and how many it has
};

//! @brief What kernels of a codec whose residual moves with its codes are given besides.
struct bypass_args {
  std::uint64_t count;  // of bypassed values
};

struct nothing {};

//! @brief What kernels of a codec are given in its place if the weight of the residual depends on the step.
struct weighed_args {
  std::uint64_t count;  // as above, or unused
  float* gain;          // four times the same
};

//! @brief What kernels of a codec in a metric are given besides.
template <class Scale>
struct metric_args {
  Scale* scales;  // plan.coordinates() values
};

//! @brief The same of a factored metric.
struct factored_args {
  float* lines;   // plan.lines() values
  double* sums;   // plan.line_sums() values
  float* shares;  // plan.shares() values
  word4* chunks;  // two a chunk, which are its `chunk_lines`
};

//! The same of a codec; nothing without a metric.
template <class Codec>
[[nodiscard]] constexpr auto metric_args_of()
{
  if constexpr (factors_metric<Codec>) {
    return factored_args{};
  } else if constexpr (in_metric<Codec>) {
    return metric_args<metric_scale<Codec>>{};
  } else {
    return nothing{};
  }
}

//! @brief Arguments of one rank's kernels. Trivially copyable; pointers are of the executor's memory.
//!
//! Neither this nor a codec has members with [[no_unique_address]]. Behind a class that is empty because of them, kernels
//! of nvcc 13.0 look for the next member at another address than the host has written it to.
template <class Codec, class Element>
struct exchange_args {
  Codec codec;
  Element* gradient;  // plan.coordinates() values, in and out
  state_header* header;
  tensor_record* records;  // header->tensors
  chunk_entry* table;      // header->chunks
  residual_element<Codec>*
    residual;  // plan.coordinates() values, of a values codec plan.shard_size(), or a byte_chunk a chunk, or null
  chunk_step* steps;       // one a chunk
  float* rotated;          // chunks * chunk_size values, full_hadamard only
  std::uint32_t* payload;  // packed codes, or cast values
  float* bypass;           // bypassed values
  void* agreed;            // agreed scalars
  std::uint64_t chunks;
  std::uint64_t tensors;
  int world;
  std::uint32_t rank;
  std::uint32_t dither_mask;  // of this rank
  std::conditional_t<
    allots_both_ways<Codec>,
    two_way_selection_args,
    std::conditional_t<orders_chunks<Codec>,
                       ordered_selection_args,
                       std::conditional_t<selects<Codec>, selection_args, nothing>>>
    selection;
  std::conditional_t<
    sharding<Codec>,
    shard_args,
    std::conditional_t<
      publishing<Codec>,
      values_args,
      std::conditional_t<
        ways_differ<Codec>,
        two_way_args<residual_element<Codec>>,
        std::conditional_t<has_parts<Codec>,
                           part_args<residual_element<Codec>>,
                           std::conditional_t<summing<Codec>, summed_args, nothing>>>>>
    parts;
  // One member for two things: another empty one would move what kernels have behind the arguments.
  std::conditional_t<weighs_kept<Codec>,
                     weighed_args,
                     std::conditional_t<moves_with_codes<Codec>, bypass_args, nothing>>
    bypassed;
  decltype(metric_args_of<Codec>()) metric;
};

//! What the state keeps of a metric.
[[nodiscard]] TERSUM_INLINE auto* kept_scales_of(auto const& args)
{
  if constexpr (requires { args.metric.lines; }) {
    return args.metric.lines;
  } else {
    return args.metric.scales;
  }
}

//! The codec of what a stage works with: of `cpu_work`, of `launch_list`.
template <class Work>
using codec_of = typename std::remove_cvref_t<Work>::codec_type;

//! @brief Where a chunk lies in the payload: its level, 0 for not at all, and its first word.
struct payload_place {
  std::uint32_t level;
  std::uint64_t word;
};

template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE payload_place find_place(exchange_args<Codec, Element> const& args,
                                                     std::uint64_t chunk)
{
  if constexpr (selects<Codec>) {
    std::uint32_t const place = args.selection.places[chunk];
    std::uint32_t const level = place & ((1u << place_shift) - 1);
    std::uint64_t const slot  = place >> place_shift;
    return {level,
            args.selection.scratch->header.base[level] + slot * args.selection.rule.words[level]};
  } else {
    return {1, chunk * static_cast<std::uint64_t>(Codec::chunk_size / Codec::lanes::lanes)};
  }
}

//! @brief Where energies count in units of their tensor's: the bits of an `energy_mean` a tensor, behind the places.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE std::uint32_t* means_of(exchange_args<Codec, Element> const& args)
{
  return args.selection.places + (args.chunks + 3) / 4 * 4;
}

//! @brief What an agreed scalar says of a chunk's energy: it is the reduced norm, or the range tells.
template <class Codec, class Element, class Scalar>
[[nodiscard]] TERSUM_INLINE auto agreed_energy(exchange_args<Codec, Element> const& args,
                                               Scalar agreed)
{
  if constexpr (requires { requires has_energy<typename Codec::range_type>; }) {
    return args.codec.range.energy(to_float(agreed), static_cast<float>(Codec::chunk_size));
  } else {
    return agreed;
  }
}

//! @brief The energy of a chunk whose agreed scalar is `agreed`: times the weight of its tensor, in units of its tensor's mean if the
//! rule says so.
template <class Codec, class Element, class Scalar>
[[nodiscard]] TERSUM_INLINE std::uint32_t weighted_energy(exchange_args<Codec, Element> const& args,
                                                          std::uint64_t chunk,
                                                          Scalar scalar)
{
  auto const agreed = agreed_energy(args, scalar);
  if constexpr (!std::is_same_v<Scalar, norm_log>) {
    if constexpr (may_choose_by_tensor<Codec>) {
      if (args.selection.rule.by_tensor != 0) {
        std::uint32_t const tensor = args.table[chunk].tensor;
        float const weight         = args.records[tensor].weight;
        return relative_energy(energy_bits(to_float(agreed) * weight, args.world),
                               means_of(args)[tensor]);
      }
    }
    if (args.selection.rule.weighted != 0) {
      float const weight = args.records[args.table[chunk].tensor].weight;
      return energy_bits(to_float(agreed) * weight, args.world);
    }
  }
  return energy_bits(agreed, args.world);
}

//! @brief What the codec's chunker compares of a chunk.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE std::uint32_t score_of(exchange_args<Codec, Element> const& args,
                                                   std::uint64_t chunk,
                                                   std::uint32_t energy)
{
  return args.codec.chunker.score(energy,
                                  chunk_key{chunk, args.header->step, args.header->sign_key});
}

//! @brief The number by which ties take turns: that of exchanges before this one.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE std::uint64_t selection_turn(exchange_args<Codec, Element> const& args)
{
  return args.header->step;
}

//! @brief Where the chunks of a codec with parts lie in this exchange. Codecs with other parts than those of ranks bring a
//! function of this name.
template <class Codec, class Element>
requires(scattering<Codec> || copying<Codec>) [[nodiscard]] TERSUM_INLINE part_map
  make_part_map(exchange_args<Codec, Element> const& args)
{
  part_map map{};
  map.world      = copying<Codec> ? 1u : static_cast<std::uint32_t>(args.world);
  map.part_words = args.parts.part_words;
  if constexpr (selects<Codec>) {
    TERSUM_UNROLL
    for (int level = 1; level <= max_levels; ++level) {
      map.count[level] = args.selection.scratch->header.count[level];
      map.words[level] = args.selection.rule.words[level];
    }
  } else {
    map.count[1] = static_cast<std::uint32_t>(args.chunks);
    map.words[1] = code_words<typename Codec::quantizer_type>(Codec::chunk_size);
  }
  return map;
}

template <in_shards Codec, class Element>
[[nodiscard]] TERSUM_INLINE shard_map make_part_map(exchange_args<Codec, Element> const& args)
{
  return {.records     = args.parts.records,
          .world       = static_cast<std::uint32_t>(args.world),
          .chunk_words = code_words<typename Codec::quantizer_type>(Codec::chunk_size)};
}

//! @brief The same for parts of the mean, which is what all ranks decode.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE auto make_mean_map(exchange_args<Codec, Element> const& args)
{
  if constexpr (ways_differ<Codec>) {
    mean_map map{make_part_map(args)};
    map.part_words = args.parts.mean_words;
    if constexpr (allots_both_ways<Codec>) {
      TERSUM_UNROLL
      for (int level = 1; level <= max_levels; ++level) {
        map.words[level] = args.selection.mean.words[level];
      }
    } else {
      map.words[1] = code_words<typename Codec::mean_quantizer_type>(Codec::chunk_size);
    }
    return map;
  } else {
    return make_part_map(args);
  }
}

//! @brief What says of which codes the mean is, where the ways differ.
template <class Codec, int Level = 1>
struct mean_codes {
  using quantizer_type = typename mean_level<Codec, Level>::type;
};

//! @brief Calls body(what says of which codes the mean of a chunk is on its level).
TERSUM_EXEC_CHECK_DISABLE
template <class Codec, int Level = 1, class Body>
TERSUM_INLINE void at_mean_level([[maybe_unused]] std::uint32_t level, Body const& body)
{
  if constexpr (several_bits<Codec>) {
    if constexpr (Level < Codec::chunker_type::level_count) {
      if (level > Level) { return at_mean_level<Codec, Level + 1>(level, body); }
    }
  }
  body(mean_codes<Codec, Level>{});
}

//! @brief What says of which codes the chunks of a map are: the codec, but for `mean_map`.
template <class Codec, class Map>
using codes_of_map = std::conditional_t<std::is_same_v<Map, mean_map>, mean_codes<Codec>, Codec>;

//! @brief Calls body(codec) with what says of which codes a chunk of a map is, on its level.
TERSUM_EXEC_CHECK_DISABLE
template <class Map, class Codec, class Body>
TERSUM_INLINE void at_level_of(Map const&,
                               [[maybe_unused]] Codec const& codec,
                               [[maybe_unused]] std::uint32_t level,
                               Body const& body)
{
  if constexpr (std::is_same_v<Map, mean_map>) {
    at_mean_level<Codec>(level, body);
  } else {
    at_level(codec, level, body);
  }
}

//! @brief The place in a map of the mean of a chunk whose place among the parts that are sent is known.
template <class Map>
[[nodiscard]] TERSUM_INLINE part_place place_of_mean([[maybe_unused]] Map const& map,
                                                     part_place const& place)
{
  if constexpr (std::is_same_v<Map, mean_map>) {
    return map.of_index(place.part, place.index);
  } else {
    return place;
  }
}

//! @brief Where a chunk lies among the parts.
template <class Codec, class Element, class Map>
[[nodiscard]] TERSUM_INLINE part_place find_part(
  [[maybe_unused]] exchange_args<Codec, Element> const& args, Map const& map, std::uint64_t chunk)
{
  if constexpr (selects<Codec>) {
    std::uint32_t const place = args.selection.places[chunk];
    return map.of_slot(place & ((1u << place_shift) - 1), place >> place_shift);
  } else if constexpr (requires { map.of_chunk(std::uint32_t{}); }) {
    return map.of_chunk(static_cast<std::uint32_t>(chunk));
  } else {
    return map.of_slot(1, static_cast<std::uint32_t>(chunk));
  }
}

//! @brief Whether the agreed scalars were summed over the ranks. If the budget pays for nothing, this rank has measured
//! them and no other knows them, so that they must not change what is decoded.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE bool has_agreed(
  [[maybe_unused]] exchange_args<Codec, Element> const& args)
{
  if constexpr (selects<Codec>) { return args.selection.rule.capacity > 0; }
  return true;
}

//! @brief Whether a piece of a tensor lies in this rank's shard.
template <summing Codec, class Element>
[[nodiscard]] TERSUM_INLINE bool is_own(exchange_args<Codec, Element> const& args,
                                        tensor_record const& record)
{
  return record.offset >= args.parts.begin && record.offset < args.parts.end;
}

//! @brief What the head-room of a tensor's chunks follows in this exchange: what its record says, or what its owner has told.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE float ratio_of(exchange_args<Codec, Element> const& args,
                                           [[maybe_unused]] std::uint64_t tensor,
                                           tensor_record const& record)
{
  if constexpr (tells_ratios<Codec>) {
    return to_float(
      static_cast<typename Codec::norm_scalar const*>(args.agreed)[args.chunks + tensor]);
  } else {
    return record.ratio;
  }
}

//! Whether to recompress, in this call, a chunk whose codes begin at this word of the rank's own part.
template <scattering Codec, class Element>
[[nodiscard]] TERSUM_INLINE bool is_at_hand(exchange_args<Codec, Element> const& args,
                                            std::uint64_t word)
{
  return word >= args.parts.recompressed.begin && word < args.parts.recompressed.end;
}

//! The number that keys the signs and the dither of this step.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE dither_key key_of(exchange_args<Codec, Element> const& args)
{
  return {.seed = args.header->seed, .step = args.header->step, .rank = args.rank};
}

//! @brief By what `weighed` multiplies in this exchange what was kept.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE float weight_of_kept(
  [[maybe_unused]] exchange_args<Codec, Element> const& args)
{
  if constexpr (weighs_kept<Codec>) {
    std::uint64_t const step = args.header->step;
    if constexpr (requires { args.feedback; }) {
      return args.feedback.kept_weight(step, *args.bypassed.gain);
    } else {
      return args.codec.feedback.kept_weight(step, *args.bypassed.gain);
    }
  }
  return 1.0f;
}

//! @brief What feedback is given of what was kept.
template <class Codec, class Arithmetic>
[[nodiscard]] TERSUM_INLINE float weighed(Arithmetic const&,
                                          [[maybe_unused]] float weight,
                                          float kept)
{
  if constexpr (weighs_kept<Codec>) { return Arithmetic::multiply(weight, kept); }
  return kept;
}

//! @brief The draw that rounds what a rank keeps of a chunk's first coordinate; `kept_value` takes those of all. Without a meaning
//! where floats are kept.
//! @param rank  This rank, or `second_rank` for what an owner keeps.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE std::uint32_t draw_of_kept(
  [[maybe_unused]] exchange_args<Codec, Element> const& args,
  [[maybe_unused]] std::uint64_t chunk,
  [[maybe_unused]] std::uint32_t rank)
{
  if constexpr (!std::is_same_v<residual_element<Codec>, float>) {
    return first_kept_draw(chunk, args.header->sign_key, rank);
  }
  return 0;
}

//! Writes the gain of a state before its first exchange.
template <class Codec, class Element>
TERSUM_INLINE void first_gain([[maybe_unused]] exchange_args<Codec, Element> const& args)
{
  if constexpr (weighs_kept<Codec>) {
    for (int i = 0; i < 4; ++i) { args.bypassed.gain[i] = 1.0f; }
  }
}

//! Sets the flag of this exchange: a rank's gradient was found not finite. Threads that race write the same value.
template <class Codec, class Element>
TERSUM_INLINE void raise_flag(exchange_args<Codec, Element> const& args)
{
  std::uint64_t const number = args.header->step + 1;
#if defined(__CUDA_ARCH__)
  args.header->non_finite_step = number;
#else
  __atomic_store_n(&args.header->non_finite_step, number, __ATOMIC_RELAXED);
#endif
}

//! Whether the flag of this exchange is set: a rank's gradient was found not finite.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE bool step_is_poisoned(exchange_args<Codec, Element> const& args)
{
  return args.header->non_finite_step == args.header->step + 1;
}

//! How many values the residual in a state has.
template <class Codec>
[[nodiscard]] constexpr std::uint64_t residuals_in(plan<Codec> const& plan) noexcept
{
  if constexpr (publishing<Codec>) {
    return plan.residuals();
  } else if constexpr (keeps_blocks<Codec>) {
    return plan.chunks();
  } else {
    return plan.coordinates();
  }
}

//! @brief The array at an offset of the caller's memory, or null if the memory is empty, as the workspace of `initialize`.
template <class T>
[[nodiscard]] T* place_in(std::span<std::byte> memory, std::size_t offset) noexcept
{
  return memory.empty() ? nullptr : reinterpret_cast<T*>(memory.data() + offset);
}

}  // namespace tersum::inline v0::detail
