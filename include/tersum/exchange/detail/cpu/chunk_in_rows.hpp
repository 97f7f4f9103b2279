// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunk in the hand of a thread of the CPU, and its codes where they are summed.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/chunk/detail/chunk_choice.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/plan.hpp>
#include <tersum/quantize/dither.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/tuning.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief What a stage works with: one rank's plan and memory, and how to work.
template <class Codec, class Element>
struct cpu_work {
  using codec_type = Codec;

  int threads;
  instruction_set instructions;
  tersum::plan<Codec> const& plan;
  exchange_args<Codec, Element> const& args;
  cpu_tuning const& numbers;
};

//! @brief A chunk in the hand of a thread: its coordinates as an array, with what feedback kept of them, in the units of the metric, in the
//! basis in which they are quantized, and back.
template <class Codec, class Element>
class chunk_in_rows {
 public:
  using codec_type          = Codec;
  using element             = Element;
  using math                = host_group;
  using args_type           = exchange_args<Codec, Element>;
  using kept_element        = residual_element<Codec>;
  static constexpr int size = Codec::chunk_size;
  using array               = float[extent(size)];

  instruction_set set;
  args_type const& args;
  chunk_entry const& entry;

  chunk_in_rows(instruction_set instructions, args_type const& arguments, std::uint64_t chunk)
    : set(instructions), args(arguments), entry(arguments.table[chunk]), number_(chunk)
  {
  }

  //! The chunk's number in the gradient.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] bool is_whole() const { return entry.length == static_cast<std::uint32_t>(size); }
  [[nodiscard]] int length() const { return static_cast<int>(entry.length); }
  [[nodiscard]] Element* gradient() const { return args.gradient + entry.offset; }
  //! Where the rank keeps what the chunk lost.
  [[nodiscard]] kept_element* kept() const { return args.residual; }
  [[nodiscard]] kept_element* kept() const requires feeds_back<Codec>
  {
    return args.residual + entry.offset;
  }

  //! The chunk as an array of `size`: in place when it is whole and needs nothing added, else a copy.
  template <class Body>
  void read(Body const& body) const
  {
    if constexpr (Codec::rotates_all) {
      body(static_cast<float const*>(args.rotated + number() * size));
    } else {
      read(gradient(), kept(), body);
    }
  }

  //! The same of values that lie at `from`, of which `before` was kept.
  template <class Body>
  void read(Element const* from, kept_element const*, Body const& body) const
  {
    if (is_whole()) {
      body(from);
    } else {
      read_copy([&](int i) { return to_float(from[i]); }, body);
    }
  }
  template <class Body>
  requires codes_differences<Codec>
  void read(Element const* from, kept_element const*, Body const& body) const
  {
    float const* const held = args.parts.held + (from - args.gradient);
    read_copy([&](int i) { return math::subtract(to_float(from[i]), held[i]); }, body);
  }
  template <class Body>
  requires feeds_back<Codec>
  void read(Element const* from, kept_element const* before, Body const& body) const
  {
    alignas(64) float room[extent(kept_room)];
    auto const* const weighed = with_weight(before, length(), room);
    if constexpr (has_adds_lost<typename Codec::feedback_type>) {
      alignas(64) array copy;
      add_residual(set, from, weighed, copy, entry.length);
      std::fill(copy + length(), copy + size, 0.0f);
      body(static_cast<float const*>(copy));
    } else {
      auto const& feedback = args.codec.feedback;
      read_copy(
        [&](int i) { return feedback.before(math{}, to_float(from[i]), to_float(weighed[i])); },
        body);
    }
  }

  //! Room for what was kept where it cannot be used in place.
  static constexpr int kept_room = weighs_kept<Codec> ? size : 1;

  //! What was kept with the weight of this step: itself, or in `room`.
  [[nodiscard]] auto const* with_weight(kept_element const* before, int, float*) const
  {
    return before;
  }
  [[nodiscard]] float const* with_weight(kept_element const* before,
                                         int count,
                                         float* room) const requires weighs_kept<Codec>
  {
    auto const values = static_cast<std::size_t>(count);
    static_cast<void>(convert_values(set, before, room, weight_of_kept(args), values));
    return room;
  }

  //! Where feedback keeps values, and how it rounds them.
  [[nodiscard]] kept_at<kept_element> to_keep(kept_element* to) const
  {
    return {to, draw_of_kept(args, number(), args.rank)};
  }

  //! Writes what feedback keeps of the chunk.
  //! @param values  What was to be sent.
  //! @param sent    What was sent, over `factor`, negative. It is overwritten.
  void keep(float const* values, float factor, array& sent, kept_element* to) const
  {
    auto const at = to_keep(to);
    if constexpr (has_adds_lost<typename Codec::feedback_type>) {
      fused_add(set, factor, +sent, values, length(), at);
    } else {
      fused_add(set, factor, +sent, values, length(), +sent);
      for (int i = 0; i < length(); ++i) { store_value(at + i, after(values[i], sent[i], to[i])); }
    }
  }

  //! What feedback says of one value.
  [[nodiscard]] float after(float value, float lost, kept_element before) const
  {
    float const kept = weighed<Codec>(math{}, weight_of_kept(args), to_float(before));
    return args.codec.feedback.after(math{}, value, lost, kept);
  }

  //! The chunk in the units of the metric.
  template <class Body>
  void read_in_units(Body const& body) const
  {
    read([&](auto const* from) { in_units(*this, from, body); });
  }

  //! These in the basis in which they are quantized; unchanged where vectors rotate as they encode.
  template <class From, class Body>
  void rotated(From from, Body const& body) const
  {
    if constexpr (Codec::rotates_in_memory) {
      alignas(64) array x;
      array scratch;
      for (int i = 0; i < size; ++i) { x[i] = to_float(from[i]); }
      args.codec.rotator.forward(math{}, x, scratch, key());
      body(static_cast<float const*>(x));
    } else {
      body(from);
    }
  }

  //! Undoes it where `rotated` did anything.
  void rotate_back([[maybe_unused]] array& x) const
  {
    if constexpr (Codec::rotates_in_memory) {
      array scratch;
      args.codec.rotator.backward(math{}, x, scratch, key());
    }
  }

  [[nodiscard]] rotation_key key() const { return {args.header->sign_key, number()}; }

  //! All values of a chunk that has not travelled: zeros, or NaN.
  template <class To>
  void store_unsent(float value, To to) const
  {
    if constexpr (std::is_same_v<To, Element*>) {
      fill_chunk(to, static_cast<std::uint32_t>(size), value);
    } else {
      array values;
      std::fill_n(values, size, value);
      store_whole(set, values, to, size);
    }
  }

 private:
  //! Calls body with an array of what value(i) gives for each coordinate.
  template <class Value, class Body>
  void read_copy(Value const& value, Body const& body) const
  {
    alignas(64) array copy;
    for (int i = 0; i < length(); ++i) { copy[i] = value(i); }
    std::fill(copy + length(), copy + size, 0.0f);
    body(static_cast<float const*>(copy));
  }

  std::uint64_t number_;
};

//! @name Units
//! What a chunk in hand does without a metric, whose units are those of the gradient: `chunk_in_metric.hpp` has the same with one.
//! @{

//! Calls body with values that `read` gave in the units of the metric.
template <class Chunk, class From, class Body>
void in_units(Chunk const&, From const* from, Body const& body)
{
  body(from);
}

//! Values in the units of the metric in those of the gradient. In a metric the rest of the array becomes zeros.
template <class Chunk>
void to_own_units(Chunk const&, float*)
{
}

//! The same of decoded values. Scales that the library keeps follow them.
template <class Chunk>
void leave_metric_in_place(Chunk const&, float*)
{
}

//! Decodes `count` values from coordinate `first` of the chunk on, in the units of the gradient, to memory of their own, where
//! `decode_to(to)` writes all values in those of the metric. No scales follow.
template <class Chunk, class Decode>
void leave_metric(Chunk const&,
                  std::uint64_t first,
                  std::uint64_t count,
                  typename Chunk::element* to,
                  Decode const& decode_to)
{
  if (count == std::uint64_t{Chunk::size}) {
    decode_to(to);
  } else {
    typename Chunk::element copy[extent(Chunk::size)];
    decode_to(+copy);
    std::copy_n(copy + first, count, to);
  }
}

//! Decodes to the gradient, in its units again, where `decode_to(to)` writes all values in those of the metric, to floats, by
//! `multiplied`, or, without a metric, to elements. Scales that the library keeps follow the values.
template <class Chunk, class Decode>
void leave_metric(Chunk const& chunk, Decode const& decode_to)
{
  leave_metric(chunk, 0, chunk.entry.length, chunk.gradient(), decode_to);
}
//! @}

//! @brief A chunk that travels in codes which are summed.
template <class Codec, class Element>
struct codes_in_rows : chunk_in_rows<Codec, Element> {
  using base = chunk_in_rows<Codec, Element>;
  using base::args;
  using base::number;
  using base::set;
  using base::size;
  using typename base::array;

  using base::base;

  //! Gradient to payload; with feedback what the codes lose to the residual.
  //! @param dither  Of this step.
  TERSUM_HOST_INLINE void encode(dither_key const& dither) const
  {
    // The processor prefetches steps by itself only where all of them are read.
    detail::fetch_beyond<false, 1024>(args.steps + number());
    if (stays()) { return; }
    this->read([&]<class From>(From const* from) {
      code(dither, from, chunk_source<From>{from, nullptr}, nullptr);
    });
  }
  TERSUM_HOST_INLINE void encode(dither_key const& dither) const requires feeds_back<Codec>
  {
    this->read([&](float const* from) {
      using source    = chunk_source<Element, residual_element<Codec>>;
      auto* const to  = this->kept();
      auto const step = args.steps[number()];
      alignas(64) array own;
      float factor = -0.0f;
      if (stays()) {
        std::fill_n(own, size, 0.0f);
      } else {
        code(dither, from, source{this->gradient(), to}, +own);
        this->rotate_back(own);
        to_own_units(*this, own);
        factor = -(step.decode * static_cast<float>(args.world));
      }
      if (!step_is_poisoned(args)) { this->keep(from, factor, own, to); }
    });
  }

  //! Reduced payload to gradient.
  void decode() const
  {
    chunk_step& step                 = args.steps[number()];
    std::uint32_t const* const words = args.payload + place_.word;
    std::uint64_t const key          = args.header->sign_key;
    if constexpr (Codec::rotates_all) {
      decode_chunk<Codec>(
        set, args.world, key, number(), step.decode, words, args.rotated + number() * size, step);
    } else {
      leave_metric(*this, [&](auto whole) {
        if (stays()) {
          this->store_unsent(0.0f * step.decode, whole);
          return;
        }
        at_level(args.codec, place_.level, [&](auto const& codec) {
          using level_codec = std::remove_cvref_t<decltype(codec)>;
          if constexpr (Codec::rotates_in_memory) {
            alignas(64) array sum;
            decode_chunk<level_codec>(set, args.world, key, number(), 1.0f, words, +sum, step);
            this->rotate_back(sum);
            for (float& value : sum) { value = value * step.decode; }
            store_whole(set, sum, whole, size);
          } else {
            decode_chunk<level_codec>(
              set, args.world, key, number(), step.decode, words, whole, step);
          }
        });
      });
    }
  }

 private:
  [[nodiscard]] bool stays() const { return selects<Codec> && place_.level == 0; }

  //! Encodes values of the chunk. Writes what their codes decode to, over the step, to `own` if that is not null.
  template <class From, class Source, class Own>
  void code(dither_key const& dither, From const* from, Source const& source, Own own) const
  {
    in_units(*this, from, [&](auto values) {
      this->rotated(values, [&](auto rotated) {
        at_level(args.codec, place_.level, [&](auto const& codec) {
          encode_chunk(set,
                       codec,
                       dither,
                       args.header->sign_key,
                       number(),
                       args.steps[number()].encode,
                       rotated,
                       source,
                       args.payload + place_.word,
                       own);
        });
      });
    });
  }

  payload_place place_ = find_place(args, number());
};

}  // namespace tersum::inline v0::detail
