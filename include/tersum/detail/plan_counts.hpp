// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What plans hold, count and check: records of tensors, and what each policy brings, one after the other.

#pragma once

#include <tersum/chunk/detail/chunk_choice.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/coder/detail/coder_counts.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/layout.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tersum::inline v0::detail {

//! @brief What launches ask of the records that have chunks.
struct record_facts {
  bool whole          = false;  //!< One that is aligned has a whole chunk.
  bool cut            = false;  //!< One that is aligned has a short chunk.
  std::uint64_t ends  = 0;      //!< The chunks behind those that are, all bits together.
  std::uint64_t begin = ~std::uint64_t{0};  //!< From the first chunk of those that are not aligned
  std::uint64_t end   = 0;                  //!< to behind their last one.

  constexpr void add(tensor_record const& record, std::uint64_t chunk_size, bool aligned) noexcept
  {
    if (record.chunks == 0) { return; }
    std::uint64_t const after = record.first_chunk + record.chunks;
    if (aligned) {
      whole = whole || record.size >= chunk_size;
      cut   = cut || record.size % chunk_size != 0;
      ends |= after;
    } else {
      begin = minimum(begin, record.first_chunk);
      end   = after;
    }
  }
};

//! @brief What plans of all codecs hold. `Codec::counts_type` derives from it: it counts while it is constructed, checks
//! the arguments, says how many bytes each round has, and takes sections of workspace and state (take_workspace, take_state) to
//! which it has kernels' arguments point.
template <class Codec>
class plan_counts {
 public:
  using selection_type = nothing;  // what kernels are given of a choice, and of parts
  using parts_type     = nothing;
  using entry_type     = chunk_entry;  // what a state has of each of chunks()
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
  //! Those of them that this rank gives.
  [[nodiscard]] constexpr std::uint64_t own_bypassed() const noexcept { return bypassed_; }
  [[nodiscard]] constexpr bool all_bypass() const noexcept { return compressed_ == 0; }
  [[nodiscard]] constexpr bool travels() const noexcept { return true; }
  //! Whether the codec was asked for rounds of whatever length: otherwise a bucket that it would enlarge bypasses it.
  static constexpr bool may_grow = false;
  //! @}

  //! Of records that are aligned at multiples of four coordinates, or of eight.
  [[nodiscard]] constexpr record_facts const& facts(bool in_fours) const noexcept
  {
    return in_fours ? in_fours_ : in_eights_;
  }

  //! What kernels are given besides memory.
  constexpr void fill(auto& args) const noexcept
  {
    args.codec   = codec_;
    args.chunks  = chunks_;
    args.tensors = tensors_;
    args.world   = world_.size;
    args.rank    = static_cast<std::uint32_t>(world_.rank);
  }
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept { return 0; }
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept { return 0; }
  //! Coordinates of which this rank keeps a residual.
  [[nodiscard]] constexpr std::uint64_t own_coordinates() const noexcept { return coordinates(); }
  //! What a form keeps of shards: nothing where there are none.
  constexpr void for_each_shard(auto const&) const noexcept {}
  constexpr void for_each_boundary(auto const&) const noexcept {}
  constexpr void for_each_record(auto const&) const noexcept {}
  constexpr void for_each_matrix(auto const&) const noexcept {}

 protected:
  constexpr void add_facts(tensor_record const& record) noexcept
  {
    in_fours_.add(record, Codec::chunk_size, record.offset % 4 == 0);
    in_eights_.add(record, Codec::chunk_size, record.offset % 8 == 0);
  }

  //! Ranks; a world that check() refuses counts as one.
  [[nodiscard]] constexpr std::uint64_t ranks_of() const noexcept
  {
    return static_cast<std::uint64_t>(maximum(world_.size, 1));
  }
  //! Of what this rank keeps of its own part.
  [[nodiscard]] constexpr std::uint64_t own_part() const noexcept
  {
    return mix(static_cast<std::uint64_t>(world_.size), static_cast<std::uint64_t>(world_.rank));
  }

  Codec codec_;
  layout layout_;
  world world_;
  std::uint64_t tensors_    = 0;
  std::uint64_t chunks_     = 0;
  std::uint64_t compressed_ = 0;
  std::uint64_t bypassed_   = 0;
  record_facts in_fours_{}, in_eights_{};
};

//! @brief What forms derive their counts from. They add payload_bytes(), `parts_type` (what kernels are given of their parts) and
//! take_parts(), and declare again what differs.
template <class Codec>
class codec_counts : public plan_counts<Codec> {
 protected:
  using coder  = coder_counts<typename Codec::coder_type>;
  using choice = chunk_choice<Codec>;

 public:
  using selection_type            = typename choice::args;
  static constexpr int chunk_size = Codec::chunk_size;

  constexpr codec_counts(Codec const& codec, layout const& gradient, world const& ranks)
    : plan_counts<Codec>(codec, gradient, ranks), choice_((count_records(*this), *this))
  {
  }

  [[nodiscard]] constexpr status check() const noexcept
  {
    if (status const s = check_world(this->world_); !s.ok()) { return s; }
    if (status const s = check_layout(this->layout_); !s.ok()) { return s; }
    if (this->chunks_ > std::numeric_limits<std::uint32_t>::max() / 2) {
      return {
        error_code::invalid_argument,
        "layout.coordinates has more than 2^31 chunks: exchange it in parts, or use larger chunks"};
    }
    if (status const s = choice_.check(*this); !s.ok()) { return s; }
    return coder::check(this->codec_, this->world_);
  }

  constexpr void fill(auto& args) const noexcept
  {
    plan_counts<Codec>::fill(args);
    args.dither_mask = dither_mask<typename Codec::dither_type>({.rank = args.rank});
  }
  [[nodiscard]] constexpr bool travels() const noexcept { return choice_.travels(); }
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept
  {
    return travels() && this->chunks() > 0 ? measured_scalars() : 0;
  }
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept
  {
    return agreed_size(agreed_scalars());
  }
  //! @brief The scalars that are measured, whether the budget lets them travel or not. Where owners tell the others a tracked
  //! head-room there is one more for each piece of a tensor.
  [[nodiscard]] constexpr std::uint64_t measured_scalars() const noexcept
  {
    using agreed         = typename Codec::agreed_type;
    constexpr bool tells = agreed::of_tensors || tells_ratios<Codec>;
    return (agreed::of_chunks ? this->chunks() : 0) + (tells ? this->tensors() : 0);
  }
  //! What so many agreed scalars take.
  [[nodiscard]] static constexpr std::uint64_t agreed_size(std::uint64_t scalars) noexcept
  {
    return agrees<Codec> ? scalars * sizeof(typename Codec::norm_scalar) : 0;
  }
  //! @brief The rule by which chunks are chosen; the same on every rank.
  [[nodiscard]] constexpr detail::selection_rule selection_rule() const noexcept
    requires(selects<Codec>)
  {
    return choice_.rule();
  }
  //! Words of a payload that chunks can use, if they cannot fill it to the last one.
  [[nodiscard]] static constexpr double usable_words(double words, world const&) noexcept
  {
    return words;
  }

  //! @brief Under a rotator of whole tensors a tensor is cut into pieces whose numbers of chunks are descending powers of two. Each
  //! is rotated as a whole and has its own record; only the last chunk is padded (as OptiReduce's THC does it).
  template <class Visitor>
  constexpr void for_each_record(Visitor visit) const
  {
    float const ratio         = coder::first_ratio(this->codec_, this->world_);
    std::uint64_t first_chunk = 0;
    std::uint64_t bypass      = 0;
    auto const visit_tensor   = [&](tensor const& t, bool around) {
      std::uint64_t offset = t.offset;
      std::uint64_t size   = t.size();
      while (size > 0) {
        std::uint64_t chunks = divide_up(size, Codec::chunk_size);
        std::uint64_t here   = size;
        if (Codec::rotates_all && !around) {
          chunks = std::bit_floor(chunks);
          here   = chunks > size / Codec::chunk_size ? size : chunks * Codec::chunk_size;
        }
        tensor_record const record{
            .offset      = offset,
            .size        = here,
            .first_chunk = first_chunk,
            .chunks      = around ? 0 : chunks,
            .bypass      = bypass,
            .ratio       = ratio,
            .weight = t.weight + 0.0f,  // energies are ordered by their bits; those of -0 are large
            .saturated = 0,
            .arrived   = 0,
            .padding   = 0};
        visit(record);
        first_chunk += record.chunks;
        bypass += around ? here : 0;
        offset += here;
        size -= here;
      }
    };
    if (this->layout_.tensors.empty()) {
      visit_tensor({{}, this->layout_.coordinates},
                   this->layout_.bucket() < this->layout_.bypass_below);
    }
    std::uint64_t const first = this->layout_.first;
    std::uint64_t const last  = first + this->layout_.coordinates;
    for (tensor const& t : this->layout_.tensors) {
      std::uint64_t const begin = maximum(t.offset, first);
      std::uint64_t const end   = minimum(t.offset + t.size(), last);
      if (begin >= end) { continue; }
      tensor piece  = t;
      piece.rows    = end - begin;
      piece.columns = 1;
      piece.offset  = begin - first;
      visit_tensor(piece, this->layout_.bypasses(t));
    }
  }

  //! @name Memory
  //! What each policy takes, in the order of memory, to which its arguments point.
  //! @{
  [[gnu::always_inline]] constexpr void take_state(section_list& state, auto& args) const noexcept
  {
    args.header  = state.take<state_header>("header", 1);
    args.records = state.take<tensor_record>("records", this->tensors());
    self().take_shards(state, args);
    args.table  = state.take<chunk_entry>("table", this->chunks());
    args.metric = decltype(args.metric)::of(state, this->coordinates());
    args.bypassed.take_gain(state, this->bypassed());
    self().take_owned(state, args);
    args.residual =
      take_residual<Codec>(state, "residual", feeds_back<Codec>, self().own_coordinates());
  }
  [[gnu::always_inline]] constexpr void take_workspace(section_list& work,
                                                       auto& args) const noexcept
  {
    std::uint64_t const rotated = Codec::rotates_all ? this->chunks() * chunk_size : 0;
    args.steps     = work.take<chunk_step>("steps", has_steps<Codec> ? this->chunks() : 0);
    args.rotated   = work.take<float>("rotated", rotated);
    args.selection = choice_.take(work, *this);
    self().take_parts(work, args);
    args.bypass = work.take<float>("bypass", this->bypassed());
    args.agreed = work.take_bytes<std::byte>("agreed", agreed_size(measured_scalars()));
    self().take_received(work, args);
  }
  //! What a form keeps of shards, and what its owners keep.
  constexpr void take_shards(section_list&, auto&) const noexcept {}
  constexpr void take_owned(section_list&, auto&) const noexcept {}
  //! What differs from rank to rank comes last, so that the rest lies at the same place on all.
  constexpr void take_received(section_list&, auto&) const noexcept {}
  //! @}

 protected:
  //! Counts the records that `counts` has: of these counts, or of those that cut tensors.
  constexpr void count_records(auto const& counts) noexcept
  {
    this->tensors_ = this->chunks_ = this->compressed_ = this->bypassed_ = 0;
    this->in_fours_ = this->in_eights_ = {};
    counts.for_each_record([this](tensor_record const& record) {
      ++this->tensors_;
      this->chunks_ += record.chunks;
      (record.chunks == 0 ? this->bypassed_ : this->compressed_) += record.size;
      this->add_facts(record);
    });
  }

  choice choice_;

 private:
  [[nodiscard]] constexpr auto const& self() const noexcept
  {
    return static_cast<typename Codec::counts_type const&>(*this);
  }
};

}  // namespace tersum::inline v0::detail
