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
#include <tersum/random/philox.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

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
      read_copy([](auto const& value) { return value; }, body, from);
    }
  }
  template <class Body>
  requires codes_differences<Codec>
  void read(Element const* from, kept_element const*, Body const& body) const
  {
    read_copy([](auto const& value, auto const& held) { return value - held; },
              body,
              from,
              args.parts.held + (from - args.gradient));
  }
  template <class Body>
  requires feeds_back<Codec>
  void read(Element const* from, kept_element const* before, Body const& body) const
  {
    read_copy(
      [fed = fed_back()](auto const& value, auto const& kept) { return fed.before(value, kept); },
      body,
      from,
      before);
  }

  //! What feedback says in this step, as functions of values.
  struct feedback_of_values {
    typename Codec::feedback_type feedback;
    float weight;

    template <class Value>
    [[nodiscard]] Value weighed(Value const& kept) const
    {
      return detail::weighed<Codec>(math{}, weight, kept);
    }
    template <class Value>
    [[nodiscard]] Value before(Value const& value, Value const& kept) const
    {
      if constexpr (requires { feedback.before(math{}, value, kept); }) {
        return feedback.before(math{}, value, weighed(kept));
      } else {
        return by_lanes([*this](float of, float by) { return feedback.before(math{}, of, by); },
                        value,
                        weighed(kept));
      }
    }
    template <class Value>
    [[nodiscard]] Value after(Value const& value, Value const& lost, Value const& kept) const
    {
      if constexpr (requires { feedback.after(math{}, value, lost, kept); }) {
        return feedback.after(math{}, value, lost, weighed(kept));
      } else {
        return by_lanes(
          [*this](float of, float by, float old) { return feedback.after(math{}, of, by, old); },
          value,
          lost,
          weighed(kept));
      }
    }
  };
  [[nodiscard]] feedback_of_values fed_back() const
  {
    return {args.codec.feedback, weight_of_kept(args)};
  }

  //! Where feedback keeps what this rank, or the owner of a part, lost of the chunk.
  [[nodiscard]] kept_at<kept_element> keeping(kept_element* to, std::uint32_t rank) const
  {
    return {to, draw_of_kept(args, number(), rank)};
  }

  //! Writes what feedback keeps of the chunk.
  //! @param lost    What is missing of a value, a function of values of it and of the others.
  //! @param values  What was to be sent.
  template <class Lost, class... Others>
  void keep(kept_element* to, Lost const& lost, float const* values, Others const*... others) const
  {
    map_values(
      set,
      [fed = fed_back(), lost](auto const& value, auto const& kept, auto const&... of) {
        return fed.after(value, lost(value, of...), kept);
      },
      keeping(to, args.rank),
      entry.length,
      values,
      static_cast<kept_element const*>(to),
      others...);
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
    scale_back(values, scales(), least(), values, entry.length);
    std::fill(values + entry.length, values + size, 0.0f);
  }

  //! Decodes to memory, in the units of the gradient again, where `decode_to(at)` writes all values in those of the metric, to floats, by
  //! `multiplied`, or, without a metric, to elements. Scales that the library keeps follow the values.
  template <class To, class Decode>
  void leave_metric(To* to, Decode const& decode_to) const
  {
    leave_metric(0, entry.length, to, decode_to);
  }
  template <class To, class Decode>
  requires keeps_metric<Codec>
  void leave_metric(To* to, Decode const& decode_to) const
  {
    auto const& metric  = args.codec.metric;
    float const largest = largest_of(set, scales(), length());
    float const lowest  = least_scale(math{}, metric, largest);
    bool const keeps    = !step_is_poisoned(args);
    if constexpr (has_steps_averaged<typename Codec::metric_type>) {
      using whole       = multiplied<To, metric_scale<Codec>, true>;
      float const steps = metric.steps_averaged(static_cast<float>(args.header->step));
      bool const usual  = steps >= 1.0f && steps < 0x1p60f;
      if (is_whole() && keeps && usual && !is_unknown_scale(largest)) {
        std::uint32_t const draw = first_draw(number(), args.header->sign_key);
        decode_to(whole{to, scales(), lowest, steps, 1.0f / steps, draw});
        return;
      }
    }
    alignas(64) array values;
    decode_to(+values);
    scale_back(values, scales(), lowest, to, entry.length);
    if (keeps) { keep_scales(values, largest, lowest); }
  }

  //! The same of `count` values from coordinate `first` of the chunk on. No scales follow.
  template <class To, class Decode>
  void leave_metric(std::uint64_t first, std::uint64_t count, To* to, Decode const& decode_to) const
  {
    if (count == std::uint64_t{size}) {
      decode_to(to);
    } else {
      To copy[extent(size)];
      decode_to(+copy);
      std::copy_n(copy + first, count, to);
    }
  }
  template <class To, class Decode>
  requires in_metric<Codec>
  void leave_metric(std::uint64_t first, std::uint64_t count, To* to, Decode const& decode_to) const
  {
    if (count == std::uint64_t{size}) {
      decode_to(multiplied<To, metric_scale<Codec>, false>{to, scales(), least(), 1.0f, 1.0f, 0});
    } else {
      alignas(64) array decoded;
      decode_to(+decoded);
      scale_back(decoded + first, scales() + first, least(), to, count);
    }
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
  //! Calls body with an array of what a function of values gives for each coordinate.
  template <class Function, class Body, class... From>
  void read_copy(Function const& function, Body const& body, From const*... from) const
  {
    alignas(64) array copy;
    map_values<true>(set, function, +copy, entry.length, from...);
    std::fill(copy + length(), copy + size, 0.0f);
    body(static_cast<float const*>(copy));
  }

  //! to[i] = values[i] * scale, rounded as a mean is.
  template <class Scale, class To>
  void scale_back(
    float const* values, Scale const* scales, float lowest, To* to, std::uint64_t count) const
  {
    map_values<true>(
      set,
      [lowest](auto const& value, auto const& scale) {
        return within_range<To>(value * raised_scale(scale, lowest));
      },
      to,
      count,
      values,
      scales);
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
