// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Chunks on the CPU as the stages take them.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_residuals.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/metric/detail/scales.hpp>
#include <tersum/rotate/rotation_key.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief What stages do with chunks on `threads` threads with one instruction set: chunks of the gradient as arrays, in the units of
//! the metric, in the basis in which they are quantized.
template <class Codec, class Element>
class cpu_chunks {
 public:
  using args_type = exchange_args<Codec, Element>;

  cpu_chunks(int threads, instruction_set set, args_type const& args)
    : threads_(threads), set_(set), args_(args)
  {
  }

 protected:
  static constexpr int size = Codec::chunk_size;

  // A chunk's coordinates as an array of `size`: in place when it is whole and needs nothing added, else a copy.
  template <class Body>
  void with_chunk(std::uint64_t chunk, Body const& body) const;

  // The scales of a chunk, where they are kept.
  [[nodiscard]] auto* scales_of(std::uint64_t chunk) const
  {
    return args_.metric.scales + args_.table[chunk].offset;
  }

  // What scales are raised to.
  template <class Scale>
  [[nodiscard]] float least_scale_of(Scale const* scales, std::uint32_t length) const
  {
    return least_scale(host_group{}, args_.codec.metric, largest_of(set_, scales, length));
  }

  // A chunk as `with_chunk` gives it in the units of the metric.
  template <class From, class Body>
  void with_values(std::uint64_t chunk, From const* from, Body const& body) const
  {
    if constexpr (in_metric<Codec>) {
      chunk_entry const entry   = args_.table[chunk];
      using scale               = metric_scale<Codec>;
      scale const* const scales = scales_of(chunk);
      float const least         = least_scale_of(scales, entry.length);
      if (entry.length == static_cast<std::uint32_t>(size)) {
        body(divided<From, scale>{from, scales, least});
      } else {
        scale padded[extent(size)];
        std::fill(std::copy_n(scales, entry.length, padded), padded + size, scale{});
        body(divided<From, scale>{from, padded, least});
      }
    } else {
      body(from);
    }
  }

  // The same in one call.
  template <class Body>
  void with_values(std::uint64_t chunk, Body const& body) const
  {
    with_chunk(chunk, [&](auto const* from) { with_values(chunk, from, body); });
  }

  // Room for what was kept where it cannot be used in place.
  static constexpr int kept_room = weighs_kept<Codec> ? size : 1;

  // Where the rank keeps what a chunk lost.
  [[nodiscard]] residual_element<Codec>* kept_place(std::uint64_t chunk) const
  {
    return args_.residual + args_.table[chunk].offset;
  }

  // What was kept with the weight of this step: itself, or in `now`.
  template <std::size_t Size>
  [[nodiscard]] auto with_weight(residual_element<Codec> const* kept,
                                 int length,
                                 float (&now)[Size]) const
  {
    if constexpr (weighs_kept<Codec>) {
      auto const count = static_cast<std::size_t>(length);
      static_cast<void>(convert_values(set_, kept, now, weight_of_kept(args_), count));
      return static_cast<float const*>(now);
    } else {
      static_cast<void>(length);
      static_cast<void>(now);
      return kept;
    }
  }

  // All values of a chunk that has not travelled: zeros, or NaN.
  template <class To>
  void store_unsent(float value, To to) const
  {
    if constexpr (std::is_same_v<To, Element*>) {
      fill_chunk(to, static_cast<std::uint32_t>(size), value);
    } else {
      float values[extent(size)];
      std::fill_n(values, size, value);
      store_whole(set_, values, to, size);
    }
  }

  // A chunk as `with_chunk` gives it in the basis in which it is quantized; unchanged where vectors rotate as they encode.
  template <class From, class Body>
  void with_rotated(std::uint64_t chunk, From from, Body const& body) const
  {
    if constexpr (Codec::rotates_in_memory) {
      alignas(64) float x[extent(size)];
      float scratch[extent(size)];
      for (int i = 0; i < size; ++i) { x[i] = to_float(from[i]); }
      args_.codec.rotator.forward(
        host_group{}, x, scratch, rotation_key{args_.header->sign_key, chunk});
      body(static_cast<float const*>(x));
    } else {
      body(from);
    }
  }

  // Undoes it where `with_rotated` did anything.
  void rotate_back(std::uint64_t chunk, float (&x)[extent(size)]) const
  {
    if constexpr (Codec::rotates_in_memory) {
      float scratch[extent(size)];
      args_.codec.rotator.backward(
        host_group{}, x, scratch, rotation_key{args_.header->sign_key, chunk});
    }
  }

  int threads_;
  instruction_set set_;
  args_type const& args_;
};

template <class Codec, class Element>
template <class Body>
void cpu_chunks<Codec, Element>::with_chunk(std::uint64_t chunk, Body const& body) const
{
  if constexpr (Codec::rotates_all) {
    body(static_cast<float const*>(args_.rotated + chunk * size));
  } else {
    chunk_entry const entry    = args_.table[chunk];
    Element const* const whole = args_.gradient + entry.offset;
    int const length           = static_cast<int>(entry.length);
    if constexpr (!feeds_back<Codec>) {
      if (length == size) {
        body(whole);
        return;
      }
    }
    alignas(64) float copy[extent(size)];
    if constexpr (feeds_back<Codec>) {
      alignas(64) float now[extent(kept_room)];
      auto const* const kept = with_weight(kept_place(chunk), length, now);
      if constexpr (has_adds_lost<typename Codec::feedback_type>) {
        add_residual(set_, whole, kept, copy, entry.length);
      } else {
        for (int i = 0; i < length; ++i) {
          copy[i] =
            args_.codec.feedback.before(host_group{}, to_float(whole[i]), to_float(kept[i]));
        }
      }
    } else {
      for (int i = 0; i < length; ++i) { copy[i] = to_float(whole[i]); }
    }
    std::fill(copy + length, copy + size, 0.0f);
    body(static_cast<float const*>(copy));
  }
}

//! @brief The sum of 1024 doubles, halving from the top.
[[nodiscard]] inline double halving_total(double (&sums)[1024])
{
  for (int half_of = 512; half_of > 0; half_of /= 2) {
    for (int i = 0; i < half_of; ++i) { sums[i] = sums[i] + sums[i + half_of]; }
  }
  return sums[0];
}

//! @brief The sum over a tensor's chunks in the order that the tensor kernels have: of each subtree, then of the subtrees.
template <class Term>
[[nodiscard]] double tensor_sum(tensor_record const& record, Term const& term)
{
  std::uint64_t const subtrees = subtrees_of(record.chunks);
  double of_subtrees[1024]     = {};
  for (std::uint64_t k = 0; k < subtrees; ++k) {
    std::uint64_t const begin = k * subtree_chunks;
    std::uint64_t const end   = k + 1 < subtrees ? begin + subtree_chunks : record.chunks;
    double sums[1024]         = {};
    for (std::uint64_t i = begin; i < end; ++i) {
      double& sum = sums[(i - begin) % 1024];
      sum         = term(sum, record.first_chunk + i);
    }
    double const total = halving_total(sums);
    if (subtrees == 1) { return total; }
    of_subtrees[k % 1024] = of_subtrees[k % 1024] + total;
  }
  return halving_total(of_subtrees);
}

}  // namespace tersum::inline v0::detail
