// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A thread's part of the work on one chunk, under codecs whose owners decode, add and encode: kernel body parts.
//! Every kernel that rotates has the blocks of `encode_chunks`.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/block/block_values.hpp>
#include <tersum/chunk/detail/chunk_choice.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/coder/detail/block_scaled_codes.hpp>
#include <tersum/exchange/detail/block_basis.hpp>
#include <tersum/exchange/detail/block_coordinates.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/part_map.hpp>
#include <tersum/quantize/detail/block_codebook.hpp>
#include <tersum/quantize/dither.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace tersum::inline v0::detail {

//! @brief The grid of these kernels, whose shared memory holds the codebooks, too.
template <class Codec>
inline constexpr chunk_grid two_shot_grid{.chunks_a_block = grid_of<Codec>.chunks_a_block,
                                          .threads        = grid_of<Codec>.threads,
                                          .shared =
                                            grid_of<Codec>.shared + codebook_room<Codec>() * 4};

//! @brief A chunk in the hand of the threads that share it: what the sentences of `part_stages.hpp` ask of it, to a thread.
//! @tparam Edge    Whether coordinates may be missing, or the chunk not aligned to 16 bytes.
//! @tparam InRows  Of the scales of a metric, as `load_scales` has it.
//! @tparam Map     Where the parts lie, and of which codes they are.
template <bool Edge,
          bool InRows,
          class Codec,
          class Element,
          class Context,
          class Map = decltype(make_part_map(std::declval<exchange_args<Codec, Element> const&>()))>
struct chunk_in_lanes {
  using math         = Context;
  using values       = float[32];  //!< A thread's own.
  using context_type = Context;
  using args_type    = exchange_args<Codec, Element>;
  using dither_type  = typename Codec::dither_type;
  using hadamard     = typename own_chunk<Codec>::hadamard;

  static constexpr bool edge    = Edge;
  static constexpr bool chooses = selects<Codec>;
  static constexpr int size     = Codec::chunk_size;
  static constexpr bool rotates = Codec::rotates_chunks || Codec::rotates_in_memory;
  //! What undoes the lengths of forward and backward rotation.
  static constexpr float unit =
    1.0f / static_cast<float>(square_gain<typename Codec::rotator_type>);

  static constexpr bool in_order = orders_chunks<Codec> && !Edge;
  //! Whether a chunk's place is found before idle threads leave: nvcc takes fewer instructions then, or registers.
  static constexpr bool is_placed_first = in_order || !rotates;

  static constexpr bool in_step = looks_up_in_step<Codec>;

  //! @name The factors of `unit` before the rotation back, and behind it
  //! A power of two rounds none of the values of a chunk that travels, of which none is near overflow or subnormal.
  //! @{
  static constexpr float early = Codec::rotates_chunks ? unit : 1.0f;
  static constexpr float late  = Codec::rotates_chunks ? 1.0f : unit;
  //! @}

  //! Whether all values of a chunk are +0 if its scale is zero, unless signs are flipped, and NaN if it is NaN.
  static constexpr bool decodes_zeros = in_step && !Codec::rotates_in_memory;

  using map_type       = Map;
  using quantizer_type = typename codes_of_map<Codec, Map>::quantizer_type;

  Context const& ctx;
  args_type const& args;
  map_type map;
  std::uint32_t* tables;
  float* storage;
  own_chunk<Codec> mine{};
  part_place place{};

  TERSUM_BODY chunk_in_lanes(Context const& context, args_type const& arguments)
    : chunk_in_lanes(context, arguments, make_part_map(arguments), {})
  {
    fill_tables(ctx);
  }

  //! A chunk that was found, where the codebooks lie in shared memory. Of what is found in a member nvcc makes more instructions.
  TERSUM_BODY chunk_in_lanes(Context const& context,
                             args_type const& arguments,
                             map_type const& parts,
                             own_chunk<Codec> const& found)
    : ctx(context), args(arguments), map(parts), tables(tables_of(context)),
      storage(tile_storage<hadamard>(context)), mine(found)
  {
  }

  [[nodiscard]] TERSUM_BODY static std::uint32_t* tables_of(Context const& context)
  {
    return static_cast<std::uint32_t*>(context.shared()) + grid_of<Codec>.shared / 4;
  }
  //! Brings the codebooks into shared memory. All threads of the block call it.
  TERSUM_BODY static void fill_tables(Context const& context)
  {
    fill_codebooks<Codec>(context, tables_of(context));
  }

  //! The same chunk in parts of the mean.
  //! @{
  [[nodiscard]] TERSUM_BODY auto const& of_mean() const { return *this; }
  [[nodiscard]] TERSUM_BODY auto of_mean() const requires ways_differ<Codec>
  {
    auto const parts = make_mean_map(args);
    chunk_in_lanes<Edge, InRows, Codec, Element, Context, mean_map<Codec>> mean{
      ctx, args, parts, mine};
    mean.place = place_of_mean(parts, place);
    return mean;
  }
  //! @}

  //! A part of an array of parts.
  [[nodiscard]] TERSUM_BODY std::uint32_t* part_of(std::uint32_t* parts, std::uint64_t part) const
  {
    return parts + map.begin(part);
  }

  //! This rank's part as that one sent it.
  [[nodiscard]] TERSUM_BODY std::uint32_t const* sent_by(std::uint32_t rank) const
  {
    return args.parts.received + map.received(rank, args.rank);
  }

  //! Whether the chunk is one that travels.
  [[nodiscard]] TERSUM_BODY bool travels() const
  {
    return mine.active && (!selects<Codec> || place.level > 0);
  }

  //! Whether the chunk is one that does not travel.
  [[nodiscard]] TERSUM_BODY bool stays() const
  {
    return selects<Codec> && mine.active && place.level == 0;
  }

  //! The chunk's number in the gradient.
  [[nodiscard]] TERSUM_BODY std::uint64_t number() const { return mine.chunk; }

  //! Memory as items see it.
  [[nodiscard]] TERSUM_BODY Context const& memory() const { return ctx; }

  //! The scale of this chunk in a part.
  [[nodiscard]] TERSUM_BODY float scale_in(std::uint32_t const* part) const
  {
    return Context::from_bits(ctx.load(part + map.scale_word(place.index)));
  }

  //! Adds `factor` times the decoded chunk of a part to the values in wire order.
  TERSUM_BODY void add(std::uint32_t const* part, float factor, float (&v)[32]) const
  {
    if (!in_step && !travels()) { return; }
    float const scale = Context::multiply(scale_in(part), factor);
    at_level_of(map, args.codec, place.level, [&](auto const& codec) {
      using quantizer = typename std::remove_cvref_t<decltype(codec)>::quantizer_type;
      part_codes<quantizer>::add(*this, part + place.word, scale, v);
    });
  }

  //! `add` to zeros.
  TERSUM_BODY void begin(std::uint32_t const* part, float factor, float (&v)[32]) const
  {
    if constexpr (decodes_in_step<Codec, quantizer_type>) {
      std::uint32_t const* const from = part + (place.word + mine.thread * quantizer_type::bits);
      scaled_levels<quantizer_type>(ctx, from, Context::multiply(scale_in(part), factor), v);
    } else {
      add(part, factor, v);
    }
  }

  //! Writes values in wire order as this chunk of a part, dithered by `key`. The chunk's scale is multiplied by
  //! `share_of`: by 1 / ranks if the values are sums and the part is to hold their mean.
  template <class Dither>
  TERSUM_BODY void encode(float const (&v)[32],
                          dither_key const& key,
                          float share_of,
                          std::uint32_t* part) const
  {
    part_codes<quantizer_type>::template encode<Dither>(*this, v, key, share_of, part);
  }

  //! Flips signs and rotates, from the loaded arrangement to the order of the wire. Without a rotation nothing changes.
  TERSUM_BODY void to_wire(float (&v)[32]) const
  {
    if (rotates) {
      rotate_loaded<true>(ctx, args, mine, storage, v);
      hadamard::to_wire(ctx, v, storage, mine.thread, mine.first);
    }
  }

  //! Values in wire order to the loaded arrangement: back to the basis of the gradient.
  //! @tparam ByPredicates  See `block_hadamard::apply_signs`.
  //! @param by     What values are multiplied by at last: `late` if they were by `early`.
  //! @param flips  Whether signs are.
  template <std::uint32_t ByPredicates = 0>
  TERSUM_BODY void rotate_back(float (&v)[32], float by = unit, bool flips = true) const
  {
    if (rotates) {
      hadamard::to_loaded(ctx, v, storage, mine.thread, mine.first);
      rotate_loaded<false, ByPredicates>(ctx, args, mine, storage, v, flips);
      TERSUM_UNROLL
      for (int i = 0; by != 1.0f && i < 32; ++i) { v[i] = Context::multiply(v[i], by); }
    }
  }

  //! Finds the place of a chunk of the gradient.
  TERSUM_BODY void find_place(std::uint64_t first_chunk)
  {
    if constexpr (in_order) {
      auto const position = number_chunk<Codec>(ctx, first_chunk).chunk;
      place               = map.of_position(static_cast<std::uint32_t>(position));
    } else if (mine.active) {
      place = args.selection.find_in(map, mine.chunk);
    }
  }

  //! Finds a chunk that this rank owns.
  TERSUM_BODY void find_owned()
  {
    mine        = number_chunk<Codec>(ctx, 0);
    mine.active = mine.chunk < map.chunks_of(args.rank);
    if (mine.active) { place = map.of_index(args.rank, static_cast<std::uint32_t>(mine.chunk)); }
    mine.chunk = map.chunk_of(args.rank, place.index);
  }

  //! Finds it in the gradient. Where chunks are chosen their numbers are others.
  TERSUM_BODY void locate()
  {
    if (selects<Codec> || !mine.active) { return; }
    chunk_entry const& entry = args.table[mine.chunk];
    mine.offset              = entry.offset;
    mine.length              = static_cast<int>(entry.length);
  }

  //! Decoded values in wire order to the gradient: back to its basis and its units, and stored. Where the chunk has not
  //! travelled zeros take their place, or NaN if a gradient was not finite.
  //! @param scale  By what the values were multiplied, in all.
  TERSUM_BODY void give(float scale, float (&v)[32])
  {
    // nvcc moves a byte to predicates in one instruction while it holds no other, as it would for the bits that are left out.
    constexpr std::uint32_t predicates = flips_by_predicates<Edge, Codec> ? 0x7f7e7e7eu : 0u;
    rotate_back<predicates>(v, late, !decodes_zeros || scale > 0.0f);
    if (!settle(scale, v)) { return; }
    leave_metric<Edge>(ctx, args, mine, v);
    if (codes_differences<Codec>) {  // to what all ranks hold
      float held[32];
      TERSUM_UNROLL
      for (int r = 0; r < 4; ++r) {
        load_eights<Edge>(ctx, mine, args.gradient + mine.offset, r, held + 8 * r);
      }
      TERSUM_UNROLL
      for (int i = 0; i < 32; ++i) { v[i] = Context::add(held[i], v[i]); }
    }
    store_row<Edge>(ctx, args.gradient, mine, storage, v);
  }

  //! Begins with what the owner kept of the chunk.
  //! @{
  TERSUM_BODY void begin_with_kept(float (&v)[32]) const { clear(v); }
  TERSUM_BODY void begin_with_kept(float (&v)[32]) const requires owner_feeds_back<Codec>
  {
    clear(v);
    if (mine.active) {
      float const weight = weight_of_kept(args);
      TERSUM_UNROLL
      for (int r = 0; r < 4; ++r) { thread_values<8>::load(ctx, kept(r), v + 8 * r); }
      TERSUM_UNROLL
      for (int k = 0; k < 32; ++k) {
        v[k] = weighed<Codec>(context_arithmetic<Context>{}, weight, v[k]);
      }
    }
    divide_by_scales<true, InRows>(ctx, args, mine, v);
    to_wire(v);
  }
  //! @}

  //! Writes what the owner keeps of a chunk of its part, of which so much was lost.
  TERSUM_BODY void keep_owned(float (&v)[32]) const
  {
    if (rotates) { hadamard::synchronize(ctx); }
    rotate_back(v);
    // Parts begin anywhere among the chunks, so that none of them counts as regular.
    multiply_by_scales<true, InRows>(ctx, args, mine, v);
    // What divided by a scale without a coordinate has left beyond the end of a chunk.
    TERSUM_UNROLL
    for (int i = 0; in_metric<Codec> && i < 32; ++i) {
      if (mine.coordinate(i) >= mine.length) { v[i] = 0.0f; }
    }
    if (!mine.active) { return; }
    round_to_kept<residual_element<Codec>>(mine, draw_of_kept(args, mine.chunk, second_rank), v);
    TERSUM_UNROLL
    for (int r = 0; r < 4; ++r) { thread_values<8>::store<false>(ctx, v + 8 * r, kept(r)); }
  }

  //! Decoded values to this rank's shard: those coordinates of the chunk that lie in it. If they are not finite it sets the flag of the
  //! exchange. All threads of the warp call it.
  TERSUM_BODY void give_to_shard(bool finite, float (&v)[32]) const
  {
    rotate_back(v);
    multiply_by_scales<true, InRows>(ctx, args, mine, v);
    if (mine.active && !finite && mine.thread == 0) { raise_flag(args); }
    store_in_shard(ctx, args, mine, v);
  }

 private:
  TERSUM_BODY static void clear(float (&v)[32])
  {
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) { v[k] = 0.0f; }
  }

  //! Makes zeros or NaNs, by `scale`, of a chunk that has not travelled. Of differences that are not finite nothing is stored.
  TERSUM_BODY bool settle(float scale, float (&v)[32])
  {
    if (codes_differences<Codec>) {
      bool const moves = scale > 0.0f && is_finite(scale);
      if (!Edge && own_chunk<Codec>::threads >= 32) { return moves; }
      mine.active = mine.active && moves;  // others of the warp go on to barriers
    } else if (!decodes_zeros && !(scale > 0.0f)) {
      TERSUM_UNROLL
      for (int i = 0; i < 32; ++i) { v[i] = Context::multiply(0.0f, scale); }
    }
    return true;
  }

  //! Where the owner keeps a thread's eight coordinates of quarter r.
  [[nodiscard]] TERSUM_BODY residual_element<Codec>* kept(int r) const
  {
    return args.parts.owner_residual + static_cast<std::uint64_t>(place.index) * size +
           (static_cast<unsigned>(r * (size / 4)) + mine.thread * 8);
  }
};

//! @brief Finds a chunk of the gradient and its place, and calls work(chunk) unless no thread that synchronizes with this one has work.
//! Regular chunks are taken in the order of their widths where there are several.
//! @tparam Travels  Whether a chunk that does not travel counts as no work. Otherwise work(chunk) sees it with place.level 0.
template <class Chunk, bool Travels = false, class Work>
TERSUM_BODY void in_found_chunk(typename Chunk::context_type const& ctx,
                                typename Chunk::args_type const& args,
                                typename Chunk::map_type const& map,
                                std::uint64_t first_chunk,
                                Work const& work)
{
  Chunk::fill_tables(ctx);
  auto mine = find_chunk<Chunk::edge, Chunk::in_order>(ctx, args, first_chunk);
  if (!Chunk::is_placed_first && all_idle(ctx, mine)) { return; }
  Chunk chunk{ctx, args, map, mine};
  chunk.find_place(first_chunk);
  chunk.mine.active = chunk.mine.active && (!Travels || chunk.place.level > 0);
  if ((Chunk::is_placed_first || (Travels && Chunk::chooses)) && all_idle(ctx, chunk.mine)) {
    return;
  }
  work(chunk);
}

}  // namespace tersum::inline v0::detail
