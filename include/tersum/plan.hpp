// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What an exchange will need, as pure arithmetic: rounds, bytes of wire, workspace and state.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/layout.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/state.hpp>

#include <cstddef>
#include <cstdint>

namespace tersum::inline v0 {

namespace detail {

template <class Codec, class Element>
struct exchange_args;

//! The word that the rank's random words are xored with; 0 for codecs without dither.
template <class Codec>
[[nodiscard]] constexpr std::uint32_t dither_mask_of(int rank) noexcept
{
  if constexpr (requires { Codec::dither_type::mask(dither_key{}); }) {
    dither_key key{};
    key.rank = static_cast<std::uint32_t>(rank);
    return Codec::dither_type::mask(key);
  }
  return 0;
}

//! @brief What plans of all codecs hold. `Codec::counts_type` derives from it: it counts while it is constructed, checks
//! the arguments, says how many bytes each round has, and takes sections of workspace and state (take_workspace, take_state) to
//! which it has kernels' arguments point.
template <class Codec>
class plan_counts {
 public:
  using selection_type = nothing;  // what kernels are given of a choice, and of parts
  using parts_type     = nothing;
  static constexpr std::size_t alignment =
    section_list::alignment;  //!< Of workspace and state, bytes.

  constexpr plan_counts(Codec const& codec, layout const& gradient, world const& ranks)
    : codec_(codec), layout_(gradient), world_(ranks)
  {
  }

  [[nodiscard]] constexpr Codec const& codec() const noexcept { return codec_; }
  [[nodiscard]] constexpr layout const& gradient() const noexcept { return layout_; }
  [[nodiscard]] constexpr world const& ranks() const noexcept { return world_; }

  //! @name Counts
  //! Each coordinate of the gradient is either compressed or bypasses the codec; padding is not counted. `tensors`
  //! counts the tensors that are not empty, each of which has a record in the state; `chunks` counts what is compressed
  //! as one: chunks, of low rank matrices, of TopK coordinates.
  //! @{
  [[nodiscard]] constexpr std::uint64_t coordinates() const noexcept { return layout_.coordinates; }
  [[nodiscard]] constexpr std::uint64_t tensors() const noexcept { return tensors_; }
  [[nodiscard]] constexpr std::uint64_t chunks() const noexcept { return chunks_; }
  [[nodiscard]] constexpr std::uint64_t compressed() const noexcept { return compressed_; }
  [[nodiscard]] constexpr std::uint64_t bypassed() const noexcept { return bypassed_; }
  [[nodiscard]] constexpr bool all_bypass() const noexcept { return compressed_ == 0; }
  [[nodiscard]] constexpr bool travels() const noexcept { return true; }
  //! @}

  //! @brief What `state_header::layout` holds: `state_version` in its lowest byte, and above it a hash of the sections of the
  //! state, by name, element, size and begin, of tensors, weights and chunks, and, where what a rank keeps is that of its own
  //! part or shard, of which part that is. Plans that differ in other things only, such as bits, can go on with each other's
  //! state.
  [[nodiscard]] constexpr std::uint64_t state_fingerprint() const noexcept
  {
    return fingerprint_ / 256 * 256 + state_version;
  }

  //! What kernels are given besides memory.
  constexpr void fill(auto& args) const noexcept
  {
    args.codec       = codec_;
    args.chunks      = chunks_;
    args.tensors     = tensors_;
    args.world       = world_.size;
    args.rank        = static_cast<std::uint32_t>(world_.rank);
    args.dither_mask = dither_mask_of<Codec>(world_.rank);
  }
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept { return 0; }
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept { return 0; }
  //! Coordinates of which this rank keeps a residual.
  [[nodiscard]] constexpr std::uint64_t own_coordinates() const noexcept { return coordinates(); }
  //! What a form keeps of shards: nothing where there are none.
  constexpr void for_each_shard(auto const&) const noexcept {}

 protected:
  Codec codec_;
  layout layout_;
  world world_;
  std::uint64_t tensors_     = 0;
  std::uint64_t chunks_      = 0;
  std::uint64_t compressed_  = 0;
  std::uint64_t bypassed_    = 0;
  std::uint64_t fingerprint_ = 0;  // of all that the sections do not say; of a plan, of these too
};

}  // namespace detail

//! @brief One codec applied to one gradient by one world. All ranks make the same plan, apart from `world::rank`.
//!
//! Made by `codec.plan(layout, world)`. All sizes are exact; what a codec does not have is 0. The codec's `counts_type`
//! adds to these members, for all codecs:
//!
//! - `check()` says whether this exchange can be made; if not, its sentence names the argument. `all_reduce_mean` asks first.
//! - `agreed_scalars()` and `agreed_bytes()`: norms or magnitudes that the ranks agree on before they encode; of paired
//!   low-rank factors P.
//! - `payload_bytes()`: the codes, or the converted values, that one rank gives to the collective.
//! - `all_bypass()`: whether the bucket travels as floats: because the layout exempts all tensors; because a budget pays for no
//!   chunk, so that `travels()` is false (where `layout::bypass_unpaid` forbids that the mean is zeros); because `wire_bytes()`
//!   would be more. That is what one rank gives to the collectives, the same on all; of gathers it receives n - 1 times as much.
//!   Factors are more only if `low_rank::least_saving` is 0, which asks for that, as lanes of 32 bits do.
//! - `for_each_record(visit)` calls visit(tensor_record const&) for the records of the layout's tensors in order, as
//!   `initialize` writes them. Empty tensors have none.
//!
//! @par Example
//! @snippet examples/mpi_all_reduce.cpp plan
template <class Codec>
class plan : public Codec::counts_type {
  using counts = typename Codec::counts_type;

 public:
  using codec_type = Codec;

  //! @param more  What the codec's own plan() takes besides, such as the boundaries of shards.
  template <class... More>
  constexpr plan(Codec const& codec,
                 layout const& gradient,
                 world const& ranks,
                 More const&... more)
    : counts(codec, gradient, detail::with_only_rank(ranks), more...)
  {
    bool const unpaid = !this->travels() && gradient.bypass_unpaid;
    // Lanes of 32 bits are for hops that look up.
    constexpr bool asked = is_low_rank<Codec> || requires { requires Codec::lanes::bits == 32; };
    bool const grows     = wire_bytes() > 4 * this->coordinates() && !asked;
    if (this->compressed_ > 0 && (unpaid || grows)) {
      this->layout_.bypass_below  = ~std::uint64_t{0};
      static_cast<counts&>(*this) = counts(codec, this->layout_, this->world_, more...);
    }
    for (std::uint64_t const value : {this->coordinates(), this->chunks()}) {
      this->fingerprint_ = detail::mix(this->fingerprint_, value);
    }
    this->fingerprint_ = state_sections().fingerprint(this->fingerprint_);
  }

  //! @name Rounds
  //! What one rank gives to the caller's collective.
  //! @{

  //! Bytes of the coordinates that bypass, as float32.
  [[nodiscard]] constexpr std::uint64_t bypass_bytes() const noexcept
  {
    return this->bypassed() * sizeof(float);
  }
  //! Bytes of all rounds.
  [[nodiscard]] constexpr std::uint64_t wire_bytes() const noexcept
  {
    return this->agreed_bytes() + counted_payload_bytes() + bypass_bytes();
  }
  //! What counts of the payload: all of it or, of two shots, the mean of both ways, as a ring all-reduce with their traffic has.
  [[nodiscard]] constexpr std::uint64_t counted_payload_bytes() const noexcept
  {
    if constexpr (requires { this->mean_bytes(); }) {
      return (this->payload_bytes() + this->mean_bytes()) / 2;
    }
    return this->payload_bytes();
  }
  //! Bits of all rounds per coordinate of the gradient: 8 wire_bytes() / coordinates().
  [[nodiscard]] constexpr double bits_per_coordinate() const noexcept
  {
    if (this->coordinates() == 0) { return 0; }
    return 8.0 * static_cast<double>(wire_bytes()) / static_cast<double>(this->coordinates());
  }
  //! @}

  //! @name Memory of the caller
  //! @{

  //! Bytes of scratch memory that hold the rounds. Nothing in it needs to survive an exchange.
  [[nodiscard]] constexpr std::size_t workspace_bytes() const noexcept
  {
    return workspace_sections().bytes();
  }
  //! Bytes that must live from step to step; `initialize` fills them.
  [[nodiscard]] constexpr std::size_t state_bytes() const noexcept
  {
    return state_sections().bytes();
  }
  //! @}

  //! The arrays of the workspace and of the state, in the order of memory, by name.
  [[nodiscard, gnu::noinline]] constexpr detail::section_list workspace_sections() const noexcept
  {
    detail::section_list work;
    detail::exchange_args<Codec, float> args{};
    this->take_workspace(work, args);
    return work;
  }
  [[nodiscard, gnu::noinline]] constexpr detail::section_list state_sections() const noexcept
  {
    detail::section_list state;
    detail::exchange_args<Codec, float> args{};
    this->take_state(state, args);
    return state;
  }
  //! Where the array of this name begins in the workspace or in the state; 0 if there is none.
  [[nodiscard]] constexpr std::size_t offset(detail::section name) const noexcept
  {
    std::size_t const at = workspace_sections().offset(name);
    return at > 0 ? at : state_sections().offset(name);
  }
  //! @}

 private:
  static constexpr bool owners = scattering<Codec> && !selects<Codec>;
  static_assert(detail::suits_feedback<false,
                                       owners,
                                       publishing<Codec>,
                                       leaves_out<Codec>,
                                       typename Codec::feedback_type>()
                  .empty());
};

}  // namespace tersum::inline v0
