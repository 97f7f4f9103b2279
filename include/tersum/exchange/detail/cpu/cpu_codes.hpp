// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What ranks agree on of a chunk, and chunks to codes that are summed, or to values of a type, and back on the CPU.

#pragma once

#include <tersum/block/chunk_step.hpp>
#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/codec.hpp>
#include <tersum/exchange/detail/cpu/chunk_in_rows.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/quantize/dither.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief A chunk of which scalars are measured that the ranks agree on.
template <class Codec, class Element>
class measured_in_rows : chunk_in_rows<Codec, Element> {
  using base = chunk_in_rows<Codec, Element>;
  using base::args;
  using base::number;
  using base::set;
  using base::size;
  using typename base::array;
  using typename base::math;
  using scalar = typename Codec::norm_scalar;

 public:
  using base::base;

  void measure() const
  {
    scalar& agreed = static_cast<scalar*>(args.agreed)[number()];
    this->read_in_units([&](auto from) {
      if constexpr (measures_plainly<Codec>) {
        agreed = to_agreed<typename Codec::range_type>(inspected(args, measured_plainly(from)));
      } else if constexpr (measures_magnitudes<Codec>) {
        agreed = to_agreed<scalar>(inspected(args, magnitude(from)), true);
      }
      if constexpr (measures_norms<Codec>) {
        float norm = inspected(args, square_norm<size>(set, from));
        // The rotated copy is not normalized; its length is a power of two.
        if (Codec::rotates_all) { norm = norm / static_cast<float>(chunks() * size); }
        if (norms_travel<Codec>) {
          agreed = to_agreed<scalar>(norm, false);
        } else {
          args.steps[number()].encode = norm;
        }
      }
    });
  }

 private:
  //! Of the tensor.
  [[nodiscard]] std::uint64_t chunks() const { return args.records[this->entry.tensor].chunks; }

  //! The largest of the rotated values, in units of those that are not.
  template <class From>
  [[nodiscard]] float magnitude(From from) const
  {
    float most = 0;
    this->rotated(from, [&](auto rotated) {
      if (Codec::rotates_chunks) {
        alignas(64) array rows;
        rotate_to_rows<size>(set, args.header->sign_key, number(), rotated, +rows);
        most = largest_of(set, +rows, size);
      } else {
        most = largest_of(set, rotated, size);
      }
    });
    return most / rotation_root<Codec>(chunks());
  }

  //! What the range's plain form measures.
  template <class From>
  [[nodiscard]] float measured_plainly(From from) const
  {
    alignas(64) array x;
    array scratch;
    static_cast<void>(convert_values(set, from, +x, 1.0f, std::size_t{size}));
    if constexpr (Codec::range_type::measures_rotated && !Codec::rotates_all) {
      args.codec.rotator.forward(math{}, x, scratch, this->key());
      float const root = rotation_root<Codec>(1);
      for (float& value : x) { value = value / root; }
    }
    return args.codec.coder.range.measure(math{}, x, scratch);
  }
};

//! @brief A chunk that travels in values of a type.
template <class Codec, class Element>
class cast_in_rows : chunk_in_rows<Codec, Element> {
  using base = chunk_in_rows<Codec, Element>;
  using base::args;
  using base::entry;
  using base::set;
  using base::size;
  using typename base::array;
  using typename base::math;
  using wire_element = typename Codec::quantizer_type::element;

 public:
  cast_in_rows(instruction_set instructions,
               exchange_args<Codec, Element> const& arguments,
               std::uint64_t chunk)
    : base(instructions, arguments, chunk), wire_(reinterpret_cast<wire_element*>(args.payload))
  {
    if constexpr (selects<Codec>) {
      payload_place const place = find_place(args, chunk);
      stays_                    = place.level == 0;
      wire_                     = reinterpret_cast<wire_element*>(args.payload + place.word);
    } else {
      wire_ += entry.offset - args.records[entry.tensor].bypass;
    }
  }

  //! Gradient to payload; with feedback what is not sent to the residual.
  void encode() const
  {
    static_cast<void>(convert_values(set, this->gradient(), wire_, 1.0f, entry.length));
  }
  void encode() const requires selects<Codec>
  {
    if (stays_ && !feeds_back<Codec>) { return; }
    this->read([&](auto const* whole) {
      this->in_units(whole, [&](auto from) { send_from(from, whole); });
    });
  }

  //! Sets the flag if a sum is not finite, before scales that the library keeps follow it.
  void inspect() const
  {
    array values;
    if (!stays_ && !convert_values(set, wire_, values, 1.0f, std::size_t{size})) {
      raise_flag(args);
    }
  }

  //! Reduced payload to gradient.
  void decode() const
  {
    if (stays_ && !keeps_metric<Codec>) {
      fill_chunk(this->gradient(), entry.length, 0.0f);
      return;
    }
    float const share = 1.0f / static_cast<float>(args.world);
    this->leave_metric([&](auto whole) {
      if (stays_) {
        this->store_unsent(0.0f, whole);
      } else if (!receive(share, whole) && !keeps_metric<Codec>) {
        raise_flag(args);
      }
    });
  }

 private:
  //! The sums on the wire as means in the units in which they travel. Returns whether all are finite.
  //! @{
  [[nodiscard]] bool receive(float share, Element* to) const
  {
    return convert_values(set, wire_, to, share, entry.length);
  }
  template <class To>
  [[nodiscard]] bool receive(float share, To to) const
  {
    alignas(64) array values;
    bool const sound = convert_values(set, wire_, values, share, std::size_t{size});
    store_whole(set, values, to, size);
    return sound;
  }
  //! @}

  //! Sends what was read, which is `whole` in units of the gradient. Without feedback nothing is kept of it.
  //! @{
  template <class From, class Whole>
  void send_from(From from, Whole const*) const
  {
    static_cast<void>(convert_values(set, from, wire_, 1.0f, std::size_t{size}));
  }
  template <class From, class Whole>
  requires feeds_back<Codec>
  void send_from(From const* from, Whole const* whole) const
  {
    if (this->is_whole()) {
      send(this->gradient(), from, whole);
    } else {
      Element padded[extent(size)]{};
      std::copy_n(this->gradient(), entry.length, padded);
      send(+padded, from, whole);
    }
  }
  template <class From, class Scale, class Whole>
  requires feeds_back<Codec>
  void send_from(divided<From, Scale> from, Whole const* whole) const
  {
    alignas(64) array quotients;
    static_cast<void>(convert_values(set, from, +quotients, 1.0f, std::size_t{size}));
    send(+quotients, quotients, whole);
  }
  //! @}

  //! Sends values within what the sum of all ranks can hold, and keeps the rest: all of it where nothing is sent.
  //! @param measured  What says whether a value can be sent.
  //! @param whole     The values in units of the gradient.
  template <class Measured, class Value, class Whole>
  void send(Measured const* measured, Value const* values, Whole const* whole) const
  {
    if (!stays_) {
      convert_sendable(set, measured, values, args.parts.largest, wire_, std::size_t{size});
    }
    if (step_is_poisoned(args)) { return; }
    auto* const kept = this->kept();
    auto const at    = this->to_keep(kept);
    if constexpr (has_adds_lost<typename Codec::feedback_type> && !in_metric<Codec>) {
      wire_element const* const sent = stays_ ? nullptr : wire_;
      keep_finite_residual(set, measured, whole, sent, at, entry.length);
    } else {
      alignas(64) array own;
      // What is missing of a zero is a zero; in a metric it is a positive one.
      std::fill_n(own, size, in_metric<Codec> ? -0.0f : 0.0f);
      if (!stays_) { static_cast<void>(convert_values(set, wire_, own, 1.0f, entry.length)); }
      this->to_own_units(own);
      for (std::uint32_t i = 0; i < entry.length; ++i) {
        float const rest = this->after(whole[i], math::subtract(whole[i], own[i]), kept[i]);
        if (is_sendable<wire_element>(to_float(measured[i])) && is_kept<Codec>(rest)) {
          store_value(at + i, rest);
        }
      }
    }
  }

  wire_element* wire_;
  bool stays_ = false;
};

//! @brief A chunk that travels in codes which are summed.
template <class Codec, class Element>
class codes_in_rows : chunk_in_rows<Codec, Element> {
  using base = chunk_in_rows<Codec, Element>;
  using base::args;
  using base::number;
  using base::set;
  using base::size;
  using typename base::array;
  using typename base::kept_element;

 public:
  codes_in_rows(instruction_set instructions,
                exchange_args<Codec, Element> const& arguments,
                std::uint64_t chunk)
    : base(instructions, arguments, chunk), place_(find_place(arguments, chunk))
  {
  }

  //! Gradient to payload; with feedback what the codes lose to the residual.
  //! @param dither  Of this step.
  TERSUM_HOST_INLINE void encode(dither_key const& dither) const
  {
    if (stays()) { return; }
    this->read([&]<class From>(From const* from) {
      code(dither, from, chunk_source<From>{from, nullptr}, nullptr);
    });
  }
  TERSUM_HOST_INLINE void encode(dither_key const& dither) const requires feeds_back<Codec>
  {
    this->read([&](float const* from) {
      using source    = chunk_source<Element, kept_element>;
      auto* const to  = this->kept();
      auto const step = args.steps[number()];
      alignas(64) array own;
      float factor = -0.0f;
      if (stays()) {
        std::fill_n(own, size, 0.0f);
      } else {
        code(dither, from, source{this->gradient(), to}, +own);
        this->rotate_back(own);
        this->to_own_units(own);
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
      this->leave_metric([&](auto whole) {
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
    this->in_units(from, [&](auto values) {
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

  payload_place place_;
};

}  // namespace tersum::inline v0::detail
