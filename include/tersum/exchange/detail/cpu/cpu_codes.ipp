// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Stages of cpu_stages.hpp: chunks to codes and back.

namespace tersum::inline v0::detail {

template <class Codec, class Element>
void cpu_stages<Codec, Element>::encode() const
{
  if constexpr (has_steps<Codec>) {
    encode_codes();
  } else {
    encode_cast();
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::decode() const
{
  if constexpr (has_steps<Codec>) {
    decode_codes();
  } else {
    decode_cast();
  }
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::encode_codes() const
{
  dither_key const key = key_of(args_);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    chunk_step const step             = args_.steps[chunk];
    payload_place const place         = find_place(args_, chunk);
    std::uint32_t* const words        = args_.payload + place.word;
    [[maybe_unused]] bool const stays = Codec::selects && place.level == 0;
    if (stays && !Codec::feeds_back) { return; }
    with_chunk(chunk, [&]<class From>(From const* from) {
      alignas(64) float own[Codec::feeds_back ? size : 1];
      if (!stays) {
        auto const source = [&] {
          if constexpr (Codec::feeds_back) {
            std::uint64_t const first = args_.table[chunk].offset;
            return chunk_source<Element>{args_.gradient + first, args_.residual + first};
          } else {
            return chunk_source<From>{from, nullptr};
          }
        }();
        at_level(args_.codec, place.level, [&](auto const& codec) {
          encode_chunk(set_,
                       codec,
                       key,
                       args_.header->sign_key,
                       chunk,
                       step.encode,
                       from,
                       source,
                       words,
                       Codec::feeds_back ? own : nullptr);
        });
      }
      if constexpr (Codec::feeds_back) {
        if (step_is_poisoned(args_)) { return; }
        chunk_entry const entry = args_.table[chunk];
        float* const residual   = args_.residual + entry.offset;
        int const length        = static_cast<int>(entry.length);
        if (stays) {
          std::copy_n(from, length, residual);
        } else {
          float const own_step = -(step.decode * static_cast<float>(args_.world));
          fused_add(set_, own_step, own, from, length, residual);
        }
      }
    });
  });
}

template <class Codec, class Element>
void cpu_stages<Codec, Element>::decode_codes() const
{
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    chunk_step& step                 = args_.steps[chunk];
    payload_place const place        = find_place(args_, chunk);
    std::uint32_t const* const words = args_.payload + place.word;
    std::uint64_t const key          = args_.header->sign_key;
    if constexpr (Codec::rotates_all) {
      decode_chunk<Codec>(
        set_, args_.world, key, chunk, step.decode, words, args_.rotated + chunk * size, step);
    } else {
      chunk_entry const entry = args_.table[chunk];
      Element* const to       = args_.gradient + entry.offset;
      if (Codec::selects && place.level == 0) {
        // Zeros, or NaN where a gradient was not finite.
        fill_chunk(to, entry.length, 0.0f * step.decode);
        return;
      }
      at_level(args_.codec, place.level, [&](auto const& codec) {
        using level_codec = std::remove_cvref_t<decltype(codec)>;
        if (entry.length == size) {
          decode_chunk<level_codec>(set_, args_.world, key, chunk, step.decode, words, to, step);
        } else {
          Element copy[size];
          decode_chunk<level_codec>(set_, args_.world, key, chunk, step.decode, words, copy, step);
          std::memcpy(to, copy, entry.length * sizeof(Element));
        }
      });
    }
  });
}

}  // namespace tersum::inline v0::detail
