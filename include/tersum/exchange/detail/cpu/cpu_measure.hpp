// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What ranks agree on of their gradients, measured on the CPU.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/cpu_chunks.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/rotate/rotation_key.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief The measurement of chunks and tensors: gradient to agreed scalars.
template <class Codec, class Element>
class cpu_measure : cpu_chunks<Codec, Element> {
 public:
  using cpu_chunks<Codec, Element>::cpu_chunks;

  void measure() const
  {
    if constexpr (!has_steps<Codec>) {
      measure_norms();
    } else {
      measure_ranges();
    }
  }

 private:
  using base = cpu_chunks<Codec, Element>;
  using base::args_;
  using base::set_;
  using base::size;
  using base::threads_;

  // Coordinates in a chunk's full rotation, a power of two: what its unnormalized energy is divided by.
  [[nodiscard]] float rotated_length(std::uint64_t chunk) const
  {
    return static_cast<float>(args_.records[args_.table[chunk].tensor].chunks * size);
  }

  // What the range's plain form measures.
  template <class From>
  [[nodiscard]] float measure_plainly(std::uint64_t chunk, From from) const;

  void measure_norms() const;
  void measure_ranges() const;
  void tensor_norms() const;
};

template <class Codec, class Element>
void cpu_measure<Codec, Element>::measure_norms() const
{
  using scalar         = typename Codec::norm_scalar;
  scalar* const agreed = static_cast<scalar*>(args_.agreed);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    this->with_values(chunk, [&](auto from) {
      float const norm = inspected(args_, square_norm<size>(set_, from));
      agreed[chunk]    = to_agreed_norm<scalar>(norm, args_.world);
    });
  });
  // Two norms share an element. With an odd number of chunks the last half is left, and gets a zero.
  if (std::is_same_v<scalar, norm_log> && args_.chunks % 2 != 0) { agreed[args_.chunks] = {}; }
}

template <class Codec, class Element>
void cpu_measure<Codec, Element>::measure_ranges() const
{
  using range          = typename Codec::range_type;
  using scalar         = typename range::scalar;
  constexpr bool norms = norms_travel<Codec> || per_tensor<Codec> || tracks<Codec>;
  scalar* const agreed = static_cast<scalar*>(args_.agreed);
  parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
    this->with_values(chunk, [&](auto from) {
      if constexpr (!has_measurement<range>) {
        agreed[chunk] = to_agreed<range>(inspected(args_, measure_plainly(chunk, from)));
      } else if constexpr (measures<range, statistic::chunk_magnitude>) {
        float magnitude = 0;
        this->with_rotated(chunk, from, [&](auto rotated) {
          magnitude =
            bits_float(largest_magnitude<Codec>(set_, args_.header->sign_key, chunk, rotated));
        });
        if constexpr (Codec::rotates_chunks || Codec::rotates_in_memory || Codec::rotates_all) {
          magnitude =
            magnitude / rotation_root<Codec>(args_.records[args_.table[chunk].tensor].chunks);
        }
        agreed[chunk] = to_agreed<scalar>(inspected(args_, magnitude), true);
      }
      if constexpr (norms) {
        float norm = inspected(args_, square_norm<size>(set_, from));
        if constexpr (Codec::rotates_all) { norm = norm / rotated_length(chunk); }
        if constexpr (norms_travel<Codec>) {
          agreed[chunk] = to_agreed<scalar>(norm, false);
        } else {
          args_.steps[chunk].encode = norm;
        }
      }
    });
  });
  if constexpr (norms && !norms_travel<Codec>) { tensor_norms(); }
}

template <class Codec, class Element>
template <class From>
float cpu_measure<Codec, Element>::measure_plainly(std::uint64_t chunk, From from) const
{
  alignas(64) float x[extent(size)];
  float scratch[extent(size)];
  load_whole(set_, from, x, size);
  if constexpr (Codec::range_type::measures_rotated && !Codec::rotates_all) {
    args_.codec.rotator.forward(
      host_group{}, x, scratch, rotation_key{args_.header->sign_key, chunk});
    float const root = rotation_root<Codec>(1);
    for (float& value : x) { value = value / root; }
  }
  return args_.codec.coder.range.measure(host_group{}, x, scratch);
}

template <class Codec, class Element>
void cpu_measure<Codec, Element>::tensor_norms() const
{
  using scalar = typename Codec::range_type::scalar;
  scalar* const agreed =
    static_cast<scalar*>(args_.agreed) + (per_tensor<Codec> ? 0 : args_.chunks);
  parallel_for(threads_, args_.tensors, [&](std::uint64_t tensor) {
    double const sum = tensor_sum(args_.records[tensor], [&](double so_far, std::uint64_t chunk) {
      return so_far + static_cast<double>(args_.steps[chunk].encode);
    });
    agreed[tensor]   = to_agreed<scalar>(static_cast<float>(sum), true);
  });
}

}  // namespace tersum::inline v0::detail
