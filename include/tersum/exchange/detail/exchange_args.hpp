// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What every kernel of an exchange is given: the codec, and pointers into the caller's memory.

#pragma once

#include <tersum/chunk/detail/selection.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/width_costs.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/range/chunk_step.hpp>
#include <tersum/state.hpp>
#include <tersum/types.hpp>
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
  Residual* owner_residual;  // chunk_size values for each owned chunk, or null
  std::uint64_t part_words;  // of two_shot
  part_range recompressed;   // of two_shot: where the chunks begin that are at hand
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

//! @brief What kernels of casts with feedback are given besides.
struct summand_args {
  float largest;       // of what a rank sends: see largest_summand
  std::uint32_t pair;  // twice the same as an element of 16 bits
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

//! The same of a codec; nothing without a metric.
template <class Codec>
[[nodiscard]] constexpr auto metric_args_of()
{
  if constexpr (in_metric<Codec>) {
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
    residual;         // plan.coordinates() values, of a values codec plan.shard_size(), or null
  chunk_step* steps;  // one a chunk
  float* rotated;     // chunks * chunk_size values, of rotators of whole tensors only
  std::uint32_t* payload;  // packed codes, or cast values
  float* bypass;           // bypassed values
  void* agreed;            // agreed scalars
  std::uint64_t chunks;
  std::uint64_t tensors;
  int world;
  std::uint32_t rank;
  std::uint32_t dither_mask;  // of this rank
  std::conditional_t<orders_chunks<Codec>,
                     ordered_selection_args,
                     std::conditional_t<selects<Codec>, selection_args, nothing>>
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
        std::conditional_t<
          has_parts<Codec>,
          part_args<residual_element<Codec>>,
          std::conditional_t<
            summing<Codec>,
            summed_args,
            std::conditional_t<casts<Codec> && feeds_back<Codec>, summand_args, nothing>>>>>>
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
    // What does not travel has no place: with one width all others have that of level 1.
    std::uint32_t const at = several_bits<Codec> ? level : 1u;
    return {level, args.selection.scratch->header.base[at] + slot * args.selection.rule.words[at]};
  } else {
    return {1, chunk * static_cast<std::uint64_t>(Codec::chunk_size / Codec::lanes::lanes)};
  }
}

//! The number that keys the signs and the dither of this step.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE dither_key key_of(exchange_args<Codec, Element> const& args)
{
  return {.seed = args.header->seed, .step = args.header->step, .rank = args.rank};
}

//! Sets the flag of this exchange: a rank's gradient was found not finite. Threads that race write the same value.
template <class Codec, class Element>
TERSUM_INLINE void raise_flag(exchange_args<Codec, Element> const& args)
{
  std::uint64_t const number = args.header->step + 1;
#if defined(__CUDA_ARCH__)
  // Threads of several blocks may store the same number at once, which only strong stores may do.
  *static_cast<std::uint64_t volatile*>(&args.header->non_finite_step) = number;
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

//! @brief What a rank has measured of its own chunk. If it is not finite nothing is kept of this step, whatever the wire brings back.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE float inspected(exchange_args<Codec, Element> const& args, float own)
{
  if (feeds_back<Codec> && !is_finite(own)) { raise_flag(args); }
  return own;
}

//! @brief The array at an offset of the caller's memory, or null if the memory is empty, as the workspace of `initialize`.
template <class T>
[[nodiscard]] T* place_in(std::span<std::byte> memory, std::size_t offset) noexcept
{
  return memory.empty() ? nullptr : reinterpret_cast<T*>(memory.data() + offset);
}

}  // namespace tersum::inline v0::detail
