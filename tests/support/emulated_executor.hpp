// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! An executor that runs the kernel bodies in the emulator, with the launches of `cuda_executor`.

#pragma once

#include "emulator.hpp"

#include <tersum/chunk/block_magnitudes.hpp>
#include <tersum/chunk/block_norms.hpp>
#include <tersum/chunk/block_select.hpp>
#include <tersum/chunk/block_top_coordinates.hpp>
#include <tersum/codec.hpp>
#include <tersum/execute/block_initialize.hpp>
#include <tersum/execute/exchange_args.hpp>
#include <tersum/lowrank/low_rank_launches.hpp>
#include <tersum/quantize/block_cast.hpp>
#include <tersum/quantize/block_decode.hpp>
#include <tersum/quantize/block_encode.hpp>
#include <tersum/range/block_settle.hpp>
#include <tersum/reduce/block_lookup.hpp>
#include <tersum/rotate/block_full_hadamard.hpp>
#include <tersum/schedule/block_per_hop.hpp>
#include <tersum/schedule/block_two_shot.hpp>
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
                                  std::uint64_t seed) const requires is_low_rank<Codec>
  {
    std::fill_n(args.warm, detail::round_up(args.elements, 4), 0.0F);
    if (Codec::feeds_back) { std::fill_n(args.residual, plan.coordinates(), 0.0F); }
    return detail::initialize_low_rank(plan, seed, low_rank_launch(args));
  }

  template <class Codec, class Element>
  [[nodiscard]] status initialize(plan<Codec> const& plan,
                                  detail::exchange_args<Codec, Element> const& args,
                                  std::uint64_t seed) const
  {
    detail::record_batch batch{};
    unsigned filled  = 0;
    auto const flush = [&] {
      launch(std::max(filled, 1U), 256, 0, [&](auto& context) {
        detail::initialize_tensors(
          context, args, batch, seed, plan.coordinates(), plan.state_fingerprint());
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
    if constexpr (scattering<Codec>) {
      if (Codec::owner_feeds_back) {
        std::fill_n(args.parts.owner_residual, plan.owned_chunks() * Codec::chunk_size, 0.0F);
      }
    }
    return {};
  }

  template <class Codec, class Element>
  [[nodiscard]] status encode(plan<Codec> const& plan,
                              detail::exchange_args<Codec, Element> const& args) const requires
    is_low_rank<Codec>
  {
    return detail::encode_low_rank(plan, low_rank_launch(args));
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
    if constexpr (gathering<Codec>) {
      select(plan, args);
      launch_coordinates(plan.chunks(),
                         [&](auto& context) { detail::send_coordinates(context, args); });
    } else if constexpr (detail::has_parts<Codec> && !Codec::agrees) {
      encode_parts(plan, args);
    } else if constexpr (!Codec::agrees) {
      if constexpr (Codec::selects) { select(plan, args); }
      cast<true>(plan, args);
    } else if constexpr (!detail::has_steps<Codec>) {
      launch_norms(plan, args);
    } else {
      if constexpr (Codec::rotates_all) {
        for (int pass = 0; pass < detail::full_passes(plan); ++pass) {
          launch_full_pass(plan,
                           [&](auto& context) { detail::full_forward_pass(context, args, pass); });
        }
      }
      constexpr statistic what = Codec::range_type::measurement;
      if constexpr (what == statistic::chunk_magnitude) {
        launch_chunks(
          plan, args, detail::grid_of<Codec>, [&](auto edge, auto& context, std::uint64_t first) {
            detail::chunk_magnitudes<edge.value>(context, args, first);
          });
      }
      if constexpr (what != statistic::chunk_magnitude || Codec::tracks) {
        launch_norms(plan, args);
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
                               detail::exchange_args<Codec, Element> const& args) const requires
    is_low_rank<Codec>
  {
    return detail::advance_low_rank(plan, low_rank_launch(args));
  }

  template <class Codec, class Element>
  [[nodiscard]] status advance(plan<Codec> const& plan,
                               detail::exchange_args<Codec, Element> const& args) const
  {
    if constexpr (Codec::agrees) {
      if constexpr (Codec::selects) { select(plan, args); }
      launch(blocks_of<detail::settle_threads>(plan.chunks()),
             detail::settle_threads,
             0,
             [&](auto& context) { detail::settle_steps(context, args); });
      if constexpr (detail::has_parts<Codec>) {
        encode_parts(plan, args);
      } else if constexpr (Codec::casts) {
        cast<true>(plan, args);
      } else {
        launch_chunks(
          plan, args, detail::grid_of<Codec>, [&](auto edge, auto& context, std::uint64_t first) {
            detail::encode_chunks<edge.value>(context, args, first);
          });
      }
    }
    return {};
  }

  template <class Codec, class Element>
  [[nodiscard]] status recompress(plan<Codec> const& plan,
                                  detail::exchange_args<Codec, Element> const& args) const
  {
    if (plan.part_bytes() == 0) { return {}; }
    launch(args.parts.recompressed.begin == 0 ? 1 : 0, detail::part_threads, 0, [&](auto& context) {
      detail::clear_parts(context, args, args.parts.gathered, args.rank);
    });
    launch_owned(plan, [&](auto& context) { detail::recompress_part(context, args); });
    return {};
  }

  template <class Codec, class Element>
  [[nodiscard]] status decode(plan<Codec> const& plan,
                              detail::exchange_args<Codec, Element> const& args) const requires
    is_low_rank<Codec>
  {
    return detail::decode_low_rank(plan, low_rank_launch(args));
  }

  template <class Codec, class Element>
  [[nodiscard]] status decode(plan<Codec> const& plan,
                              detail::exchange_args<Codec, Element> const& args) const
  {
    if (plan.bypassed() > 0) {
      launch(plan.tensors(), 256, 0, [&](auto& context) {
        detail::bypass_tensors<false>(context, args);
      });
    }
    if constexpr (gathering<Codec>) {
      launch_coordinates(plan.chunks(),
                         [&](auto& context) { detail::clear_coordinates(context, args); });
      for (int rank = 0; rank < plan.ranks().size; ++rank) {
        launch_coordinates(plan.chosen(), [&](auto& context) {
          detail::add_coordinates(context, args, static_cast<std::uint64_t>(rank));
        });
      }
      launch_coordinates(plan.chunks(),
                         [&](auto& context) { detail::receive_coordinates(context, args); });
    } else if constexpr (detail::has_parts<Codec>) {
      decode_parts(plan, args);
    } else if constexpr (Codec::casts) {
      cast<false>(plan, args);
    } else {
      launch_chunks(
        plan, args, detail::grid_of<Codec>, [&](auto edge, auto& context, std::uint64_t first) {
          detail::decode_chunks<edge.value>(context, args, first);
        });
      if constexpr (Codec::rotates_all) {
        for (int pass = detail::full_passes(plan) - 1; pass >= 0; --pass) {
          launch_full_pass(plan,
                           [&](auto& context) { detail::full_backward_pass(context, args, pass); });
        }
      }
    }
    launch(std::max<std::uint64_t>(plan.tensors(), 1),
           detail::tensor_threads,
           detail::tensor_shared,
           [&](auto& context) { detail::finish_exchange(context, args); });
    return {};
  }

  template <reduce_op Op>
  [[nodiscard]] status reduce([[maybe_unused]] Op const& op,
                              typename Op::element* to,
                              typename Op::element const* a,
                              typename Op::element const* b,
                              std::size_t count) const
  {
    if constexpr (recoding<Op>) {
      constexpr auto grid = detail::two_shot_grid<detail::codec_of_op<Op>>;
      launch(blocks_of<grid.chunks_a_block>(count * Op::element::chunks),
             grid.threads,
             grid.shared,
             [&](auto& context) { detail::recode_elements<Op>(context, to, a, b, count); });
      return {};
    } else if constexpr (has_combine_at<Op>) {
      launch(blocks_of<detail::reduce_threads * 4>(count),
             detail::reduce_threads,
             0,
             [&](auto& context) { detail::reduce_segments(context, op, to, a, b, count); });
      return {};
    } else {
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

  template <class Item>
  [[nodiscard]] status each(Item const& item, std::size_t count) const
  {
    launch(blocks_of<detail::item_threads>(count), detail::item_threads, 0, [&](auto& context) {
      detail::each_item(context, item, count);
    });
    return {};
  }

  template <class T>
  [[nodiscard]] status copy(T* to, T const* from, std::size_t count) const
  {
    std::copy_n(from, count, to);
    return {};
  }

  //! The selection of chunks; in one launch a phase when `blocks` is above 1.
  template <class Codec, class Element>
  void select(plan<Codec> const& plan,
              detail::exchange_args<Codec, Element> const& args,
              std::uint64_t blocks = 0) const
  {
    if (blocks == 0) { blocks = detail::select_blocks(plan.chunks()); }
    if (blocks == 0) { return; }
    auto& histogram = args.selection.scratch->histogram;
    std::fill_n(&histogram[0][0], sizeof(histogram) / sizeof(histogram[0][0]), 0U);
    int const at_once = blocks == 1 ? detail::select_phases : 1;
    for (int phase = 0; phase < detail::select_phases; phase += at_once) {
      launch(
        blocks,
        static_cast<int>(detail::select_threads),
        detail::select_shared,
        [&](auto& context) { detail::select_phases_of(context, args, phase, phase + at_once); });
    }
  }

 private:
  template <class Codec, class Element>
  void encode_parts(plan<Codec> const& plan,
                    detail::exchange_args<Codec, Element> const& args) const
  {
    if (plan.payload_bytes() == 0) { return; }
    std::size_t const words = plan.payload_bytes() / sizeof(std::uint32_t);
    if constexpr (recoding<Codec> && !detail::tiling<Codec>) {
      std::uint32_t* const end = args.payload + words;
      std::fill(end - Codec::payload_op::element::words, end, 0U);
    } else {
      auto parts = static_cast<std::uint64_t>(plan.ranks().size);
      if constexpr (recoding<Codec>) { parts = plan.tiles(); }
      launch(parts, detail::part_threads, 0, [&](auto& context) {
        detail::clear_parts(context, args, args.payload, 0);
      });
    }
    launch_chunks(
      plan, args, detail::two_shot_grid<Codec>, [&](auto edge, auto& context, std::uint64_t first) {
        detail::encode_parts<edge.value>(context, args, first);
      });
    if (recoding<Codec> && Codec::feeds_back) {
      std::copy_n(args.payload, words, args.parts.gathered);
    }
  }

  template <class Codec, class Element>
  void decode_parts(plan<Codec> const& plan,
                    detail::exchange_args<Codec, Element> const& args) const
  {
    launch(blocks_of<detail::part_threads>(plan.chunks()),
           detail::part_threads,
           0,
           [&](auto& context) { detail::inspect_parts(context, args); });
    constexpr auto grid = detail::two_shot_grid<Codec>;
    if constexpr (Codec::feeds_back) {
      launch_chunks(plan, args, grid, [&](auto edge, auto& context, std::uint64_t first) {
        detail::keep_rest<edge.value>(context, args, first);
      });
    }
    if constexpr (Codec::owner_feeds_back) {
      launch_owned(plan, [&](auto& context) { detail::keep_owner_rest(context, args); });
    }
    launch_chunks(plan, args, grid, [&](auto edge, auto& context, std::uint64_t first) {
      detail::decode_parts<edge.value>(context, args, first);
    });
  }

  // A kernel on the chunks that a rank may own.
  template <class Codec, class Body>
  void launch_owned(plan<Codec> const& plan, Body const& body) const
  {
    constexpr auto grid = detail::two_shot_grid<Codec>;
    launch(blocks_of<grid.chunks_a_block>(plan.owned_chunks()), grid.threads, grid.shared, body);
  }

  template <class Codec, class Element>
  [[nodiscard]] auto low_rank_launch(detail::exchange_args<Codec, Element> const& args) const
  {
    return [this, &args]<class Kernel>(Kernel const& kernel, std::uint64_t blocks) {
      launch(blocks, Kernel::threads, Kernel::template shared<Codec>, [&](auto& context) {
        kernel(context, args);
      });
      return status{};
    };
  }

  template <bool Encode, class Codec, class Element>
  void cast(plan<Codec> const& plan, detail::exchange_args<Codec, Element> const& args) const
  {
    if constexpr (Codec::selects) {
      launch(detail::selected_blocks<Codec>(plan.chunks()),
             detail::cast_threads,
             0,
             [&](auto& context) { detail::cast_selected<Encode>(context, args); });
    } else {
      launch(plan.chunks(), detail::cast_threads, 0, [&](auto& context) {
        detail::cast_chunks<Encode>(context, args);
      });
    }
  }

  template <class Body>
  void launch_coordinates(std::uint64_t count, Body const& body) const
  {
    launch(blocks_of<detail::coordinate_threads>(count), detail::coordinate_threads, 0, body);
  }

  template <class Codec, class Element>
  void launch_norms(plan<Codec> const& plan,
                    detail::exchange_args<Codec, Element> const& args) const
  {
    launch_chunks(plan,
                  args,
                  detail::norms_grid<Codec, Element>,
                  [&](auto edge, auto& context, std::uint64_t first) {
                    detail::chunk_norms<edge.value>(context, args, first);
                  });
  }

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
                     detail::chunk_grid const& grid,
                     Body const& body) const
  {
    auto const run = [&](auto edge, std::uint64_t first, std::uint64_t chunks) {
      launch((chunks + grid.chunks_a_block - 1) / grid.chunks_a_block,
             grid.threads,
             grid.shared,
             [&](auto& context) { body(edge, context, first); });
    };
    if constexpr (Codec::rotates_all) {
      run(std::false_type{}, 0, plan.chunks());
    } else {
      bool const aligned        = reinterpret_cast<std::uintptr_t>(args.gradient) % 16 == 0;
      bool const one            = plan.gradient().tensors.empty();
      std::uint64_t const whole = plan.coordinates() / Codec::chunk_size;
      if (!one || aligned) { run(std::false_type{}, 0, one ? whole : plan.chunks()); }
      std::uint64_t const first = one && aligned ? whole - whole % grid.chunks_a_block : 0;
      run(std::true_type{}, first, plan.chunks() - first);
    }
  }
};

}  // namespace tersum::tests
