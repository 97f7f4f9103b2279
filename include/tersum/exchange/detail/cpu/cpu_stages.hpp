// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of an exchange on the CPU. Each does what the kernel bodies of the same name do, to the same bits.

#pragma once

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/chunk/detail/chunk_selection.hpp>
#include <tersum/exchange/detail/block_initialize.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/steps.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/random/sign_bits.hpp>
#include <tersum/rotate/rotation_key.hpp>
#include <tersum/tuning.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tersum::inline v0::detail {

//! @brief The stages on `threads` threads with one instruction set.
template <class Codec, class Element>
class cpu_stages {
 public:
  using args_type = exchange_args<Codec, Element>;

  cpu_stages(int threads, instruction_set set, args_type const& args)
    : threads_(threads), set_(set), args_(args)
  {
  }

  //! Fills header, records and table, clears the residual.
  void initialize(plan<Codec> const& plan, std::uint64_t seed) const;

  //! Gradient to agreed scalars.
  void measure() const;

  //! Which chunks travel, from the agreed norms or at random; clears what the payload leaves free.
  void select(cpu_tuning const& numbers) const;

  //! Agreed scalars to steps; of casts, only to the flag of what is not finite.
  void derive_steps(cpu_tuning const& numbers) const;

  //! Gradient to payload: codes, or converted values.
  void encode() const;

  //! Reduced payload to gradient.
  void decode() const;

  //! Bypassing tensors to the wire and back.
  void encode_bypass() const;
  void decode_bypass() const;

  //! Counts, measures the correlation, advances the step.
  void finish() const;

 protected:
  static constexpr int size = Codec::chunk_size;

  // A chunk's coordinates as an array of `size`: in place when it is whole and needs nothing added, else a copy.
  template <class Body>
  void with_chunk(std::uint64_t chunk, Body const& body) const;

  // A chunk as `with_chunk` gives it in the basis in which it is quantized; unchanged where vectors rotate as they encode.
  template <class From, class Body>
  void with_rotated(std::uint64_t chunk, From const* from, Body const& body) const
  {
    if constexpr (Codec::rotates_in_memory) {
      alignas(64) float x[size];
      float scratch[size];
      for (int i = 0; i < size; ++i) { x[i] = to_float(from[i]); }
      args_.codec.rotator.forward(
        host_group{}, x, scratch, rotation_key{args_.header->sign_key, chunk});
      body(static_cast<float const*>(x));
    } else {
      body(from);
    }
  }

  // Undoes it where `with_rotated` did anything.
  void rotate_back(std::uint64_t chunk, float (&x)[size]) const
  {
    if constexpr (Codec::rotates_in_memory) {
      float scratch[size];
      args_.codec.rotator.backward(
        host_group{}, x, scratch, rotation_key{args_.header->sign_key, chunk});
    }
  }

  int threads_;
  instruction_set set_;
  args_type const& args_;

 private:
  // The sum over a tensor's chunks in the order that the tensor kernels have.
  template <class Term>
  [[nodiscard]] static double tensor_sum(tensor_record const& record, Term const& term);

  // Coordinates in a chunk's full rotation, a power of two: what its unnormalized energy is divided by.
  [[nodiscard]] float rotated_length(std::uint64_t chunk) const;

  void encode_codes() const;
  void decode_codes() const;
  void encode_cast() const;
  void decode_cast() const;

  // What the range's plain form measures.
  template <class From>
  [[nodiscard]] float measure_plainly(std::uint64_t chunk, From const* from) const;

  void measure_norms() const;
  void measure_ranges() const;
  void tensor_norms() const;

  // What a chunk of a cast leaves for the next step: all of it where nothing was sent.
  template <class WireElement>
  void keep_residual(std::uint64_t chunk, float const* whole, WireElement const* sent) const;
};

}  // namespace tersum::inline v0::detail

#include <tersum/exchange/detail/cpu/cpu_stages.ipp>
