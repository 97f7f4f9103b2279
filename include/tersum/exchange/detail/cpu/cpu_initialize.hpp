// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The first state of a plan, on the CPU.

#pragma once

#include <tersum/exchange/detail/block_initialize.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/plan.hpp>
#include <tersum/random/sign_bits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Fills header, records and table, clears the residual.
template <class Codec, class Element>
void initialize_state(exchange_args<Codec, Element> const& args,
                      plan<Codec> const& plan,
                      std::uint64_t seed)
{
  constexpr int size = Codec::chunk_size;
  *args.header =
    first_header(args, seed, plan.coordinates(), sign_key(0, seed), plan.state_fingerprint());
  args.bypassed.first_gain();
  std::uint32_t number = 0;
  plan.for_each_record([&](tensor_record const& record) {
    args.records[number] = record;
    for (std::uint64_t i = 0; i < record.chunks; ++i) {
      std::uint64_t const begin          = std::min<std::uint64_t>(i * size, record.size);
      args.table[record.first_chunk + i] = {
        .offset = record.offset + begin,
        .length = static_cast<std::uint32_t>(std::min<std::uint64_t>(size, record.size - begin)),
        .tensor = number};
    }
    ++number;
  });
  plan.state_sections().for_each_cleared([&](std::size_t begin, std::size_t bytes) {
    std::fill_n(reinterpret_cast<std::byte*>(args.header) + begin, bytes, std::byte{});
  });
  if constexpr (in_shards<Codec>) {
    plan.for_each_shard(
      [to = args.parts.records](shard_record const& record) mutable { *to++ = record; });
  }
}

}  // namespace tersum::inline v0::detail
