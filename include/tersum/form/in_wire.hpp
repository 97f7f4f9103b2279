// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The form in which your all-reduce adds.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/coder/coder.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/plan_counts.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/form/detail/suits_coder.hpp>
#include <tersum/form/form.hpp>
#include <tersum/stages.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tersum::inline v0 {

namespace detail {

//! The scalar that the ranks of a cast agree on: the chunker's, or float where the chunker has none and nothing is agreed.
template <class Chunker>
struct norm_scalar_of {
  using type = float;
};

template <class Chunker>
requires requires { typename Chunker::scalar; }
struct norm_scalar_of<Chunker> {
  using type = typename Chunker::scalar;
};

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
class in_wire_counts : public codec_counts<Codec> {
 public:
  using parts_type = bounds_of<Codec>;

  constexpr in_wire_counts(Codec const& codec, layout const& gradient, world const& ranks)
    : codec_counts<Codec>(codec, gradient, ranks),
      payload_bytes_(this->choice_.bytes_of(codec_counts<Codec>::coder::wire_bytes(*this)))
  {
  }

  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept { return payload_bytes_; }
  constexpr void take_parts(section_list& work, auto& args) const noexcept
  {
    args.payload = work.take_bytes<std::uint32_t>("payload", payload_bytes());
    args.parts   = parts_type::template of<typename Codec::payload_op::element>(this->world_.size);
  }

 private:
  std::uint64_t payload_bytes_;
};

}  // namespace detail

//! @brief The caller's all-reduce adds the codes of `summed_codes`, or the elements of `cast`.
//!
//! An exchange has two rounds: what the ranks agree on, and the payload; and a third for the coordinates that bypass the codec, if
//! any. The ranks agree on steps for codes, and on norms where a chunker chooses by them.
//!
//! A cast with `fixed_chunks` converts all coordinates, and agrees on nothing: the baseline, and what users have today; its
//! chunk size says only how kernels divide the work. With `top_chunks` it is TopKC. Feedback and a metric are for chunkers
//! that choose. In a metric coordinates are divided by their scales first, norms are of the quotients, and these travel. So
//! the chunks that are chosen are large beside what they usually are, and halves hold them however small the coordinates are.
struct in_wire : usual_form {
  constexpr description describe() const { return {"in_wire"}; }

  template <class Coder>
  using rounds_of = stage_list<rounds::reduce_payload>;
  template <class Coder>
  using payload_kind = std::conditional_t<adding_coder<Coder>, payload::codes, payload::values>;
  template <class Chunker>
  using norm_scalar = typename detail::norm_scalar_of<Chunker>::type;
  template <class Codec, class Coder>
  using counts = detail::in_wire_counts<Codec>;

  template <bool Ask, class Chunker, class Rotator, class Coder, class Feedback, class Metric>
  [[nodiscard]] static constexpr std::string_view suits() noexcept
  {
    TERSUM_NEEDS(
      "tersum: in_wire takes summed_codes or a cast: codes with scales of their own cannot be added before they are decoded: use two_shot, gather, shard or publish",
      adding_coder<Coder> || conversion<Coder>);
    if constexpr (adding_coder<Coder>) {
      return detail::suits_summed_codes<Ask, Chunker, Rotator, Coder, Feedback, Metric>();
    } else {
      TERSUM_NEEDS("tersum: elements that the wire adds stay where they are: rotate nothing",
                   Rotator::rotation_size == 1);
      TERSUM_NEEDS("tersum: a cast of all coordinates loses next to nothing and has no feedback",
                   !Feedback::enabled || selecting_chunker<Chunker>);
      TERSUM_NEEDS(
        "tersum: a cast has one width: use top_chunks, or summed_codes with allocated_chunks",
        !detail::has_several_bits<Chunker>());
      TERSUM_NEEDS(
        "tersum: a cast of all coordinates takes plain_metric: the error of a float is in units of the coordinate already",
        !Metric::scaled || selecting_chunker<Chunker>);
      TERSUM_NEEDS("tersum: a cast in a metric takes chunks of 128 to 1024 coordinates",
                   !Metric::scaled || Chunker::chunk_size >= 128);
      return {};
    }
  }
};
static_assert(form<in_wire>);

}  // namespace tersum::inline v0
