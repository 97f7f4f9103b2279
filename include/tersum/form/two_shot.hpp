// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The form in which owners of parts decode, add, and encode once more.

#pragma once

#include <tersum/codec_kinds.hpp>
#include <tersum/coder/coder.hpp>
#include <tersum/concepts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_counts.hpp>
#include <tersum/detail/policy_kinds.hpp>
#include <tersum/form/detail/part_args.hpp>
#include <tersum/form/detail/suits_coder.hpp>
#include <tersum/form/form.hpp>
#include <tersum/layout.hpp>
#include <tersum/quantize/detail/code_words.hpp>
#include <tersum/stages.hpp>
#include <tersum/types.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief Parts of equal size, one for each rank: what is sent, what is received, and what all ranks decode, which
//! without feedback takes the place of what was sent. With feedback that is needed until the end. Where the ways differ
//! parts of the mean lie elsewhere than the parts that were sent, some of which may still have to leave.
template <class Codec>
struct two_shot_counts : codec_counts<Codec> {
  using residual = residual_element<Codec>;
  using parts_type =
    std::conditional_t<ways_differ<Codec>, two_way_args<residual>, part_args<residual>>;

  using codec_counts<Codec>::codec_counts;

  //! Bytes that one rank sends to another, a multiple of 16.
  [[nodiscard]] constexpr std::uint64_t part_bytes() const noexcept
  {
    constexpr std::uint64_t word = sizeof(std::uint32_t);
    std::uint64_t bytes          = owned_chunks() * (chunk_words() + 1) * word;
    if (selects<Codec>) {
      // Of parts dealt widest first none exceeds the mean by more than the widest chunk.
      std::uint64_t const words = this->choice_.bytes_of(bytes) / word;
      bytes =
        this->travels() ? of_a_rank(words + chunk_words() * (this->ranks_of() - 1)) * word : 0;
    }
    return round_up(bytes, this->alignment);
  }
  //! Bytes that the owner of a part sends to every other rank, a multiple of 16.
  [[nodiscard]] constexpr std::uint64_t mean_part_bytes() const noexcept
  {
    if (!ways_differ<Codec>) { return part_bytes(); }
    constexpr std::uint64_t words =
      code_words<typename Codec::mean_quantizer_type>(Codec::chunk_size) + 1;
    return round_up(owned_chunks() * words * sizeof(std::uint32_t), this->alignment);
  }
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return part_bytes() * this->ranks_of();
  }
  //! Bytes of all parts of the mean.
  [[nodiscard]] constexpr std::uint64_t mean_bytes() const noexcept
  {
    return mean_part_bytes() * this->ranks_of();
  }
  //! With fixed chunks: the most chunks that a rank owns.
  [[nodiscard]] constexpr std::uint64_t owned_chunks() const noexcept
  {
    return of_a_rank(this->chunks());
  }
  //! The most words that the codes of one chunk take.
  [[nodiscard]] static constexpr std::uint64_t chunk_words() noexcept
  {
    return chunk_choice<Codec>::chunk_words(
      code_words<typename Codec::quantizer_type>(Codec::chunk_size));
  }
  //! What parts of equal size may leave free: see `part_bytes`.
  [[nodiscard]] static constexpr double usable_words(double words, world const& ranks) noexcept
  {
    auto const n = static_cast<std::uint64_t>(ranks.size);
    return words -
           static_cast<double>(chunk_words() * (n - 1) + n * (two_shot_counts::alignment / 4));
  }
  constexpr void take_parts(section_list& work, auto& args) const noexcept
  {
    auto& parts      = args.parts;
    args.payload     = work.take_bytes<std::uint32_t>("payload", payload_bytes());
    parts.gathered   = args.payload;
    parts.part_words = part_bytes() / sizeof(std::uint32_t);
    auto const ranks = static_cast<std::uint32_t>(this->ranks_of());
    parts.ranks      = divisor::of(ranks);
    parts.share      = 1.0f / static_cast<float>(ranks);
    if (feeds_back<Codec> || ways_differ<Codec>) {
      parts.gathered = work.take_bytes<std::uint32_t>("gathered", mean_bytes());
    } else {
      work.share("payload", "gathered");
    }
    parts.take_mean_words(mean_part_bytes() / sizeof(std::uint32_t));
  }
  constexpr void take_received(section_list& work, auto& args) const noexcept
  {
    args.parts.received = work.take_bytes<std::uint32_t>("received", payload_bytes());
  }
  constexpr void take_owned(section_list& state, auto& args) const noexcept
  {
    args.parts.owner_residual = take_residual<Codec>(
      state, "owner_residual", owner_feeds_back<Codec>, owned_chunks() * Codec::chunk_size);
    state.own_last(this->own_part());
  }

 private:
  [[nodiscard]] constexpr std::uint64_t of_a_rank(std::uint64_t number) const noexcept
  {
    return divide_up(number, this->ranks_of());
  }
};

}  // namespace tersum::inline v0::detail

namespace tersum::inline v0 {

//! @brief Each rank owns a part of the chunks, whose mean it computes.
//!
//! Use it if the transport can move bytes, and above all with many ranks. It has these rounds: the sum of norms, if the chunker asks for
//! them; an all-to-all, in which rank r gets all ranks' codes of part r, adds them in float in the order of the ranks, and encodes the
//! mean; an all-gather of the parts. The owner decodes its own *encoded* part like all others do, so all ranks end with the same bits. The
//! traffic is that of a ring all-reduce of the payload. The error is that of two encodings, whatever the number of ranks.
//!
//! Every rank's chunk has a scale of its own, which travels with its codes. With a codebook all ranks rotate a chunk by
//! the same signs, so the owner adds and encodes without rotating. That has less error than another basis for the
//! second encoding, but the second encoding sees sums of few levels: with two ranks, or with 2 bits and less, it weighs
//! the ranks a little unevenly, although each encoding by itself is unbiased.
//!
//! Feedback keeps what a rank's own codes lost; under `fixed_chunks`, where the owner of a chunk does not change, the
//! owner also keeps what its second encoding lost, if the feedback adds what was lost as it is (`adds_lost`); `kept_by_ranks` and
//! `kept_by_owners` leave out one of the two.
//!
//! It takes `scaled_codes` or a cast, and `fixed_chunks<C>` or `allocated_chunks<C, Widths...>` of up to 16 bits, C from 256.
struct two_shot : usual_form {
  constexpr description describe() const { return {"two_shot"}; }

  //! Each rank encodes its gradient, and the owner the mean. The errors of the ranks average as the gradients do.
  [[nodiscard]] static constexpr float encodings(int world) noexcept { return world > 1 ? 2 : 1; }

  template <class Coder>
  using rounds_of = stage_list<rounds::scatter_parts, stage::recompress, rounds::gather_parts>;
  template <class Coder>
  using payload_kind = payload::parts;
  template <class Codec, class Coder>
  using counts = detail::two_shot_counts<Codec>;

  template <bool Ask, class Chunker, class Rotator, class Coder, class Feedback, class Metric>
  [[nodiscard]] static constexpr std::string_view suits() noexcept
  {
    return detail::suits_own_scales<Ask, Chunker, Rotator, Coder>();
  }
};
static_assert(form<two_shot>);

//! @brief `two_shot` whose owners encode the mean with another coder, of another width, than that of what they were sent.
//!
//! The traffic is that of a ring all-reduce of the mean of both. If the errors of the ranks have nothing in common the mean
//! loses D(up) rho + D(down) (1 + D(up) rho) of its energy. D is the error of a codebook, `distortion()`, and rho the mean
//! energy of the ranks' gradients over n times that of their mean: 1 where gradients are independent, 1 / n where they are
//! equal, above 1 where they oppose each other. The nearer rho is to 1 / n, the more of the bits belong on the way down. At
//! rho = 1/16, 1 bit up and 3 down lose .073, 2 and 2 lose .143 at the same traffic; at rho = 1 they lose .63 and .28. All
//! ranks rotate by the same signs, so that ranks that resemble each other make similar errors, which adds to that:
//! docs/codecs.md says how much. THC (Li et al., NSDI'24) sends indices of 4 bits up and sums of 8 bits down.
//! @tparam Down  `scaled_codes` of a codebook, such as `scaled_codes<lloyd_max<8>>`.
template <coder Down>
struct two_shot_to : two_shot {
  template <class Coder>
  using mean_coder = Down;
  constexpr description describe() const { return {"two_shot_to", Down{}}; }

  template <bool Ask, class Chunker, class Rotator, class Coder, class Feedback, class Metric>
  [[nodiscard]] static constexpr std::string_view suits() noexcept
  {
    TERSUM_NEEDS(
      "tersum: two_shot_to takes fixed chunks: under allocated_chunks codes of the mean have the widths of those that ranks send",
      !detail::has_several_bits<Chunker>());
    using up   = typename Coder::quantizer_type;
    using down = typename Down::quantizer_type;
    TERSUM_NEEDS("tersum: two_shot_to takes scaled_codes of codebooks, up and down",
                 codebook<up> && codebook<down>);
    TERSUM_NEEDS("tersum: two_shot_to is for codes of unlike widths: use two_shot for one width",
                 up::bits != down::bits);
    constexpr std::string_view of_codes = detail::suits_own_scales<Ask, Chunker, Rotator, Coder>();
    if (!of_codes.empty()) { return of_codes; }
    return detail::suits_own_scales<Ask, Chunker, Rotator, Down>();
  }
};

}  // namespace tersum::inline v0
