// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! An executor that runs the kernel bodies in the emulator, with the launches of `cuda_executor`.

#pragma once

#include "emulator.hpp"

#include <tersum/exchange/detail/exchange_kernels.hpp>
#include <tersum/exchange/exchange_launches.hpp>
#include <tersum/execute/executor.hpp>
#include <tersum/status.hpp>

// g++ does not see that vectors are loaded under the condition under which they are used.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <tersum/reduce/detail/array_reduction.hpp>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <tersum/tuning.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace tersum::tests {

//! @brief The twin of `cuda_executor` on the host: the same launches of the same kernels.
//! @throws emulator::failure  from every call, when a kernel body breaks a rule of the device.
//! `Of` holds a tuning; where there is none, the defaults.
template <tuning_holder... Of>
struct basic_emulated_executor : exchange_launches<basic_emulated_executor<Of...>> {
  static constexpr tuning tuned = detail::chosen<Of...>;

  emulator::thread_order order;

  basic_emulated_executor(emulator::thread_order in = emulator::forward) : order{in} {}

  [[nodiscard]] status check() const noexcept { return {}; }

  template <reduce_op Op>
  [[nodiscard]] status reduce(Op const& op,
                              typename Op::element* to,
                              typename Op::element const* a,
                              typename Op::element const* b,
                              std::size_t count) const
  {
    return detail::reduce_on_blocks(*this, op, to, a, b, count);
  }

  template <class Item>
  [[nodiscard]] status each(Item const& item, std::size_t count) const
  {
    launch(blocks_of<tuned.cuda.item_threads>(count),
           tuned.cuda.item_threads,
           0,
           [&](auto& context) { detail::each_item(context, item, count); });
    return {};
  }

  template <class T>
  [[nodiscard]] status copy(T* to, T const* from, std::size_t count) const
  {
    std::copy_n(from, count, to);
    return {};
  }

  template <class T>
  [[nodiscard]] status clear(T* to, std::size_t count) const
  {
    std::fill_n(to, count, T{});
    return {};
  }

  template <class Kernel, class Codec, class Element>
  [[nodiscard]] status run(Kernel const& kernel,
                           std::uint64_t blocks,
                           detail::exchange_args<Codec, Element> const& args) const
  {
    launch(blocks,
           Kernel::template threads<Codec, tuned>,
           Kernel::template shared<Codec>,
           [&](auto& context) { kernel(context, args); });
    return {};
  }

  template <class Kernel>
  [[nodiscard]] status run(Kernel const& kernel, std::uint64_t blocks) const
  {
    launch(blocks, detail::number_of<tuned>(Kernel::threads), Kernel::shared, [&](auto& context) {
      kernel(context);
    });
    return {};
  }

  //! @name In as many blocks as are resident at once, and at most so many
  //! @{
  template <class Kernel, class Codec, class Element>
  [[nodiscard]] status run_together(Kernel const& kernel,
                                    std::uint64_t most,
                                    detail::exchange_args<Codec, Element> const& args) const
  {
    launch<&emulator::launch_together>(resident(most, Kernel::template threads<Codec, tuned>),
                                       Kernel::template threads<Codec, tuned>,
                                       Kernel::template shared<Codec>,
                                       [&](auto& context) { kernel(context, args); });
    return {};
  }

  template <class Kernel>
  [[nodiscard]] status run_together(Kernel const& kernel, std::uint64_t most) const
  {
    constexpr int threads = detail::number_of<tuned>(Kernel::threads);
    launch<&emulator::launch_together>(
      resident(most, threads), threads, Kernel::shared, [&](auto& context) { kernel(context); });
    return {};
  }
  //! @}

 private:
  [[nodiscard]] static std::uint64_t resident(std::uint64_t most, int threads)
  {
    return std::min(most, emulator::max_resident_threads / static_cast<std::uint64_t>(threads));
  }

  template <std::uint64_t Items>
  [[nodiscard]] static std::uint64_t blocks_of(std::uint64_t count)
  {
    return (count + Items - 1) / Items;
  }

  template <auto Launch = &emulator::launch, class Body>
  void launch(std::uint64_t blocks, int threads, int shared, Body const& body) const
  {
    if (blocks == 0) { return; }
    if (blocks > std::numeric_limits<std::int32_t>::max()) {
      throw std::length_error("a grid of more blocks than a device takes");
    }
    Launch({.blocks       = static_cast<std::uint32_t>(blocks),
            .threads      = static_cast<unsigned>(threads),
            .shared_bytes = static_cast<std::size_t>(shared)},
           order,
           [&](emulator::host_context& context) {
             if constexpr (sizeof...(Of) == 0) {
               body(context);
             } else {
               detail::tuned_context<emulator::host_context, Of...> const other{context};
               body(other);
             }
           });
  }
};

using emulated_executor = basic_emulated_executor<>;

static_assert(launching_executor<emulated_executor>);

}  // namespace tersum::tests
