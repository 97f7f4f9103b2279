// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A thread's part of the work on one chunk, under codecs whose owners decode, add and encode: kernel body parts.
//! Every kernel that rotates has the blocks of `encode_chunks`.

#pragma once

#include <tersum/block/block_group.hpp>
#include <tersum/chunk/detail/chunk_choice.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/exchange/detail/block_metric.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/block_part_codes.hpp>
#include <tersum/exchange/detail/block_rotation.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_parts.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
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

//! @brief What a thread of these kernels works with.
//! @tparam Map  Where the parts lie, and of which codes they are.
template <class Codec,
          class Element,
          class Context,
          class Map = decltype(make_part_map(std::declval<exchange_args<Codec, Element> const&>()))>
struct own_part {
  using context_type = Context;
  using args_type    = exchange_args<Codec, Element>;
  using hadamard     = typename own_chunk<Codec>::hadamard;

  static constexpr int size     = Codec::chunk_size;
  static constexpr bool rotates = Codec::rotates_chunks || Codec::rotates_in_memory;
  //! What undoes the lengths of forward and backward rotation.
  static constexpr float unit =
    1.0f / static_cast<float>(square_gain<typename Codec::rotator_type>);

  static constexpr bool in_step = looks_up_in_step<Codec>;

  using map_type       = Map;
  using quantizer_type = typename codes_of_map<Codec, Map>::quantizer_type;

  Context const& ctx;
  args_type const& args;
  map_type map;
  std::uint32_t* tables;
  float* storage;
  own_chunk<Codec> mine{};
  part_place place{};

  TERSUM_BODY own_part(Context const& context, args_type const& arguments)
    : own_part(context, arguments, make_part_map(arguments))
  {
  }

  TERSUM_BODY own_part(Context const& context, args_type const& arguments, map_type const& parts)
    : ctx(context), args(arguments), map(parts),
      tables(static_cast<std::uint32_t*>(context.shared()) + grid_of<Codec>.shared / 4),
      storage(static_cast<float*>(context.shared()) +
              (hadamard::in_warp ? context.thread_rank() / 32 * hadamard::storage_floats : 0))
  {
    fill_codebooks<Codec>(ctx, tables);
  }

  //! The place in parts of the mean of another one's chunk.
  template <class Other>
  TERSUM_BODY own_part(own_part<Codec, Element, Context, Other> const& other, Map const& parts)
    : ctx(other.ctx), args(other.args), map(parts), tables(other.tables), storage(other.storage),
      mine(other.mine), place(place_of_mean(parts, other.place))
  {
  }

  //! The same chunk in parts of the mean.
  [[nodiscard]] TERSUM_BODY decltype(auto) of_mean() const
  {
    if constexpr (ways_differ<Codec>) {
      return own_part<Codec, Element, Context, mean_map>{*this, make_mean_map(args)};
    } else {
      return (*this);
    }
  }

  //! A part of an array of parts.
  [[nodiscard]] TERSUM_BODY std::uint32_t* part_of(std::uint32_t* parts, std::uint64_t part) const
  {
    return parts + map.begin(part);
  }

  //! The scale of this chunk in a part.
  [[nodiscard]] TERSUM_BODY float scale_in(std::uint32_t const* part) const
  {
    return Context::from_bits(ctx.load(part + map.scale_word(place.index)));
  }

  //! Adds `factor` times the decoded chunk of a part to the values in wire order.
  TERSUM_BODY void add(std::uint32_t const* part, float factor, float (&v)[32]) const
  {
    if constexpr (!in_step) {
      if (!mine.active || place.level == 0) { return; }
    }
    float const scale = Context::multiply(scale_in(part), factor);
    at_level_of(map, args.codec, place.level, [&](auto const& codec) {
      using quantizer = typename std::remove_cvref_t<decltype(codec)>::quantizer_type;
      part_codes<quantizer>::add(*this, part + place.word, scale, v);
    });
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
    if constexpr (rotates) {
      begin_forward(ctx, args, mine, storage, v);
      hadamard::to_wire(ctx, v, storage, mine.thread, mine.first);
    }
  }

  //! Values in wire order to the loaded arrangement: back to the basis of the gradient.
  //! @tparam ByPredicates  See `block_hadamard::apply_signs`.
  template <bool ByPredicates = false>
  TERSUM_BODY void rotate_back(float (&v)[32]) const
  {
    if constexpr (rotates) {
      hadamard::to_loaded(ctx, v, storage, mine.thread, mine.first);
      finish_backward<ByPredicates>(ctx, args, mine, storage, v);
      TERSUM_UNROLL
      for (int i = 0; i < 32; ++i) { v[i] = Context::multiply(v[i], unit); }
    }
  }

  //! Finds the chunk of the gradient and its place; one that does not travel is at place.level 0. Regular chunks are taken in
  //! the order of their widths where there are several.
  template <bool Edge>
  TERSUM_BODY void find(std::uint64_t first_chunk)
  {
    constexpr bool ordered = orders_chunks<Codec> && !Edge;
    mine                   = find_chunk<Edge, ordered>(ctx, args, first_chunk);
    if constexpr (ordered) {
      auto const position = number_chunk<Codec>(ctx, first_chunk).chunk;
      place               = map.of_position(static_cast<std::uint32_t>(position));
    } else if (mine.active) {
      place = find_part(args, map, mine.chunk);
    }
  }

  //! Finds a chunk that this rank owns.
  TERSUM_BODY void find_owned()
  {
    mine        = number_chunk<Codec>(ctx, 0);
    mine.active = mine.chunk < map.chunks_of(args.rank);
    if (mine.active) { place = map.of_index(args.rank, static_cast<std::uint32_t>(mine.chunk)); }
    mine.chunk = map.chunk_of(args.rank, place.index);
    if constexpr (in_metric<Codec> && owner_feeds_back<Codec>) {
      if (mine.active) {
        mine.offset = args.table[mine.chunk].offset;
        mine.length = static_cast<int>(args.table[mine.chunk].length);
      }
    }
  }

  //! Adds up what all ranks sent of an owned chunk, and what the owner kept of it, in wire order.
  //! @tparam InRows  Of its scales, as `load_scales` has it.
  template <bool InRows>
  TERSUM_BODY void add_ranks(float (&v)[32]) const
  {
    add_ranks<InRows>(v, [](own_part const& own, std::uint32_t rank) {
      return own.part_of(own.args.parts.received, rank);
    });
  }

  //! The same, where sent_by(own, rank) is this rank's part as that one sent it.
  template <bool InRows, class SentBy>
  TERSUM_BODY void add_ranks(float (&v)[32], SentBy const& sent_by) const
  {
    TERSUM_UNROLL
    for (int k = 0; k < 32; ++k) { v[k] = 0.0f; }
    if constexpr (owner_feeds_back<Codec>) {
      if (mine.active) {
        TERSUM_UNROLL
        for (int r = 0; r < 4; ++r) { load_eight(ctx, kept(r), v + 8 * r); }
        if constexpr (weighs_kept<Codec>) {
          float const weight = weight_of_kept(args);
          TERSUM_UNROLL
          for (int k = 0; k < 32; ++k) { v[k] = Context::multiply(weight, v[k]); }
        }
      }
      divide_by_scales<true, InRows>(ctx, args, mine, v);
      to_wire(v);
    }
    for (std::uint32_t rank = 0; rank < map.world; ++rank) { add(sent_by(*this, rank), 1.0f, v); }
  }

  //! Where the owner keeps a thread's eight coordinates of quarter r.
  [[nodiscard]] TERSUM_BODY residual_element<Codec>* kept(int r) const
  {
    return args.parts.owner_residual + static_cast<std::uint64_t>(place.index) * size +
           (static_cast<unsigned>(r * (size / 4)) + mine.thread * 8);
  }
};

}  // namespace tersum::inline v0::detail
