// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunk that travels in values of a type, in the hand of a thread of the CPU.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/codec.hpp>
#include <tersum/exchange/detail/cpu/chunk_in_metric.hpp>
#include <tersum/exchange/detail/cpu/chunk_in_rows.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/feedback/detail/kept_value.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief A chunk that travels in values of a type.
template <class Codec, class Element>
struct cast_in_rows : chunk_in_rows<Codec, Element> {
  using base = chunk_in_rows<Codec, Element>;
  using base::args;
  using base::entry;
  using base::set;
  using base::size;
  using typename base::array;
  using typename base::math;
  using wire_element = typename Codec::quantizer_type::element;

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
    if constexpr (adds_lost && !weighs_kept<Codec>) {
      if (stays_) { return keep_rest(this->gradient(), nullptr); }
    }
    this->read([&](auto const* whole) {
      in_units(*this, whole, [&](auto from) { send_from(from, whole); });
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
    leave_metric(*this, [&](auto whole) {
      if (stays_) {
        this->store_unsent(0.0f, whole);
      } else if (!receive(share, whole) && !keeps_metric<Codec>) {
        raise_flag(args);
      }
    });
  }

 private:
  static constexpr bool adds_lost =
    has_adds_lost<typename Codec::feedback_type> && !in_metric<Codec>;

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
    if (adds_lost) { return keep_rest(measured, whole); }
    if (step_is_poisoned(args)) { return; }
    auto* const kept = this->kept();
    auto const at    = this->to_keep(kept);
    alignas(64) array own;
    // What is missing of a zero is a zero; in a metric it is a positive one.
    std::fill_n(own, size, in_metric<Codec> ? -0.0f : 0.0f);
    if (!stays_) { static_cast<void>(convert_values(set, wire_, own, 1.0f, entry.length)); }
    to_own_units(*this, own);
    for (std::uint32_t i = 0; i < entry.length; ++i) {
      float const rest = this->after(whole[i], math::subtract(whole[i], own[i]), kept[i]);
      if (is_sendable<wire_element>(to_float(measured[i])) && is_kept<Codec>(rest)) {
        store_value(at + i, rest);
      }
    }
  }

  //! Keeps what was not sent of the chunk. Where `whole` is null it is the sum of what was given and what was kept.
  template <class Measured>
  void keep_rest(Measured const* measured, float const* whole) const
  {
    if (step_is_poisoned(args)) { return; }
    wire_element const* const sent = stays_ ? nullptr : wire_;
    keep_finite_residual(set, measured, whole, sent, this->to_keep(this->kept()), entry.length);
  }

  wire_element* wire_;
  bool stays_ = false;
};

}  // namespace tersum::inline v0::detail
