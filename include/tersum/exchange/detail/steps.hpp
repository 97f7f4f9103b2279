// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The first state, from agreed scalars to the step of a chunk, and from a decoded sum to the head-room of the next exchange.

#pragma once

#include <tersum/block/chunk_step.hpp>
#include <tersum/chunk/detail/chunk_choice.hpp>
#include <tersum/codec.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/types.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! Chunks of a tensor whose terms are added before those of others, in sums over its chunks.
inline constexpr std::uint64_t subtree_chunks = 1024;

//! @brief How many subtrees the sum over a tensor's chunks has. Each has `subtree_chunks` chunks; those left over are in the last
//! one, which has fewer than twice as many.
[[nodiscard]] TERSUM_INLINE constexpr std::uint64_t subtrees_of(std::uint64_t tensor_chunks)
{
  return tensor_chunks < subtree_chunks ? 1 : tensor_chunks / subtree_chunks;
}

//! @brief The sum of 1024 doubles, halving from the top.
[[nodiscard]] inline double halving_total(double (&sums)[1024])
{
  for (int half_of = 512; half_of > 0; half_of /= 2) {
    for (int i = 0; i < half_of; ++i) { sums[i] = sums[i] + sums[i + half_of]; }
  }
  return sums[0];
}

//! @brief The sum over a tensor's chunks in the order that the tensor kernels have: of each subtree, then of the subtrees.
template <class Term>
[[nodiscard]] double tensor_sum(tensor_record const& record, Term const& term)
{
  std::uint64_t const subtrees = subtrees_of(record.chunks);
  double of_subtrees[1024]     = {};
  for (std::uint64_t k = 0; k < subtrees; ++k) {
    std::uint64_t const begin = k * subtree_chunks;
    std::uint64_t const end   = k + 1 < subtrees ? begin + subtree_chunks : record.chunks;
    double sums[1024]         = {};
    for (std::uint64_t i = begin; i < end; ++i) {
      double& sum = sums[(i - begin) % 1024];
      sum         = term(sum, record.first_chunk + i);
    }
    double const total = halving_total(sums);
    if (subtrees == 1) { return total; }
    of_subtrees[k % 1024] = of_subtrees[k % 1024] + total;
  }
  return halving_total(of_subtrees);
}

//! @brief A float that is not negative, as an agreed scalar. NaN becomes infinity, which the sums and maxima of every
//! transport keep. Magnitudes are rounded `upwards`, so that no coordinate lies beyond the stored one.
template <class Scalar>
[[nodiscard]] TERSUM_INLINE Scalar to_agreed(float value, bool upwards)
{
  float const infinity = bits_float(0x7f800000u);
  float const shown    = value < infinity ? value : infinity;  // NaN becomes infinity too
  if constexpr (std::is_same_v<Scalar, bfloat16>) {
    return upwards ? to_bfloat16_upwards(shown) : to_bfloat16(shown);
  } else {
    return shown;
  }
}

//! @brief What a range has measured of a chunk, on its way to the wire. Where ranks take maxima nothing is rounded down.
template <class Range>
[[nodiscard]] TERSUM_INLINE typename Range::scalar to_agreed(float value)
{
  return to_agreed<typename Range::scalar>(value, takes_maxima<Range>);
}

//! @brief By how much rotated values are too large: the square root of what the rotator multiplies squared norms by. Under
//! a rotator of whole tensors that is the number of coordinates in `tensor_chunks` chunks.
template <class Codec>
[[nodiscard]] TERSUM_INLINE float rotation_root(std::uint64_t tensor_chunks)
{
  return ::sqrtf(static_cast<float>(Codec::rotates_all
                                      ? tensor_chunks * Codec::chunk_size
                                      : std::uint64_t{square_gain<typename Codec::rotator_type>}));
}

//! @brief The clip of a codec's range; if that is 0, the one with which its reducer has the least error for so many ranks.
template <class Codec>
[[nodiscard]] TERSUM_INLINE float clip_of(Codec const& codec, [[maybe_unused]] int world)
{
  if constexpr (requires { Codec::reducer_type::best_clip(world); }) {
    if (codec.coder.range.clip == 0.0f) { return Codec::reducer_type::best_clip(world); }
  }
  return codec.coder.range.clip;
}

//! @brief The step of one chunk, the same on every rank because `measured` is.
//!
//! With the range R of one rank, step = R * clip * head-room / max_level. Under `rms_range`, for instance, with 4 ranks
//! whose norms sum to S and chunks of 1024, R is sqrt(S / 4096). A chunk whose scalar is not finite, or whose step is
//! above 2^100, is poisoned: it decodes to NaN on every rank. A chunk whose step would be below 2^-100 has none and
//! decodes to zeros. Products go into multiplications and divisions only, so that no compiler can contract them.
//! @param measured       The agreed scalar.
//! @param ratio          The tensor's `tensor_record::ratio`.
//! @param tensor_chunks  Chunks of the tensor.
template <class Codec>
[[nodiscard]] TERSUM_INLINE chunk_step step_of_chunk(
  Codec const& codec, int world, float measured, float ratio, std::uint64_t tensor_chunks)
{
  using quantizer         = typename Codec::quantizer_type;
  std::uint64_t const all = (per_tensor<Codec> ? tensor_chunks : 1) * Codec::chunk_size;
  auto const coordinates  = static_cast<float>(all);
  // A copy: through a reference nvcc 13.0 takes two registers more.
  auto const range      = codec.coder.range;
  float const own_range = range.rank_range(measured, world, coordinates);
  float const bound     = range.bound(measured, world, coordinates);
  float const headroom  = range.headroom.factor(world, ratio);
  float const clip      = clip_of(codec, world);
  float const wanted    = own_range * clip * headroom / static_cast<float>(quantizer::max_level);
  return make_chunk_step<typename Codec::rotator_type, quantizer>(
    wanted, bound, world, rotation_root<Codec>(tensor_chunks));
}

//! @brief Whether a chunk did not travel, so that its energy is missing in what was decoded.
template <class Codec>
[[nodiscard]] TERSUM_INLINE bool stays_behind(chunk_step const& step)
{
  return selects<Codec> && step.decode == 0.0f;
}

//! @brief sqrt(|sum|^2 / energy of one rank); or `before`, if there is no energy to compare with, or a chunk of the tensor is
//! not finite, which makes both NaN or Inf.
//!
//! @param of_sum  Adds up, over the chunks, decode^2 times the squares of the summed codes.
//! @param energy  Squared norm of one rank: the mean over the ranks if norms were summed, otherwise the largest.
template <class Codec>
[[nodiscard]] TERSUM_INLINE float correlation_ratio(
  double of_sum, double energy, int world, std::uint64_t tensor_chunks, float before)
{
  double const lengths =
    static_cast<double>(world) * static_cast<double>(rotation_root<Codec>(tensor_chunks));
  double const square = of_sum * lengths * lengths / energy;
  // Where norms of chunks travel, a chunk whose norm is not finite is poisoned, and the square is a NaN.
  bool const finite = norms_travel<Codec> || energy < 0x1p200;
  return energy > 0 && finite && square < 0x1p60 ? ::sqrtf(static_cast<float>(square)) : before;
}

//! @brief Puts the ratio of a tensor among the scalars that the ranks sum; zero if it is another rank's to tell.
template <class Codec, class Element>
requires(tells_ratios<Codec>) TERSUM_INLINE
  void tell_ratio(exchange_args<Codec, Element> const& args, std::uint64_t tensor)
{
  using scalar                = typename Codec::norm_scalar;
  tensor_record const& record = args.records[tensor];
  float const told            = is_own(args, record) ? record.ratio : 0.0f;
  static_cast<scalar*>(args.agreed)[args.chunks + tensor] = to_agreed<scalar>(told, true);
}

//! @brief Adds the energy of one chunk of the decoded sum. A float's square is exact in double; the fused product rounds once.
[[nodiscard]] TERSUM_INLINE double add_energy(double sum, chunk_step const& step)
{
  double const square = static_cast<double>(step.decode) * static_cast<double>(step.decode);
  return ::fma(square, static_cast<double>(step.square_sum), sum);
}

//! @brief The step of a chunk from the agreed scalars, and the flag of a gradient that is not finite.
template <class Codec, class Element>
TERSUM_INLINE void derive_step(exchange_args<Codec, Element> const& args, std::uint64_t chunk)
{
  using scalar               = typename Codec::norm_scalar;
  scalar const* const agreed = static_cast<scalar const*>(args.agreed);
  bool poisoned              = false;
  if constexpr (!has_steps<Codec>) {
    poisoned = has_agreed(args) && energy_bits(agreed[chunk]) == 0x7f800000u;
  } else {
    std::uint32_t const tensor  = args.table[chunk].tensor;
    tensor_record const& record = args.records[tensor];
    float const measured =
      has_agreed(args) ? to_float(agreed[per_tensor<Codec> ? tensor : chunk]) : 0.0f;
    float const ratio         = ratio_of(args, tensor, record);
    std::uint32_t const level = find_place(args, chunk).level;
    chunk_step step{};
    if (selects<Codec> && level == 0) {
      // It has none; but if its gradient was not finite it still decodes to NaN.
      step.decode = is_finite(measured) ? 0.0f : bits_float(0x7fffffffu);
    } else {
      at_level(args.codec, level, [&](auto const& chosen) {
        step = step_of_chunk(chosen, args.world, measured, ratio, record.chunks);
      });
    }
    poisoned          = !is_finite(step.decode);
    args.steps[chunk] = step;
  }
  if (poisoned) { raise_flag(args); }
}

//! @brief What an exchange leaves of a tensor: how many lanes were at a limit, and the correlation of the ranks.
//! @param of_sum     As of `correlation_ratio`, before lanes at a limit are thought of.
//! @param saturated  Lanes at a limit.
//! @param norms      The agreed norms of the chunks that travelled, added up.
template <class Codec, class Element>
TERSUM_INLINE void finish_tensor(exchange_args<Codec, Element> const& args,
                                 std::uint64_t tensor,
                                 [[maybe_unused]] double of_sum,
                                 double saturated,
                                 [[maybe_unused]] double norms)
{
  tensor_record& record                       = args.records[tensor];
  [[maybe_unused]] std::uint64_t const chunks = record.chunks;
  if (saturates<Codec>) { record.saturated = static_cast<std::uint64_t>(saturated); }
  if constexpr (tracks<Codec>) {
    // With three quarters of the lanes at a limit the range was far too narrow for the sum, which looks no larger than the range, and
    // is taken to have four times the energy, so that the head-room doubles.
    double const many = 0.75 * Codec::chunk_size * static_cast<double>(chunks);
    if (saturates<Codec> && saturated >= many) { of_sum = 4 * of_sum; }
    double energy = norms / args.world;
    if constexpr (!norms_travel<Codec>) {
      auto const* const agreed = static_cast<typename Codec::norm_scalar const*>(args.agreed);
      energy =
        static_cast<double>(to_float(agreed[(per_tensor<Codec> ? 0 : args.chunks) + tensor]));
    }
    float const measured =
      correlation_ratio<Codec>(of_sum, energy, args.world, chunks, record.ratio);
    // Of what lies in other ranks' shards it is what they have told.
    if constexpr (tells_ratios<Codec>) {
      record.ratio = is_own(args, record) ? measured : ratio_of(args, tensor, record);
    } else {
      record.ratio = measured;
    }
  }
}

//! @brief Whether what this rank has of bypassing tensors is what lies in its shard.
template <bool Encode, class Codec>
inline constexpr bool bypasses_shard = Encode ? publishing<Codec> : ending_in_shards<Codec>;

//! @brief Copies a coordinate that bypasses the codec to the wire when `Encode`, otherwise back: its mean, or what a rank published.
TERSUM_EXEC_CHECK_DISABLE
template <bool Encode, class Memory, class Codec, class Element>
TERSUM_INLINE void move_bypassed(Memory const& memory,
                                 exchange_args<Codec, Element> const& args,
                                 tensor_record const& record,
                                 std::uint64_t i,
                                 [[maybe_unused]] float share)
{
  float* const wire = args.bypass + record.bypass + i;
  Element mean{};
  if (!Encode) {
    float const sum = memory.load(wire);
    if (!is_finite(sum)) { raise_flag(args); }
    mean =
      Memory::template element<Element>(publishing<Codec> ? sum : Memory::multiply(sum, share));
  }
  std::uint64_t at = record.offset + i;
  if constexpr (bypasses_shard<Encode, Codec>) {
    if (at < args.parts.begin || at >= args.parts.end) { return; }
    at -= args.parts.begin;
  }
  if (Encode) {
    memory.store(wire, Memory::value(memory.load(args.gradient + at)));
  } else {
    memory.store(args.gradient + at, mean);
  }
}

//! @brief Copies one coordinate of what all ranks hold of this rank's shard.
TERSUM_EXEC_CHECK_DISABLE
template <class Memory, class Codec, class Element>
TERSUM_INLINE void recall_held(Memory const& memory,
                               exchange_args<Codec, Element> const& args,
                               std::uint64_t at)
{
  Element const held = memory.load(args.gradient + args.parts.begin + at);
  memory.store(args.parts.held + at, Memory::value(held));
}

//! @brief The header of a state before its first exchange. `key` is the sign key of step 0, `layout` the plan's fingerprint.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE state_header first_header(exchange_args<Codec, Element> const& args,
                                                      std::uint64_t seed,
                                                      std::uint64_t coordinates,
                                                      std::uint64_t key,
                                                      std::uint64_t layout)
{
  return {.seed            = seed,
          .step            = 0,
          .non_finite_step = 0,
          .tensors         = args.tensors,
          .chunks          = args.chunks,
          .coordinates     = coordinates,
          .sign_key        = key,
          .layout          = layout};
}

//! @brief Numbers the next step of training.
template <class Codec, class Element>
TERSUM_INLINE void end_step(exchange_args<Codec, Element> const& args)
{
  args.header->step     = args.header->step + 1;
  args.header->sign_key = key_of_signs<Codec>(args.header->step, args.header->seed);
}

}  // namespace tersum::inline v0::detail
