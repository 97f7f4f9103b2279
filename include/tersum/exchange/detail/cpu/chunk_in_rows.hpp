// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A chunk in the hand of a thread of the CPU.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/plan.hpp>
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

  //! Values that `read` gave in the units of the metric.
  template <class From, class Body>
  void in_units(From const* from, Body const& body) const
  {
    body(from);
  }
  template <class From, class Body>
  requires in_metric<Codec>
  void in_units(From const* from, Body const& body) const
  {
    using scale = metric_scale<Codec>;
    if (is_whole()) {
      body(divided<From, scale>{from, scales(), least()});
    } else {
      scale padded[extent(size)];
      std::fill(std::copy_n(scales(), entry.length, padded), padded + size, scale{});
      body(divided<From, scale>{from, padded, least()});
    }
  }

  //! The chunk in the units of the metric.
  template <class Body>
  void read_in_units(Body const& body) const
  {
    read([&](auto const* from) { in_units(from, body); });
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

  //! Values in the units of the metric in those of the gradient. In a metric the rest of the array becomes zeros.
  void to_own_units(float*) const {}
  void to_own_units(float* values) const requires in_metric<Codec>
  {
    multiply_by_scales(set, values, scales(), least(), values, entry.length);
    std::fill(values + entry.length, values + size, 0.0f);
  }

  //! Decodes to the gradient, in its units again, where `decode_to(to)` writes all values in those of the metric, to floats, by
  //! `multiplied`, or, without a metric, to elements. Scales that the library keeps follow the values.
  template <class Decode>
  void leave_metric(Decode const& decode_to) const
  {
    leave_metric(0, entry.length, gradient(), decode_to);
  }
  template <class Decode>
  requires in_metric<Codec>
  void leave_metric(Decode const& decode_to) const
  {
    using whole = multiplied<Element, metric_scale<Codec>, false>;
    decode_by(whole{gradient(), scales(), least(), 1.0f, 1.0f, 0}, decode_to);
  }
  template <class Decode>
  requires keeps_metric<Codec>
  void leave_metric(Decode const& decode_to) const
  {
    auto const& metric  = args.codec.metric;
    float const largest = largest_of(set, scales(), length());
    float const lowest  = least_scale(math{}, metric, largest);
    bool const keeps    = !step_is_poisoned(args);
    if constexpr (has_steps_averaged<typename Codec::metric_type>) {
      using whole       = multiplied<Element, metric_scale<Codec>, true>;
      float const steps = metric.steps_averaged(static_cast<float>(args.header->step));
      bool const usual  = steps >= 1.0f && steps < 0x1p60f;
      if (keeps && usual && !is_unknown_scale(largest)) {
        std::uint32_t const draw = first_draw(number(), args.header->sign_key);
        decode_by(whole{gradient(), scales(), lowest, steps, 1.0f / steps, draw}, decode_to);
        return;
      }
    }
    alignas(64) array values;
    decode_to(+values);
    multiply_by_scales(set, values, scales(), lowest, gradient(), entry.length);
    if (keeps) { keep_scales(values, largest, lowest); }
  }

  //! The same of `count` values from coordinate `first` of the chunk on, to memory of their own. No scales follow.
  template <class Decode>
  void leave_metric(std::uint64_t first,
                    std::uint64_t count,
                    Element* to,
                    Decode const& decode_to) const
  {
    if (count == std::uint64_t{size}) {
      decode_to(to);
    } else {
      Element copy[extent(size)];
      decode_to(+copy);
      std::copy_n(copy + first, count, to);
    }
  }
  template <class Decode>
  requires in_metric<Codec>
  void leave_metric(std::uint64_t first,
                    std::uint64_t count,
                    Element* to,
                    Decode const& decode_to) const
  {
    alignas(64) array decoded;
    decode_to(+decoded);
    multiply_by_scales(set, decoded + first, scales() + first, least(), to, count);
  }

  //! Decoded values in the units of the gradient, in place. Scales that the library keeps follow them.
  void leave_metric_in_place(array& values) const { to_own_units(values); }
  void leave_metric_in_place(array& values) const requires keeps_metric<Codec>
  {
    alignas(64) array decoded;
    std::copy_n(values, size, decoded);
    float const largest = largest_of(set, scales(), length());
    float const lowest  = least_scale(math{}, args.codec.metric, largest);
    to_own_units(values);
    if (!step_is_poisoned(args)) { keep_scales(decoded, largest, lowest); }
  }

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

  //! The scales of the chunk, where they are kept.
  [[nodiscard]] auto* scales() const { return args.metric.scales + entry.offset; }

  //! What scales are raised to.
  [[nodiscard]] float least() const
  {
    return least_scale(math{}, args.codec.metric, largest_of(set, scales(), length()));
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

  //! What the kernels do, of which those of chunks that are not whole get copies.
  template <bool Keeps, class Scale, class Decode>
  void decode_by(multiplied<Element, Scale, Keeps> whole, Decode const& decode_to) const
  {
    if (is_whole()) {
      decode_to(whole);
      return;
    }
    Element copy[extent(size)];
    Scale padded[extent(size)];
    std::fill(std::copy_n(scales(), entry.length, padded), padded + size, Scale{});
    whole.to     = copy;
    whole.scales = padded;
    decode_to(whole);
    std::copy_n(copy, entry.length, gradient());
    if (Keeps) { std::copy_n(padded, entry.length, scales()); }
  }

  //! The scales after a chunk was decoded, by the metric's plain form. Overwrites the values.
  void keep_scales(array& values, float largest, float lowest) const
  {
    using scale        = metric_scale<Codec>;
    auto* const to     = scales();
    float const before = static_cast<float>(args.header->step);
    bool const unknown = is_unknown_scale(largest);
    float first        = 0.0f;
    if (unknown) {
      std::fill(values + entry.length, values + size, 0.0f);
      float const decoded = square_norm<size>(set, +values);
      first = first_scale(math{}, first_square(math{}, args, number(), decoded), entry.length);
    }
    std::uint32_t const draw = first_draw(number(), args.header->sign_key);
    for (std::uint32_t i = 0; i < entry.length; ++i) {
      float const kept = to_float(to[i]);
      float next       = first;
      if (!unknown) {
        next = args.codec.metric.update(math{}, values[i], raised_scale(kept, lowest), before);
      }
      to[i] = from_float<scale>(kept_scale<scale>(next, kept, draw + i * draw_stride));
    }
  }

  std::uint64_t number_;
};

}  // namespace tersum::inline v0::detail
