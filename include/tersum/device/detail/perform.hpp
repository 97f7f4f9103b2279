// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How a call on arrays reaches an executor, what its arguments must be, and how it takes chunks.

#pragma once

#include <tersum/block/block_chunk.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/rotate/block_hadamard.hpp>
#include <tersum/status.hpp>
#include <tersum/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace tersum::inline v0::detail {

//! @brief Runs a call in the form that the executor has: `on_host(threads, set)`, or `on_blocks(exec)`, which launches kernels
//! and returns a status. Both are generic, so that the compiler makes no code of the other one.
template <executor Executor, class OnHost, class OnBlocks>
requires(host_executor<Executor> || launching_executor<Executor>) [[nodiscard]] status
  perform(Executor const& exec,
          [[maybe_unused]] OnHost const& on_host,
          [[maybe_unused]] OnBlocks const& on_blocks)
{
  if (status const s = exec.check(); !s.ok()) { return s; }
  if constexpr (host_executor<Executor>) {
    with_subnormals const scope;
    on_host(exec.threads, exec.instructions);
    return {};
  } else {
    return on_blocks(exec);
  }
}

//! Whether two arrays have no byte in common.
template <class A, class B>
[[nodiscard]] bool are_disjoint(std::span<A> a, std::span<B> b) noexcept
{
  return are_apart(a.data(), a.size_bytes(), b.data(), b.size_bytes());
}

//! Whether two arrays begin at the same byte.
template <class A, class B>
[[nodiscard]] bool begin_alike(std::span<A> a, std::span<B> b) noexcept
{
  return static_cast<void const*>(a.data()) == static_cast<void const*>(b.data());
}

//! @brief The first of several conditions that does not hold, as the status of a call.
class argument_check {
 public:
  //! `sentence` is a literal that names the argument.
  constexpr argument_check& require(bool holds, std::string_view sentence) noexcept
  {
    if (result_.ok() && !holds) { result_ = {error_code::invalid_argument, sentence}; }
    return *this;
  }

  //! The address of an array that is not empty.
  template <class T>
  argument_check& address(std::span<T> array, std::size_t alignment, std::string_view sentence)
  {
    bool const placed =
      array.data() != nullptr && reinterpret_cast<std::uintptr_t>(array.data()) % alignment == 0;
    return require(array.empty() || placed, sentence);
  }

  //! The chunks of an array, each of which a launch takes.
  constexpr argument_check& chunks(std::uint64_t count) noexcept
  {
    return require(count <= std::numeric_limits<std::int32_t>::max(),
                   "values has 2^31 chunks or more: pass it in parts");
  }

  [[nodiscard]] constexpr status result() const noexcept { return result_; }

 private:
  status result_{};
};

//! @brief A launch of `block_chunk<Size>`, with the shared memory of one `block_hadamard`.
template <int Size>
struct chunk_launch {
  static constexpr int threads = block_chunk<Size>::block_threads;
  static constexpr int shared  = static_cast<int>(sizeof(typename block_hadamard<Size>::storage));
};

//! @brief Whether chunks of such elements are striped, rather than in the loaded arrangement.
template <class Element>
inline constexpr bool striped = sizeof(Element) == 4;

//! @brief From the striped to the loaded arrangement or back, by way of the chunk's tile.
template <bool Striped, class Context, int Size>
TERSUM_BODY void rearrange(Context const& ctx,
                           block_chunk<Size> const& mine,
                           float* tile,
                           float (&v)[32])
{
  using order = block_hadamard<Size, false>;
  order::template put<!Striped>(ctx, v, tile, mine.thread, mine.first);
  order::synchronize(ctx);
  order::template get<Striped>(ctx, v, tile, mine.thread, mine.first);
}

//! @brief Calls body(first) with the `Size` coordinates of a chunk: in place if the array has them all, otherwise with a copy
//! as floats, padded with zeros.
template <int Size, class Element, class Body>
void with_whole_chunk(std::span<Element> values, std::uint64_t chunk, Body const& body)
{
  std::size_t const begin = chunk * Size;
  std::size_t const left  = values.size() - begin;
  if (left >= Size) { return body(values.data() + begin); }
  alignas(64) float copy[extent(Size)] = {};
  for (std::size_t i = 0; i < left; ++i) { copy[i] = to_float(values[begin + i]); }
  body(static_cast<float const*>(copy));
}

//! @brief Calls body(to), which writes the `Size` coordinates of a chunk, and keeps those that the array has.
template <int Size, class Element, class Body>
void write_whole_chunk(std::span<Element> values, std::uint64_t chunk, Body const& body)
{
  std::size_t const begin = chunk * Size;
  std::size_t const left  = values.size() - begin;
  if (left >= Size) { return body(values.data() + begin); }
  alignas(64) Element copy[extent(Size)];
  body(static_cast<Element*>(copy));
  std::copy_n(copy, left, values.data() + begin);
}

}  // namespace tersum::inline v0::detail
