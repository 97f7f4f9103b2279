// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of device/rotate.hpp.

#include <tersum/block/block_load.hpp>
#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/config.hpp>
#include <tersum/device/detail/chunk_launch.hpp>
#include <tersum/device/detail/perform.hpp>
#include <tersum/device/detail/whole_chunk.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/rotate/block_hadamard.hpp>

namespace tersum::inline v0 {

namespace detail {

template <int Size, class Element>
struct rotate_kernel : chunk_launch<Size> {
  using chunk    = block_chunk<Size>;
  using hadamard = block_hadamard<Size>;
  using order    = block_hadamard<Size, false>;

  Element const* values;
  std::uint64_t count;
  float* rotated;
  std::uint64_t key;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    chunk mine = chunk::of(ctx, count);
    float v[32];
    load_chunk(ctx, mine, values, v);
    hadamard::forward(ctx, mine, key, this->template storage<hadamard>(ctx), v);
    order::synchronize(ctx);
    order::backward(ctx, mine, key, this->template storage<order>(ctx), v);
    mine.length = mine.exists() ? Size : 0;
    store_chunk(ctx, mine, v, rotated);
  }
};

template <int Size, class Element>
struct rotate_back_kernel : chunk_launch<Size> {
  using chunk    = block_chunk<Size>;
  using hadamard = block_hadamard<Size>;
  using order    = block_hadamard<Size, false>;

  float const* rotated;
  Element* values;
  std::uint64_t count;
  std::uint64_t key;

  template <class Context>
  TERSUM_BODY void operator()(Context const& ctx) const
  {
    chunk const mine = chunk::of(ctx, count);
    chunk whole      = mine;
    whole.length     = mine.exists() ? Size : 0;
    float v[32];
    load_chunk(ctx, whole, rotated, v);
    order::forward(ctx, mine, key, this->template storage<order>(ctx), v);
    order::synchronize(ctx);
    hadamard::backward(ctx, mine, key, this->template storage<hadamard>(ctx), v);
    TERSUM_UNROLL
    for (int i = 0; i < 32; ++i) { v[i] = Context::multiply(v[i], 1.0f / Size); }
    store_chunk(ctx, mine, v, values);
  }
};

template <int Size, class Element>
struct rotate_work {
  std::span<Element const> values;
  float* rotated;
  std::uint64_t chunks;
  std::uint64_t key;

  [[nodiscard]] status on_host(int threads, instruction_set set) const
  {
    parallel_for(threads, chunks, [&](std::uint64_t chunk) {
      alignas(64) float rows[Size];
      with_whole_chunk<Size>(values, chunk, [&](auto const* from) {
        rotate_to_rows<Size>(set, key, chunk, from, rows);
      });
      rows_to_array<Size>(set, rows, rotated + chunk * Size);
    });
    return {};
  }

  template <class Executor>
  [[nodiscard]] status on_blocks(Executor const& exec) const
  {
    using kernel = rotate_kernel<Size, Element>;
    return exec.run(kernel{{}, values.data(), values.size(), rotated, key},
                    kernel::chunk::blocks(values.size()));
  }
};

template <int Size, class Element>
struct rotate_back_work {
  float const* rotated;
  std::span<Element> values;
  std::uint64_t chunks;
  std::uint64_t key;

  [[nodiscard]] status on_host(int threads, instruction_set set) const
  {
    parallel_for(threads, chunks, [&](std::uint64_t chunk) {
      alignas(64) float rows[Size];
      array_to_rows<Size>(set, rotated + chunk * Size, rows);
      write_whole_chunk<Size>(values, chunk, [&](Element* to) {
        rotate_from_rows<Size>(set, key, chunk, 1.0f / Size, rows, to);
      });
    });
    return {};
  }

  template <class Executor>
  [[nodiscard]] status on_blocks(Executor const& exec) const
  {
    using kernel = rotate_back_kernel<Size, Element>;
    return exec.run(kernel{{}, rotated, values.data(), values.size(), key},
                    kernel::chunk::blocks(values.size()));
  }
};

//! Whether arrays can be rotated, in either direction; if not, the sentence names the argument.
template <int Size, class Element, class Rotated>
[[nodiscard]] status check_rotation(partial_hadamard<Size> const& rotator,
                                    std::span<Element> values,
                                    std::span<Rotated> rotated)
{
  bool const in_place = begin_alike(values, rotated) && values.size_bytes() == rotated.size_bytes();
  return argument_check{}
    .require(rotated.size() == tersum::rotated_size(rotator, values.size()),
             "rotated has not rotated_size(rotator, values.size()) elements")
    .require(fits_a_launch(rotated.size() / Size), too_many_chunks)
    .address(values, alignof(Element), "values is a null pointer, or not aligned to its elements")
    .address(rotated, 16, "rotated is a null pointer, or not aligned to 16 bytes")
    .require(in_place || are_disjoint(values, rotated), "rotated overlaps values")
    .result();
}

}  // namespace detail

template <executor Executor, int Size, readable_values Values>
status rotate(Executor const& exec,
              partial_hadamard<Size> const& rotator,
              Values const& values,
              std::span<float> rotated,
              std::uint64_t key)
{
  using element = std::ranges::range_value_t<Values>;
  std::span<element const> const from{values};
  if (status const s = detail::check_rotation(rotator, from, rotated); !s.ok()) { return s; }
  return detail::perform(
    exec, detail::rotate_work<Size, element>{from, rotated.data(), rotated.size() / Size, key});
}

template <executor Executor, int Size, writable_values Values>
status rotate_back(Executor const& exec,
                   partial_hadamard<Size> const& rotator,
                   std::span<float const> rotated,
                   Values&& values,
                   std::uint64_t key)
{
  using element = std::ranges::range_value_t<Values>;
  std::span<element> const to{values};
  if (status const s = detail::check_rotation(rotator, to, rotated); !s.ok()) { return s; }
  return detail::perform(
    exec, detail::rotate_back_work<Size, element>{rotated.data(), to, rotated.size() / Size, key});
}

}  // namespace tersum::inline v0
