// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Fills a state: header, tensor records and chunk table. Kernel body, but for the header.

#pragma once

#include <tersum/config.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

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

//! @brief Some tensors of a plan, passed by value so that no host memory has to outlive the call.
struct record_batch {
  static constexpr int capacity = 32;
  tensor_record records[capacity];
  std::uint64_t first;  //!< Number of the first one.
};

//! @brief Writes one tensor's record and its chunks' entries a block; block 0 of the first batch writes the header.
template <class Codec, class Element, class Context>
TERSUM_BODY void initialize_tensors(Context const& ctx,
                                    exchange_args<Codec, Element> const& args,
                                    record_batch const& batch,
                                    std::uint64_t seed,
                                    std::uint64_t coordinates,
                                    std::uint64_t fingerprint)
{
  std::uint64_t const number = batch.first + ctx.block_rank();
  if (number == 0 && ctx.thread_rank() == 0) {
    *args.header = first_header(args, seed, coordinates, key_of_signs<Codec>(0, seed), fingerprint);
    args.bypassed.first_gain();
  }
  if (number >= args.tensors) { return; }
  tensor_record const& record = batch.records[ctx.block_rank()];
  if (ctx.thread_rank() == 0) { args.records[number] = record; }
  if constexpr (in_chunks<Codec>) {
    constexpr std::uint64_t size = Codec::chunk_size;
    for (std::uint64_t i = ctx.thread_rank(); i < record.chunks; i += ctx.block_threads()) {
      // A padded power of two of chunks, as rotators of whole tensors have, ends with chunks that hold nothing.
      std::uint64_t const begin          = minimum(i * size, record.size);
      args.table[record.first_chunk + i] = {
        .offset = record.offset + begin,
        .length = static_cast<std::uint32_t>(minimum(size, record.size - begin)),
        .tensor = static_cast<std::uint32_t>(number)};
    }
  }
}

}  // namespace tersum::inline v0::detail
