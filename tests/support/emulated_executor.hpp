// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! An executor that runs the kernel bodies in the emulator, with the launches of `cuda_executor`.

#pragma once

#include "emulator.hpp"

#include <tersum/chunk/block_norms.hpp>
#include <tersum/codec.hpp>
#include <tersum/execute/block_initialize.hpp>
#include <tersum/execute/exchange_args.hpp>
#include <tersum/quantize/block_cast.hpp>
#include <tersum/quantize/block_decode.hpp>
#include <tersum/quantize/block_encode.hpp>
#include <tersum/range/block_settle.hpp>
#include <tersum/rotate/block_full_hadamard.hpp>
#include <tersum/status.hpp>

// g++ does not see that vectors are loaded under the condition under which they are used.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <tersum/reduce/block_reduce.hpp>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace tersum::tests {

//! @brief The twin of `cuda_executor` on the host: same kernels in the same order, same grids, blocks and shared bytes.
//! @throws emulator::failure  from every call, when a kernel body breaks a rule of the device.
struct emulated_executor {
  emulator::thread_order order = emulator::forward;

  [[nodiscard]] status check() const noexcept { return {}; }

  template <class Codec, class Element>
  [[nodiscard]] status initialize(plan<Codec> const& plan,
                                  detail::exchange_args<Codec, Element> const& args,
                                  std::uint64_t seed) const
  {
    detail::record_batch batch{};
    unsigned filled  = 0;
    auto const flush = [&] {
      launch(std::max(filled, 1U), 256, 0, [&](auto& context) {
        detail::initialize_tensors(context, args, batch, seed, plan.coordinates());
      });
      batch.first += filled;
      filled = 0;
    };
    plan.for_each_record([&](tensor_record const& record) {
      batch.records[filled++] = record;
      if (filled == detail::record_batch::capacity) { flush(); }
    });
    if (filled > 0 || plan.tensors() == 0) { flush(); }
    if (Codec::feeds_back) { std::fill_n(args.residual, plan.coordinates(), 0.0F); }
    return {};
  }

  template <class Codec, class Element>
  [[nodiscard]] status encode(plan<Codec> const& plan,
                              detail::exchange_args<Codec, Element> const& args) const
  {
    if (plan.bypassed() > 0) {
      launch(plan.tensors(), 256, 0, [&](auto& context) {
        detail::bypass_tensors<true>(context, args);
      });
    }
    if constexpr (Codec::casts) {
      launch(plan.chunks(), detail::cast_threads, 0, [&](auto& context) {
        detail::cast_chunks<true>(context, args);
      });
    } else {
      if constexpr (Codec::rotates_all) {
        for (int pass = 0; pass < detail::full_passes(plan); ++pass) {
          launch_full_pass(plan,
                           [&](auto& context) { detail::full_forward_pass(context, args, pass); });
        }
      }
      constexpr statistic what = Codec::range_type::measurement;
      if constexpr (what == statistic::chunk_magnitude) {
        launch_chunks(plan, args, false, [&](auto edge, auto& context, std::uint64_t first) {
          detail::chunk_magnitudes<edge.value>(context, args, first);
        });
      }
      if constexpr (what != statistic::chunk_magnitude || Codec::tracks) {
        launch_chunks(plan, args, true, [&](auto edge, auto& context, std::uint64_t first) {
          detail::chunk_norms<edge.value>(context, args, first);
        });
      }
      if constexpr (what == statistic::tensor_square_norm ||
                    (what == statistic::chunk_magnitude && Codec::tracks)) {
        launch(plan.tensors(), detail::tensor_threads, detail::tensor_shared, [&](auto& context) {
          detail::tensor_norms(context, args);
        });
      }
    }
    return {};
  }

  template <class Codec, class Element>
  [[nodiscard]] status advance(plan<Codec> const& plan,
                               detail::exchange_args<Codec, Element> const& args) const
  {
    if constexpr (!Codec::casts) {
      launch(blocks_of<detail::settle_threads>(plan.chunks()),
             detail::settle_threads,
             0,
             [&](auto& context) { detail::settle_steps(context, args); });
      launch_chunks(plan, args, false, [&](auto edge, auto& context, std::uint64_t first) {
        detail::encode_chunks<edge.value>(context, args, first);
      });
    }
    return {};
  }

  template <class Codec, class Element>
  [[nodiscard]] status decode(plan<Codec> const& plan,
                              detail::exchange_args<Codec, Element> const& args) const
  {
    if constexpr (Codec::casts) {
      launch(plan.chunks(), detail::cast_threads, 0, [&](auto& context) {
        detail::cast_chunks<false>(context, args);
      });
    } else {
      launch_chunks(plan, args, false, [&](auto edge, auto& context, std::uint64_t first) {
        detail::decode_chunks<edge.value>(context, args, first);
      });
      if constexpr (Codec::rotates_all) {
        for (int pass = detail::full_passes(plan) - 1; pass >= 0; --pass) {
          launch_full_pass(plan,
                           [&](auto& context) { detail::full_backward_pass(context, args, pass); });
        }
      }
    }
    if (plan.bypassed() > 0) {
      launch(plan.tensors(), 256, 0, [&](auto& context) {
        detail::bypass_tensors<false>(context, args);
      });
    }
    launch(std::max<std::uint64_t>(plan.tensors(), 1),
           detail::tensor_threads,
           detail::tensor_shared,
           [&](auto& context) { detail::finish_exchange(context, args); });
    return {};
  }

  template <reduce_op Op>
  [[nodiscard]] status reduce(Op,
                              typename Op::element* to,
                              typename Op::element const* a,
                              typename Op::element const* b,
                              std::size_t count) const
  {
    using vector = detail::element_vector<typename Op::element>;
    auto const misplace =
      (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(a) |
       reinterpret_cast<std::uintptr_t>(b)) %
      16;
    std::size_t const vectors = misplace == 0 ? count / vector::count : 0;
    std::size_t const done    = vectors * vector::count;
    launch(blocks_of<detail::reduce_threads * detail::reduce_vectors>(vectors),
           detail::reduce_threads,
           0,
           [&](auto& context) {
             detail::reduce_vectors_of<Op>(context,
                                           reinterpret_cast<vector*>(to),
                                           reinterpret_cast<vector const*>(a),
                                           reinterpret_cast<vector const*>(b),
                                           vectors);
           });
    launch(blocks_of<detail::reduce_threads>(count - done),
           detail::reduce_threads,
           0,
           [&](auto& context) {
             detail::reduce_elements<Op>(context, to + done, a + done, b + done, count - done);
           });
    return {};
  }

  //! `reduce_once` over the arrays of all ranks, `count` vectors of 16 bytes each.
  template <int Bits, int Ranks>
  void reduce_once(word4* to,
                   detail::rank_arrays<word4, Ranks> const& from,
                   std::size_t count) const
  {
    launch(blocks_of<detail::reduce_threads>(count), detail::reduce_threads, 0, [&](auto& context) {
      detail::reduce_once<Bits>(context, to, from, count);
    });
  }

  template <class T>
  [[nodiscard]] status copy(T* to, T const* from, std::size_t count) const
  {
    std::copy_n(from, count, to);
    return {};
  }

 private:
  template <std::uint64_t Items>
  [[nodiscard]] static std::uint64_t blocks_of(std::uint64_t count)
  {
    return (count + Items - 1) / Items;
  }

  template <class Body>
  void launch(std::uint64_t blocks, int threads, int shared, Body const& body) const
  {
    if (blocks == 0) { return; }
    if (blocks > std::numeric_limits<std::int32_t>::max()) {
      throw std::length_error("a grid of more blocks than a device takes");
    }
    emulator::launch({.blocks       = static_cast<std::uint32_t>(blocks),
                      .threads      = static_cast<unsigned>(threads),
                      .shared_bytes = static_cast<std::size_t>(shared)},
                     order,
                     body);
  }

  template <class Codec, class Body>
  void launch_full_pass(plan<Codec> const& plan, Body const& body) const
  {
    launch(blocks_of<detail::full_pass_threads>(plan.chunks() * (Codec::chunk_size / 32)),
           detail::full_pass_threads,
           0,
           body);
  }

  // The kernel for regular chunks, then the one for the others: body(is_edge, context, first chunk).
  template <class Codec, class Element, class Body>
  void launch_chunks(plan<Codec> const& plan,
                     detail::exchange_args<Codec, Element> const& args,
                     bool norms,
                     Body const& body) const
  {
    auto const run = [&](auto edge, std::uint64_t first, std::uint64_t chunks) {
      constexpr std::uint64_t each = detail::norm_share<Codec, Element>::chunks_per_block;
      launch(norms ? blocks_of<each>(chunks) : detail::blocks_for<Codec>(chunks),
             norms ? 128 : detail::threads_per_block<Codec>,
             norms ? 0 : detail::shared_bytes<Codec>,
             [&](auto& context) { body(edge, context, first); });
    };
    if constexpr (Codec::rotates_all) {
      run(std::false_type{}, 0, plan.chunks());
    } else {
      bool const aligned        = reinterpret_cast<std::uintptr_t>(args.gradient) % 16 == 0;
      bool const one            = plan.gradient().tensors.empty();
      std::uint64_t const whole = plan.coordinates() / Codec::chunk_size;
      if (!one || aligned) { run(std::false_type{}, 0, one ? whole : plan.chunks()); }
      std::uint64_t const first = one && aligned ? whole : 0;
      run(std::true_type{}, first, plan.chunks() - first);
    }
  }
};

}  // namespace tersum::tests
