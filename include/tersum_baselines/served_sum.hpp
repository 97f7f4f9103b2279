// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! THC's exchange with a switch or a server that looks up the ranks' indices in a table and adds the values: indices go
//! up, sums come down.
//!
//! These calls replace the reduction of `payload_wire`:
//!
//!     encode(exec, plan, gradient, state, workspace)
//!     pack_indices(exec, plan, workspace, indices)         send the chunks' indices up, in packets of whole chunks
//!     the hop sums what arrives: `lookup_sum`, `sum_packet`
//!     unpack_sums(exec, plan, workspace, sums, arrived)    for every chunk its sums, and the number of ranks in them
//!     decode(exec, plan, gradient, state, workspace)
//!
//! The indices of chunk c begin at word c * index_chunk_words, its sums at byte c * payload_bytes / chunks. If all
//! contributions arrive, the mean has the bits of an all-reduce. If some are lost, a chunk is the mean of those that
//! arrived, and zeros if none did. All ranks must get the same sums and numbers. Agreed scalars and bypassed
//! coordinates are reduced as usual, and must not be lost. Feedback keeps what a rank's own rounding lost, not what was lost on the way.
//!
//! Indices and sums have the order of packed codes. An index i says that the code is R[i] - g/2, R being the table and g its granularity; a
//! chunk without a step may send any. A sum is that of R[i] over the ranks that arrived, and g/2 for each that did not. The n ranks take the
//! sum - n g/2 as the sum of codes, 0 where the chunk has no step, and (decode scale) * (n / arrived), both rounded, as the decode scale.

#pragma once

#include <tersum/exchange/exchange.hpp>
#include <tersum_baselines/detail/block_lookup.hpp>
#include <tersum_baselines/lookup_sum.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! Codecs whose codes are values of a table, in lanes that hold exact sums: `lookup_quantizer` with `widening_sum`.
template <class Codec>
concept looking_up = requires
{
  typename Codec::quantizer_type::table;
  requires !selects<Codec>;
  requires !saturates<Codec>;
  requires !Codec::reducer_type::biased;
};

//! What the hop does, for a codec.
template <looking_up Codec>
using lookup_sum_of =
  lookup_sum<typename Codec::quantizer_type::table, Codec::reducer_type::lane_bits>;

//! Words of indices of one chunk.
template <looking_up Codec>
inline constexpr std::size_t index_chunk_words = Codec::chunk_size / lookup_sum_of<Codec>::indices;

//! Bytes of indices of all chunks: what a rank sends up.
template <looking_up Codec>
[[nodiscard]] constexpr std::size_t index_bytes(plan<Codec> const& plan) noexcept
{
  return plan.chunks() * index_chunk_words<Codec> * sizeof(std::uint32_t);
}

//! @brief After `encode`: the table indices of the payload. Enqueued on the executor.
//! @param workspace  As `encode` left it; it is not changed.
//! @param indices    index_bytes(plan) bytes of the executor's memory, aligned to 16, apart from the workspace.
//! @return  An error if the plan or the executor cannot be used, or if memory is too small, null or misaligned.
template <class Executor, looking_up Codec>
status pack_indices(Executor const& exec,
                    plan<Codec> const& plan,
                    std::span<std::byte const> workspace,
                    std::span<std::byte> indices);

//! @brief Before `decode`, once: the payload becomes the sum of the codes that arrived. Enqueued on the executor.
//! @param workspace  As `encode` left it. The steps in it are divided by the contributions.
//! @param sums       plan.payload_bytes() bytes that came down, aligned to 16; may be the payload itself.
//! @param arrived    For each chunk, how many ranks' contributions arrived; in the executor's memory, like all else.
//! @return  The errors of `pack_indices`, and one if `arrived` has not a number for each chunk.
template <class Executor, looking_up Codec>
status unpack_sums(Executor const& exec,
                   plan<Codec> const& plan,
                   std::span<std::byte> workspace,
                   std::span<std::byte const> sums,
                   std::span<std::uint16_t const> arrived);

}  // namespace tersum::inline v0

#include <tersum_baselines/detail/served_sum.ipp>
