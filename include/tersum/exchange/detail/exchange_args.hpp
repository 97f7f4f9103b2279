// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What every kernel of an exchange is given: the codec, and what its policies have in the caller's memory; and what all kernels find
//! by that: keys, flags, where a chunk lies in the payload, the energies of chunks, and what feedback is given of what it kept.

#pragma once

#include <tersum/block/chunk_step.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/state.hpp>
#include <tersum/types.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! What kernels are given of feedback besides the residual: nothing.
struct steady_feedback {
  constexpr void take_gain(section_list& state, std::uint64_t) noexcept
  {
    state.take<float>("gain", 0);
  }
  TERSUM_INLINE void first_gain() const {}
  //! By what is multiplied what was kept.
  template <class Feedback>
  [[nodiscard]] TERSUM_INLINE float weight(Feedback const&, state_header const*) const
  {
    return 1.0f;
  }
};

//! The same of a codec whose residual moves with its codes.
struct counted_feedback : steady_feedback {
  std::uint64_t count;  // of bypassed values

  constexpr void take_gain(section_list& state, std::uint64_t bypassed) noexcept
  {
    count = bypassed;
    steady_feedback::take_gain(state, bypassed);
  }
};

//! The same if the weight of the residual depends on the step.
struct weighed_feedback {
  std::uint64_t count;  // as above, or unused
  float* gain;          // four times the same, so that what follows is aligned

  constexpr void take_gain(section_list& state, std::uint64_t bypassed) noexcept
  {
    count = bypassed;
    gain  = state.take<float>("gain", 4);
  }
  TERSUM_INLINE void first_gain() const
  {
    for (int i = 0; i < 4; ++i) { gain[i] = 1.0f; }
  }
  template <class Feedback>
  [[nodiscard]] TERSUM_INLINE float weight(Feedback const& feedback,
                                           state_header const* header) const
  {
    return feedback.kept_weight(header->step, *gain);
  }
};

//! @brief What kernels of a codec are given of its feedback besides the residual.
template <class Codec>
using feedback_args = std::conditional_t<
  weighs_kept<Codec>,
  weighed_feedback,
  std::conditional_t<moves_with_codes<Codec>, counted_feedback, steady_feedback>>;

//! @brief A residual for each of so many coordinates, or null where none is kept.
template <class Codec>
[[nodiscard]] constexpr residual_element<Codec>* take_residual(section_list& state,
                                                               section name,
                                                               bool kept,
                                                               std::uint64_t coordinates) noexcept
{
  auto* const residual = state.keep<residual_element<Codec>>(name, kept ? coordinates : 0);
  return kept ? residual : nullptr;
}

//! Without scales nothing is kept.
template <class Metric>
struct kept_scales {
  static constexpr float const* scales = nullptr;

  static constexpr kept_scales of(section_list& state, std::uint64_t) noexcept
  {
    state.keep<float>("scales", 0);
    return {};
  }
};

//! A scale for each coordinate.
template <class Metric>
requires(Metric::scaled) struct kept_scales<Metric> {
  using scale = typename scale_of<Metric>::type;

  scale* scales;  // plan.coordinates() values

  static constexpr kept_scales of(section_list& state, std::uint64_t coordinates) noexcept
  {
    return {state.keep<scale>("scales", round_up(coordinates, 16 / sizeof(scale)))};
  }
};

//! @brief Arguments of one rank's kernels. Trivially copyable; pointers are of the executor's memory.
//!
//! Neither this nor a codec has members with [[no_unique_address]]. Behind a class that is empty because of them, kernels
//! of nvcc 13.0 look for the next member at another address than the host has written it to.
template <class Codec, class Element>
struct exchange_args {
  Codec codec;
  Element* gradient;  // plan.coordinates() values, in and out
  state_header* header;
  tensor_record* records;                          // header->tensors
  typename Codec::counts_type::entry_type* table;  // header->chunks
  residual_element<Codec>* residual;               // plan.own_coordinates() values, or null
  chunk_step* steps;                               // one a chunk
  float* rotated;          // chunks * chunk_size values, of rotators of whole tensors only
  std::uint32_t* payload;  // packed codes, or cast values
  float* bypass;           // bypassed values
  void* agreed;            // agreed scalars
  std::uint64_t chunks;
  std::uint64_t tensors;
  int world;
  std::uint32_t rank;
  std::uint32_t dither_mask;  // of this rank
  typename Codec::counts_type::selection_type selection;
  typename Codec::counts_type::parts_type parts;
  feedback_args<Codec> bypassed;
  kept_scales<typename Codec::metric_type> metric;
};

//! The codec of what a stage works with: of `cpu_work`, of `launch_list`.
template <class Work>
using codec_of = typename std::remove_cvref_t<Work>::codec_type;

//! Where a chunk lies in the payload.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE auto find_place(exchange_args<Codec, Element> const& args,
                                            std::uint64_t chunk)
{
  return args.selection.find(chunk);
}

//! Whether what is compressed as one is a chunk of coordinates. Matrices have no entry of this kind.
template <class Codec>
inline constexpr bool in_chunks =
  std::is_same_v<typename Codec::counts_type::entry_type, chunk_entry>;

//! The rank in whose shard a piece of a tensor lies tells the others its `tensor_record::ratio`, in a scalar that they sum.
template <class Codec>
inline constexpr bool tells_ratios = summing<Codec>&& tracks<Codec>;

//! What the table of a state has of the chunk number `i` of a record.
template <class Codec>
[[nodiscard]] TERSUM_INLINE chunk_entry entry_of(tensor_record const& record,
                                                 std::uint64_t i,
                                                 std::uint32_t tensor)
{
  constexpr std::uint64_t size = Codec::chunk_size;
  // A padded power of two of chunks, as rotators of whole tensors have, ends with chunks that hold nothing.
  std::uint64_t const begin = minimum(i * size, record.size);
  return {.offset = record.offset + begin,
          .length = static_cast<std::uint32_t>(minimum(size, record.size - begin)),
          .tensor = tensor};
}

//! The key of the signs of a step. Only chunks have signs.
template <class Codec>
[[nodiscard]] TERSUM_INLINE constexpr std::uint64_t key_of_signs(std::uint64_t step,
                                                                 std::uint64_t seed)
{
  return in_chunks<Codec> ? sign_key(step, seed) : 0;
}

//! The number that keys the signs and the dither of this step.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE dither_key key_of(exchange_args<Codec, Element> const& args)
{
  return {.seed = args.header->seed, .step = args.header->step, .rank = args.rank};
}

//! @brief Stores what several threads, and threads of several blocks, may store at once: only strong stores may do that.
template <class T>
TERSUM_INLINE void store_from_several(T* to, T value)
{
#if defined(__CUDA_ARCH__)
  *static_cast<T volatile*>(to) = value;
#else
  __atomic_store_n(to, value, __ATOMIC_RELAXED);
#endif
}

//! Sets the flag of this exchange: a rank's gradient was found not finite.
template <class Codec, class Element>
TERSUM_INLINE void raise_flag(exchange_args<Codec, Element> const& args)
{
  store_from_several(&args.header->non_finite_step, args.header->step + 1);
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

//! @brief What an agreed scalar says of a chunk's energy: it is the reduced norm, or the range tells.
template <class Codec, class Element, class Scalar>
[[nodiscard]] TERSUM_INLINE auto agreed_energy(
  [[maybe_unused]] exchange_args<Codec, Element> const& args, Scalar agreed)
{
  if constexpr (requires { requires has_energy<typename Codec::range_type>; }) {
    return args.codec.coder.range.energy(to_float(agreed), static_cast<float>(Codec::chunk_size));
  } else {
    return agreed;
  }
}

//! @brief The energy of a chunk whose agreed scalar is `agreed`, times the weight of its tensor.
template <class Codec, class Element, class Scalar>
[[nodiscard]] TERSUM_INLINE std::uint32_t weighted_energy(exchange_args<Codec, Element> const& args,
                                                          std::uint64_t chunk,
                                                          Scalar scalar)
{
  auto const agreed = agreed_energy(args, scalar);
  if (args.selection.rule.weighted != 0) {
    float const weight = args.records[args.table[chunk].tensor].weight;
    return energy_bits(to_float(agreed) * weight);
  }
  return energy_bits(agreed);
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

//! @brief Whether the agreed scalars were summed over the ranks. If the budget pays for nothing, this rank has measured
//! them and no other knows them, so that they must not change what is decoded.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE bool has_agreed(exchange_args<Codec, Element> const& args)
{
  return args.selection.pays();
}

//! @brief The squared norm of which a chunk's first scales are the root mean square. A chunk of casts that has not travelled has that
//! which the mean would have if the ranks' gradients were independent, from the norms that they agreed on: chunks are chosen in units
//! of scales, and without any it would count as much as its gradient, so next to nothing for ever.
//! @param decoded  The squared norm of what was decoded.
template <class Codec, class Element, class Arithmetic>
[[nodiscard]] TERSUM_INLINE float first_square([[maybe_unused]] Arithmetic const& math,
                                               exchange_args<Codec, Element> const& args,
                                               [[maybe_unused]] std::uint64_t chunk,
                                               float decoded)
{
  if constexpr (casts<Codec> && agrees<Codec>) {
    if (has_agreed(args) && find_place(args, chunk).level == 0) {
      using scalar       = typename Codec::norm_scalar;
      float const agreed = to_float(static_cast<scalar const*>(args.agreed)[chunk]);
      auto const world   = static_cast<float>(args.world);
      return Arithmetic::divide(Arithmetic::divide(agreed, world), world);
    }
  }
  return decoded;
}

//! @brief Whether a piece of a tensor lies in this rank's shard.
template <summing Codec, class Element>
[[nodiscard]] TERSUM_INLINE bool is_own(exchange_args<Codec, Element> const& args,
                                        tensor_record const& record)
{
  return record.offset >= args.parts.begin && record.offset < args.parts.end;
}

//! @brief The arguments with which a rank decodes its shard as a part of the whole: the sums lie where they would if they were of
//! all chunks, and the shard where it would if all coordinates were there. Only what is the shard's is there.
template <summing Codec, class Element>
[[nodiscard]] exchange_args<Codec, Element> as_of_whole(exchange_args<Codec, Element> args) noexcept
{
  auto const before = [](auto* array, std::uint64_t count) {
    using pointer = decltype(array);
    return reinterpret_cast<pointer>(reinterpret_cast<std::uintptr_t>(array) -
                                     static_cast<std::uintptr_t>(count * sizeof *array));
  };
  args.gradient = before(args.gradient, args.parts.begin);
  args.payload  = before(args.parts.received, find_place(args, args.parts.first).word);
  args.chunks   = args.parts.first + args.parts.chunks;
  return args;
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

//! @brief By what `weighed` multiplies in this exchange what was kept.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE float weight_of_kept(exchange_args<Codec, Element> const& args)
{
  return args.bypassed.weight(args.codec.feedback, args.header);
}

//! @brief What feedback is given of what was kept.
template <class Codec, class Arithmetic>
[[nodiscard]] TERSUM_INLINE float weighed(Arithmetic const&, float weight, float kept)
{
  return weighs_kept<Codec> ? Arithmetic::multiply(weight, kept) : kept;
}

//! @brief Whether a cast keeps this for the next step, or else what it had kept. Sums of floats below 2^20, which halves are made of,
//! are finite.
template <class Codec>
[[nodiscard]] TERSUM_INLINE bool is_kept(float rest)
{
  using sent = typename Codec::quantizer_type::element;
  return (std::is_same_v<sent, half> && has_adds_lost<typename Codec::feedback_type> &&
          !weighs_kept<Codec> && !in_metric<Codec>) ||
         ::fabsf(rest) < INFINITY;
}

//! @brief The draw that rounds what a rank keeps of a chunk's first coordinate, new in each step and of each rank; that of coordinate
//! i is i `draw_stride` more. Bits above 16 mean nothing, nor does any where floats are kept.
//! @param rank  This rank, or `second_rank` for what an owner keeps.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE std::uint32_t draw_of_kept(exchange_args<Codec, Element> const& args,
                                                       std::uint64_t chunk,
                                                       std::uint32_t rank)
{
  if (std::is_same_v<residual_element<Codec>, float>) { return 0; }
  return first_draw(chunk, args.header->sign_key ^ (rank + 1) * 0xc2b2ae3d27d4eb4fu);
}

}  // namespace tersum::inline v0::detail
