// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One pass of the Hadamard transform of whole tensors through global memory. Kernel bodies.

#pragma once

#include <tersum/block/chunk_order.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/plan.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/rotate/block_hadamard.hpp>
#include <tersum/tuning.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

template <class Context>
inline constexpr int full_pass_threads = tuning_of<Context>.cuda.pass_threads;

//! @brief Where a thread's 32 coordinates of a tensor lie in pass p, which transforms the index bits 5p .. 5p+4 that exist.
struct full_pass_place {
  std::uint64_t begin;   //!< The tensor's first coordinate in the rotated copy.
  std::uint64_t base;    //!< Register 0, counted from `begin`.
  std::uint64_t stride;  //!< Between registers that differ in the lowest transformed bit.
  int levels;            //!< How many bits are transformed: 0 if the tensor needs no such pass.
  std::uint32_t tensor;

  //! The coordinate of register k. With fewer than five levels the low register bits fill in with neighbours.
  [[nodiscard]] TERSUM_INLINE std::uint64_t at(int k) const noexcept
  {
    int const fill = 5 - levels;
    return base + (static_cast<unsigned>(k) & ((1u << fill) - 1)) +
           (static_cast<std::uint64_t>(k) >> fill) * stride;
  }
};

template <class Codec, class Element>
[[nodiscard]] TERSUM_BODY full_pass_place find_full_pass(exchange_args<Codec, Element> const& args,
                                                         std::uint64_t thread,
                                                         int pass)
{
  constexpr std::uint64_t groups = Codec::chunk_size / 32;
  full_pass_place place{};
  std::uint64_t const chunk = thread / groups;
  if (chunk >= args.chunks) { return place; }
  place.tensor                = args.table[chunk].tensor;
  tensor_record const& record = args.records[place.tensor];
  place.begin                 = record.first_chunk * Codec::chunk_size;
  std::uint64_t const within  = thread - record.first_chunk * groups;
  int const log               = log2_exact(record.chunks * Codec::chunk_size);
  int const below             = 5 * pass;
  place.levels                = minimum(5, log - below);
  if (place.levels <= 0) {
    place.levels = 0;
    return place;
  }
  int const fill                = 5 - place.levels;
  std::uint64_t const low_count = std::uint64_t{1} << (below > fill ? below - fill : 0);
  place.stride                  = std::uint64_t{1} << below;
  place.base = (within & (low_count - 1)) << fill | (within / low_count) << (below + place.levels);
  return place;
}

//! @brief Butterflies over the upper `levels` bits of the register index, ascending.
template <class Context>
TERSUM_BODY void full_butterflies(Context const& ctx, float (&v)[32], int levels)
{
  switch (levels) {
    case 1: register_butterflies<4, 5>(ctx, v); break;
    case 2: register_butterflies<3, 5>(ctx, v); break;
    case 3: register_butterflies<2, 5>(ctx, v); break;
    case 4: register_butterflies<1, 5>(ctx, v); break;
    default: register_butterflies<0, 5>(ctx, v); break;
  }
}

//! @brief One forward pass. Pass 0 reads the gradient and applies the signs; the others work on the rotated copy.
template <class Codec, class Element, class Context>
TERSUM_BODY void full_forward_pass(Context const& ctx,
                                   exchange_args<Codec, Element> const& args,
                                   int pass)
{
  std::uint64_t const thread =
    static_cast<std::uint64_t>(ctx.block_rank()) * full_pass_threads<Context> + ctx.thread_rank();
  full_pass_place const place = find_full_pass(args, thread, pass);
  if (place.levels == 0) { return; }
  float v[32];
  if (pass == 0) {
    using order                 = chunk_order<Codec::chunk_size>;
    tensor_record const& record = args.records[place.tensor];
    std::uint64_t const chunk   = (place.begin + place.base) / Codec::chunk_size;
    int const within            = static_cast<int>(place.base % Codec::chunk_size);
    TERSUM_UNROLL
    for (int j = 0; j < 32; ++j) {
      std::uint64_t const at = place.base + static_cast<unsigned>(j);
      float const value =
        at < record.size ? Context::value(ctx.load(args.gradient + record.offset + at)) : 0.0f;
      std::uint32_t const word = sign_bits(chunk * (Codec::chunk_size / 32) +
                                             static_cast<unsigned>(order::sign_word(within + j)),
                                           args.header->sign_key);
      v[j] = Context::from_bits(Context::bits(value) ^ (word >> order::sign_bit(within + j)) << 31);
    }
  } else {
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) { v[k] = ctx.load(args.rotated + place.begin + place.at(k)); }
  }
  full_butterflies(ctx, v, place.levels);
  TERSUM_UNROLL
  for (int k = 0; k < 32; ++k) { ctx.store(args.rotated + place.begin + place.at(k), v[k]); }
}

//! @brief One backward pass; the passes run from the last to pass 0, which applies the signs and writes the gradient.
template <class Codec, class Element, class Context>
TERSUM_BODY void full_backward_pass(Context const& ctx,
                                    exchange_args<Codec, Element> const& args,
                                    int pass)
{
  std::uint64_t const thread =
    static_cast<std::uint64_t>(ctx.block_rank()) * full_pass_threads<Context> + ctx.thread_rank();
  full_pass_place const place = find_full_pass(args, thread, pass);
  if (place.levels == 0) { return; }
  float v[32];
  TERSUM_UNROLL
  for (int k = 0; k < 32; ++k) { v[k] = ctx.load(args.rotated + place.begin + place.at(k)); }
  full_butterflies(ctx, v, place.levels);
  if (pass > 0) {
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) { ctx.store(args.rotated + place.begin + place.at(k), v[k]); }
    return;
  }
  using order                 = chunk_order<Codec::chunk_size>;
  tensor_record const& record = args.records[place.tensor];
  std::uint64_t const chunk   = (place.begin + place.base) / Codec::chunk_size;
  int const within            = static_cast<int>(place.base % Codec::chunk_size);
  TERSUM_UNROLL
  for (int j = 0; j < 32; ++j) {
    std::uint64_t const at   = place.base + static_cast<unsigned>(j);
    std::uint32_t const word = sign_bits(chunk * (Codec::chunk_size / 32) +
                                           static_cast<unsigned>(order::sign_word(within + j)),
                                         args.header->sign_key);
    float const value =
      Context::from_bits(Context::bits(v[j]) ^ (word >> order::sign_bit(within + j)) << 31);
    if (at < record.size) {
      ctx.store(args.gradient + record.offset + at,
                Context::template finite_element<Element>(value));
    }
  }
}

//! @brief How many passes the largest tensor of a plan needs.
template <class Codec>
[[nodiscard]] int full_passes(plan<Codec> const& plan)
{
  int log = 0;
  plan.for_each_record([&](tensor_record const& record) {
    if (record.chunks > 0) { log = maximum(log, log2_exact(record.chunks * Codec::chunk_size)); }
  });
  return (log + 4) / 5;
}

}  // namespace tersum::inline v0::detail
