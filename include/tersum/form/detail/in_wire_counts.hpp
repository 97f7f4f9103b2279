// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What a plan counts where the wire adds: codes or elements of all chunks, or of those that travel.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/plan_counts.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief What kernels of elements with feedback are given besides, which must stay in range when they are added.
struct summand_args {
  float largest;       // of what a rank sends: see largest_summand
  std::uint32_t pair;  // twice the same as an element of 16 bits

  template <class Element>
  [[nodiscard]] static constexpr summand_args of(int world) noexcept
  {
    summand_args out{.largest = largest_summand<Element>(world), .pair = 0};
    if constexpr (sizeof(Element) == 2) {
      out.pair = 0x10001u * from_float<Element>(out.largest).bits;
    }
    return out;
  }
};

//! The same without feedback, and of codes.
struct unbounded_args {
  template <class>
  [[nodiscard]] static constexpr unbounded_args of(int) noexcept
  {
    return {};
  }
};

template <class Codec>
using bounds_of =
  std::conditional_t<casts<Codec> && feeds_back<Codec>, summand_args, unbounded_args>;

//! @brief The payload of all chunks, or of those that travel.
template <class Codec>
struct in_wire_counts : codec_counts<Codec> {
  using codec_counts<Codec>::codec_counts;
  using parts_type = bounds_of<Codec>;

  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return this->choice_.bytes_of(codec_counts<Codec>::coder::wire_bytes(*this));
  }
  constexpr void take_parts(section_list& work, auto& args) const noexcept
  {
    args.payload = work.take_bytes<std::uint32_t>("payload", payload_bytes());
    args.parts   = parts_type::template of<typename Codec::payload_op::element>(this->world_.size);
  }
};

}  // namespace tersum::inline v0::detail
