// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The rotation of every chunk of an array, and the way back.

#pragma once

#include <tersum/block/block_values.hpp>
#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/block/group.hpp>
#include <tersum/concepts.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/device/detail/perform.hpp>
#include <tersum/exchange/gradient_memory.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/rotate/block_hadamard.hpp>
#include <tersum/rotate/detail/rotation_of.hpp>
#include <tersum/status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! Rotators that rotate chunks: neither `no_rotation` nor those of whole tensors.
template <class T>
concept chunk_rotator = rotator<T> &&(T::rotation_size > 1);

//! @brief Coordinates of the rotated array: those of `coordinates` values in whole chunks.
template <chunk_rotator Rotator>
[[nodiscard]] constexpr std::size_t rotated_size(Rotator const&, std::size_t coordinates) noexcept
{
  return detail::divide_up(coordinates, Rotator::rotation_size) * Rotator::rotation_size;
}

namespace detail {

//! @brief How arrays are rotated: by the rotator's packed form, or by its plain form on memory.
template <class Rotator>
struct array_rotation {
  static constexpr int size = Rotator::rotation_size;
  using chunk               = block_chunk<size>;
  using array               = block_values<size, true>;
  using order               = block_hadamard<size, false>;
  using type                = typename rotation_of<Rotator, size>::type;

  static constexpr bool in_registers = transforms_registers<type>;
  static constexpr int threads       = chunk::block_threads;
  static constexpr int shared        = type::storage_floats * chunk::block_tiles * 4;
  //! What `rotate_back` multiplies by.
  static constexpr float unit = 1.0f / static_cast<float>(square_gain<Rotator>);
};

template <class Rotator, class Element>
struct rotate_kernel : array_rotation<Rotator> {
  using rotation = array_rotation<Rotator>;

  Rotator rotator;
  Element const* values;
  std::uint64_t count;
  float* rotated;
  std::uint64_t key;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    using order       = typename rotation::order;
    auto mine         = rotation::chunk::of(ctx, count);
    float* const tile = tile_storage<typename rotation::type>(ctx);
    float v[32];
    rotation::array::load(ctx, mine, values, v);
    if (striped<Element>) { rearrange<false>(ctx, mine, tile, v); }
    if constexpr (rotation::in_registers) {
      using hadamard = typename rotation::type;
      hadamard::apply_signs(ctx, mine, key, v);
      hadamard::to_wire(ctx, v, tile, mine.thread, mine.first);
      order::synchronize(ctx);
      order::template to_loaded<0, 0, true>(ctx, v, tile, mine.thread, mine.first);
    } else {
      rotation::type::template rotate<true>(ctx, rotator, mine, key, tile, v);
      rearrange<true>(ctx, mine, tile, v);
    }
    mine.length = mine.exists() ? rotation::size : 0;
    rotation::array::store(ctx, mine, v, rotated);
  }
};

template <class Rotator, class Element>
struct rotate_back_kernel : array_rotation<Rotator> {
  using rotation = array_rotation<Rotator>;

  Rotator rotator;
  float const* rotated;
  Element* values;
  std::uint64_t count;
  std::uint64_t key;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    using order       = typename rotation::order;
    auto const mine   = rotation::chunk::of(ctx, count);
    auto whole        = mine;
    whole.length      = mine.exists() ? rotation::size : 0;
    float* const tile = tile_storage<typename rotation::type>(ctx);
    float v[32];
    rotation::array::load(ctx, whole, rotated, v);
    if constexpr (rotation::in_registers) {
      using hadamard = typename rotation::type;
      order::template to_wire<true>(ctx, v, tile, mine.thread, mine.first);
      order::synchronize(ctx);
      hadamard::to_loaded(ctx, v, tile, mine.thread, mine.first);
      hadamard::apply_signs(ctx, mine, key, v);
    } else {
      rearrange<false>(ctx, mine, tile, v);
      rotation::type::template rotate<false>(ctx, rotator, mine, key, tile, v);
    }
    if (striped<Element>) { rearrange<true>(ctx, mine, tile, v); }
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) { v[i] = Context::multiply(v[i], rotation::unit); }
    rotation::array::store(ctx, mine, v, values);
  }
};

//! Whether arrays can be rotated, in either direction; if not, the sentence names the argument.
template <class Rotator, class Element, class Rotated>
[[nodiscard]] status check_rotation(Rotator const& rotator,
                                    std::span<Element> values,
                                    std::span<Rotated> rotated)
{
  bool const in_place = begin_alike(values, rotated) && values.size_bytes() == rotated.size_bytes();
  return argument_check{}
    .require(rotated.size() == tersum::rotated_size(rotator, values.size()),
             "rotated has not rotated_size(rotator, values.size()) elements")
    .chunks(rotated.size() / Rotator::rotation_size)
    .address(values, alignof(Element), "values is a null pointer, or not aligned to its elements")
    .address(rotated, 16, "rotated is a null pointer, or not aligned to 16 bytes")
    .require(in_place || are_disjoint(values, rotated), "rotated overlaps values")
    .result();
}

}  // namespace detail

//! @brief rotated = each chunk of `values` after `rotator.forward`.
//!
//! `partial_hadamard` flips random signs and multiplies by the matrix of +-1. It does not scale: values grow by the square root
//! of the chunk, which `make_chunk_step` allows for. *Reads* `values`, *writes* `rotated`,
//! both of the executor's memory, both in the order of the coordinates; the last chunk is padded with zeros. `rotated` may be
//! `values` where that is an array of floats of whole chunks; otherwise they must not overlap. `values` needs the alignment
//! of its elements; one that is aligned to 16 bytes is faster. *Needs* no workspace. *Errors*: rotated.size() is not
//! rotated_size(rotator, values.size()), 2^31 chunks or more, a null address, `rotated` not aligned to 16 bytes, an overlap.
//!
//! Every executor makes the same bits, and they are those that an exchange quantizes. A rotator with only the plain form is
//! called on memory, by a host thread or by the threads of a block; chunks of up to 16384 then fit a GPU. If a value is not
//! finite, no value of its chunk is afterwards. Enqueued on the executor; does not synchronize.
//! @param rotator  `partial_hadamard<C>`, or one of your own of 128 to 32768 coordinates.
//! @param key      `sign_key(step, seed)`: the same on every rank, fresh in every step.
//!
//! @par Example
//! @snippet examples/05_rotate_and_quantize.cpp encode
template <executor Executor, chunk_rotator Rotator, gradient_values Values>
[[nodiscard]] status rotate(Executor const& exec,
                            Rotator const& rotator,
                            Values const& values,
                            std::span<float> rotated,
                            std::uint64_t key)
{
  constexpr int size = Rotator::rotation_size;
  auto const all     = detail::span_of(values);
  using element      = typename decltype(all)::value_type;
  if (status const s = detail::check_rotation(rotator, all, rotated); !s.ok()) { return s; }
  return detail::perform(
    exec,
    [&](int threads, auto set) {
      detail::parallel_for(threads, rotated.size() / size, [&](std::uint64_t chunk) {
        alignas(64) float x[detail::extent(size)];
        float* const to = rotated.data() + chunk * size;
        detail::with_whole_chunk<size>(all, chunk, [&](auto const* from) {
          if constexpr (detail::array_rotation<Rotator>::in_registers) {
            detail::rotate_to_rows<size>(set, key, chunk, from, x);
            detail::rotate_from_rows<size, false>(set, key, chunk, 1.0f, x, to);
          } else {
            float scratch[detail::extent(size)];
            for (int i = 0; i < size; ++i) { x[i] = to_float(from[i]); }
            rotator.forward(host_group{}, x, scratch, rotation_key{key, chunk});
            std::copy_n(x, size, to);
          }
        });
      });
    },
    [&](auto const& on) {
      using kernel = detail::rotate_kernel<Rotator, element>;
      return on.run(kernel{{}, rotator, all.data(), all.size(), rotated.data(), key},
                    kernel::chunk::blocks(all.size()));
    });
}

//! @brief values = each chunk of `rotated` after `rotator.backward`, divided by what both ways multiply by.
//!
//! *Reads* `rotated`, *writes* the `values` that there are. Elements of 16 bits are rounded to the nearest one that is
//! finite, so that halves end at +-65504. Conditions, errors and stream are those of `rotate`; give its rotator and key.
template <executor Executor, chunk_rotator Rotator, gradient_memory Values>
[[nodiscard]] status rotate_back(Executor const& exec,
                                 Rotator const& rotator,
                                 std::span<float const> rotated,
                                 Values&& values,
                                 std::uint64_t key)
{
  using rotation     = detail::array_rotation<Rotator>;
  constexpr int size = Rotator::rotation_size;
  auto const all     = detail::span_of(values);
  using element      = typename decltype(all)::value_type;
  if (status const s = detail::check_rotation(rotator, all, rotated); !s.ok()) { return s; }
  return detail::perform(
    exec,
    [&](int threads, auto set) {
      detail::parallel_for(threads, rotated.size() / size, [&](std::uint64_t chunk) {
        alignas(64) float x[detail::extent(size)];
        float const* const from = rotated.data() + chunk * size;
        detail::write_whole_chunk<size>(all, chunk, [&](element* to) {
          if constexpr (rotation::in_registers) {
            detail::rotate_to_rows<size, false>(set, key, chunk, from, x);
            detail::rotate_from_rows<size>(set, key, chunk, rotation::unit, x, to);
          } else {
            float scratch[detail::extent(size)];
            std::copy_n(from, size, x);
            rotator.backward(host_group{}, x, scratch, rotation_key{key, chunk});
            for (int i = 0; i < size; ++i) {
              to[i] = detail::finite_from_float<element>(x[i] * rotation::unit);
            }
          }
        });
      });
    },
    [&](auto const& on) {
      using kernel = detail::rotate_back_kernel<Rotator, element>;
      return on.run(kernel{{}, rotator, rotated.data(), all.data(), all.size(), key},
                    kernel::chunk::blocks(all.size()));
    });
}

}  // namespace tersum::inline v0
