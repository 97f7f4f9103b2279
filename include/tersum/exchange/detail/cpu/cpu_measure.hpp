// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What ranks agree on of their gradients, measured on the CPU.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/cpu/chunk_in_rows.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/instruction_set.hpp>

#include <cstdint>
#include <type_traits>

namespace tersum::inline v0::detail {

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
      most = bits_float(largest_magnitude<Codec>(set, args.header->sign_key, number(), rotated));
    });
    if constexpr (Codec::rotates_chunks || Codec::rotates_in_memory || Codec::rotates_all) {
      most = most / rotation_root<Codec>(chunks());
    }
    return most;
  }

  //! What the range's plain form measures.
  template <class From>
  [[nodiscard]] float measured_plainly(From from) const
  {
    alignas(64) array x;
    array scratch;
    load_whole(set, from, x, size);
    if constexpr (Codec::range_type::measures_rotated && !Codec::rotates_all) {
      args.codec.rotator.forward(math{}, x, scratch, this->key());
      float const root = rotation_root<Codec>(1);
      for (float& value : x) { value = value / root; }
    }
    return args.codec.coder.range.measure(math{}, x, scratch);
  }
};

//! @brief Gradient to agreed scalars.
template <class Codec, class Element>
void measure_chunks(int threads, instruction_set set, exchange_args<Codec, Element> const& args)
{
  using scalar         = typename Codec::norm_scalar;
  scalar* const agreed = static_cast<scalar*>(args.agreed);
  parallel_for(threads, args.chunks, [&](std::uint64_t chunk) {
    measured_in_rows<Codec, Element>{set, args, chunk}.measure();
  });
  if constexpr (adds_norms<Codec>) {
    scalar* const of_tensors = agreed + (per_tensor<Codec> ? 0 : args.chunks);
    parallel_for(threads, args.tensors, [&](std::uint64_t tensor) {
      double const sum = tensor_sum(args.records[tensor], [&](double so_far, std::uint64_t chunk) {
        return so_far + static_cast<double>(args.steps[chunk].encode);
      });
      of_tensors[tensor] = to_agreed<scalar>(static_cast<float>(sum), true);
    });
  }
  if constexpr (tells_ratios<Codec>) {
    for (std::uint64_t tensor = 0; tensor < args.tensors; ++tensor) { tell_ratio(args, tensor); }
  }
}

}  // namespace tersum::inline v0::detail
