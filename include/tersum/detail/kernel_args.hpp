// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What every kernel of an exchange is given: the codec, and what its policies have in the caller's memory.

#pragma once

#include <tersum/block/chunk_step.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/feedback/detail/kept_residuals.hpp>
#include <tersum/metric/detail/kept_scales.hpp>
#include <tersum/state.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

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

}  // namespace tersum::inline v0::detail
