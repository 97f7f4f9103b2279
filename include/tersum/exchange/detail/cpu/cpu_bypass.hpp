// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Tensors that bypass the codec, on the CPU.

#pragma once

#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/steps.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Bypassing tensors to the wire.
template <class Codec, class Element>
void encode_bypass(exchange_args<Codec, Element> const& args)
{
  for (std::uint64_t tensor = 0; tensor < args.tensors; ++tensor) {
    tensor_record const& record = args.records[tensor];
    if (record.chunks != 0) { continue; }
    std::uint64_t first = record.offset;
    if constexpr (publishing<Codec>) {
      if (first < args.parts.begin || first >= args.parts.end) { continue; }
      first -= args.parts.begin;
    }
    for (std::uint64_t i = 0; i < record.size; ++i) {
      args.bypass[record.bypass + i] = to_float(args.gradient[first + i]);
    }
  }
}

//! @brief Their sums from the wire to the gradient, as means.
template <class Codec, class Element>
void decode_bypass(exchange_args<Codec, Element> const& args)
{
  float const share = publishing<Codec> ? 1.0f : 1.0f / static_cast<float>(args.world);
  for (std::uint64_t tensor = 0; tensor < args.tensors; ++tensor) {
    tensor_record const& record = args.records[tensor];
    if (record.chunks != 0) { continue; }
    for (std::uint64_t i = 0; i < record.size; ++i) {
      float const sum = args.bypass[record.bypass + i];
      if (!is_finite(sum)) { raise_flag(args); }
      std::uint64_t at = record.offset + i;
      if constexpr (ending_in_shards<Codec>) {
        if (at < args.parts.begin || at >= args.parts.end) { continue; }
        at -= args.parts.begin;
      }
      args.gradient[at] = from_float<Element>(sum * share);
    }
  }
}

}  // namespace tersum::inline v0::detail
