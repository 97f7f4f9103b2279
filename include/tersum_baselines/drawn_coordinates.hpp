// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Coordinates that a common seed draws, summed without their positions: the baseline of sparsified gradients.

#pragma once

#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/form/in_wire.hpp>
#include <tersum/layout.hpp>
#include <tersum/plan.hpp>
#include <tersum/quantize/cast.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/reduce/native.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>
#include <tersum/types.hpp>
#include <tersum_baselines/detail/coordinate_counts.hpp>

#include <cstdint>

namespace tersum::inline v0 {

//! @brief Of each `stride` neighbours one coordinate travels, drawn anew in every step from the common seed: a stratified draw.
//!
//! All ranks draw alike, so that nothing but values travels, and a transport's all-reduce sums them.
struct drawn_coordinates {
  static constexpr int chunk_size = 1;
  constexpr description describe() const { return {"drawn_coordinates", stride, scaled}; }

  std::uint32_t stride = 8;  //!< Of so many neighbours one travels; the last ones may be fewer.

  //! Whether what travels counts for all of its neighbours: the mean is then unbiased, and loses stride - 1 times its energy.
  //! Under feedback it must not.
  bool scaled = false;

  //! @brief How many of `coordinates` travel.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t drawn(
    std::uint64_t coordinates) const noexcept
  {
    std::uint64_t const each = stride > 1 ? stride : 1u;
    return (coordinates + each - 1) / each;
  }

  //! @brief How many neighbours the j-th of them stands for.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint32_t neighbours(
    std::uint64_t j, std::uint64_t coordinates) const noexcept
  {
    std::uint64_t const rest = coordinates - j * stride;
    return rest < stride ? static_cast<std::uint32_t>(rest) : stride;
  }

  //! @brief Which coordinate travels of neighbours j `stride` .. (j + 1) `stride` - 1.
  //! @param key  Of the step's signs, which is that of the seed and the step.
  [[nodiscard]] TERSUM_HOST_DEVICE constexpr std::uint64_t place(std::uint64_t j,
                                                                 std::uint64_t coordinates,
                                                                 std::uint64_t key) const noexcept
  {
    std::uint64_t const width = neighbours(j, coordinates);
    return j * stride + (sign_bits(j, ~key) * width >> 32);
  }
};

static_assert(chunker<drawn_coordinates>, "tersum: must model tersum::chunker");

namespace detail {

//! A common seed draws the coordinates that travel.
template <class Codec>
concept drawing = casts<Codec> && requires(Codec const& codec)
{
  codec.chunker.drawn(std::uint64_t{});
};

//! @brief Values of the coordinates that are drawn, and nothing besides.
template <class Codec>
class drawn_counts : public coordinate_counts<Codec> {
 public:
  using coordinate_counts<Codec>::coordinate_counts;
  using element    = typename Codec::quantizer_type::element;
  using parts_type = bounds_of<Codec>;

  [[nodiscard]] constexpr status check() const noexcept
  {
    status const s = this->check_vector(std::uint64_t{1} << 31);
    if (!s.ok()) { return s; }
    if (this->codec_.chunker.stride == 0) {
      return {error_code::invalid_argument, "the chunker's stride must be at least 1"};
    }
    if (feeds_back<Codec> && this->codec_.chunker.scaled) {
      return {
        error_code::invalid_argument,
        "the chunker's scaled is for codecs without feedback, which sends later what was not drawn"};
    }
    return {};
  }

  //! Coordinates that travel.
  [[nodiscard]] constexpr std::uint64_t chosen() const noexcept
  {
    return this->codec_.chunker.drawn(this->coordinates());
  }
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return chosen() * sizeof(element);
  }

  constexpr void take_workspace(section_list& work, auto& args) const noexcept
  {
    args.payload = work.take_bytes<std::uint32_t>("payload", payload_bytes());
    args.parts   = parts_type::template of<element>(this->ranks().size);
  }
};

}  // namespace detail

//! @brief Random-k: values of coordinates that all ranks draw alike, summed in one round.
//!
//! The gradient is one vector: tensors do not bypass. Without feedback `scaled` makes the mean unbiased; with it, what was not drawn
//! is sent when it is. A value that is not finite is reported, on every rank, if it is drawn; feedback does not keep it.
//! Sources: Wangni et al., Gradient Sparsification (NeurIPS'18), with equal probabilities; Stich et al., Sparsified SGD with
//! Memory (NeurIPS'18), random-k. Both draw k of all coordinates; here the draw is stratified, which changes neither expectation nor
//! variance of a coordinate.
//! @tparam T         What travels: float, half or bfloat16.
//! @tparam Feedback  `no_feedback` or `error_feedback`.
template <gradient_element T, feedback Feedback = no_feedback>
struct drawn_coordinates_codec {
  using chunker_type   = drawn_coordinates;
  using quantizer_type = cast<T>;
  using payload_op     = native_sum<T>;
  using feedback_type  = Feedback;
  using metric_type    = plain_metric;
  using agreement_kind = agreement::none;
  using payload_kind   = payload::values;
  using counts_type    = detail::drawn_counts<drawn_coordinates_codec>;
  constexpr description describe() const
  {
    return {"drawn_coordinates_codec", chunker, T{}, feedback};
  }

  static constexpr bool rotates_all = false;
  static constexpr int chunk_size   = 1;

  using stages =
    stage_list<stage::open, stage::encode, rounds::reduce_payload, stage::decode, stage::finish>;

  drawn_coordinates chunker{};
  Feedback feedback{};

  //! @brief Everything an exchange needs to know before it touches memory. Pure arithmetic; see `plan::check`.
  [[nodiscard]] constexpr tersum::plan<drawn_coordinates_codec> plan(layout const& gradient,
                                                                     world const& ranks) const
  {
    return tersum::plan<drawn_coordinates_codec>{*this, gradient, ranks};
  }
};

}  // namespace tersum::inline v0

#include <tersum_baselines/detail/drawn_coordinates.ipp>
