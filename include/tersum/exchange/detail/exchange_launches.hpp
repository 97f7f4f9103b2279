// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The order in which the parts of an exchange launch kernels, the same for a device and its emulator.

#pragma once

#include <tersum/codec.hpp>
#include <tersum/exchange/detail/launch_list.hpp>
#include <tersum/lowrank/detail/low_rank_launches.hpp>
#include <tersum/status.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The parts of an exchange, for an executor that has `run(kernel, blocks, args)` (none for 0 blocks),
//! `clear(to, count)` and `copy(to, from, count)`, which return a status.
template <class Executor>
struct exchange_launches {
  //! @name Parts of an exchange
  //! Called by `initialize`, `encode`, `advance`, `recompress` and `decode`, which check the arguments first.
  //! @{
  template <class Codec, class Element>
  [[nodiscard]] status initialize(plan<Codec> const& plan,
                                  exchange_args<Codec, Element> const& args,
                                  std::uint64_t seed) const
  {
    auto list = list_of(plan, args);
    if constexpr (Codec::feeds_back) { list.clear(args.residual, plan.coordinates()); }
    if constexpr (is_low_rank<Codec>) {
      list.clear(args.warm, round_up(args.elements, 4));
      return list.result().ok() ? initialize_low_rank(plan, seed, launch_of(args)) : list.result();
    } else {
      if constexpr (scattering<Codec>) {
        if (Codec::owner_feeds_back) {
          list.clear(args.parts.owner_residual, plan.owned_chunks() * Codec::chunk_size);
        }
      }
      initialize_kernel kernel{{}, {}, seed, plan.coordinates(), plan.state_fingerprint()};
      unsigned filled  = 0;
      auto const flush = [&] {
        list(kernel, maximum(filled, 1u));
        kernel.batch.first += filled;
        filled = 0;
      };
      plan.for_each_record([&](tensor_record const& record) {
        kernel.batch.records[filled++] = record;
        if (filled == record_batch::capacity) { flush(); }
      });
      if (filled > 0 || plan.tensors() == 0) { flush(); }
      return list.result();
    }
  }

  template <class Codec, class Element>
  [[nodiscard]] status encode(plan<Codec> const& plan,
                              exchange_args<Codec, Element> const& args) const
  {
    if constexpr (is_low_rank<Codec>) {
      return encode_low_rank(plan, launch_of(args));
    } else {
      auto list = list_of(plan, args);
      list.bypass(bypass_kernel<true>{});
      if constexpr (gathering<Codec>) {
        list.select();
        list.threads(send_coordinates_kernel{}, plan.chunks());
      } else if constexpr (has_parts<Codec> && !Codec::agrees) {
        list.encode_parts();
      } else if constexpr (!Codec::agrees) {
        if constexpr (Codec::selects) { list.select(); }
        list.template cast<true>();
      } else if constexpr (!has_steps<Codec>) {
        list.norms();
      } else {
        if constexpr (Codec::rotates_all) {
          for (int pass = 0; pass < full_passes(plan); ++pass) {
            list.full_pass(full_forward_kernel{{}, pass});
          }
        }
        constexpr statistic what    = Codec::range_type::measurement;
        constexpr bool of_magnitude = what == statistic::chunk_magnitude;
        if constexpr (of_magnitude) { list.template chunks<magnitudes_kernel>(); }
        if constexpr (!of_magnitude || Codec::tracks) { list.norms(); }
        if constexpr (what == statistic::tensor_square_norm || (of_magnitude && Codec::tracks)) {
          list(tensor_norms_kernel{}, plan.tensors());
        }
      }
      return list.result();
    }
  }

  template <class Codec, class Element>
  [[nodiscard]] status advance(plan<Codec> const& plan,
                               exchange_args<Codec, Element> const& args) const
  {
    if constexpr (is_low_rank<Codec>) {
      return advance_low_rank(plan, launch_of(args));
    } else if constexpr (!Codec::agrees) {
      return {};
    } else {
      auto list = list_of(plan, args);
      if constexpr (Codec::selects) { list.select(); }
      list.threads(steps_kernel{}, plan.chunks());
      if constexpr (has_parts<Codec>) {
        list.encode_parts();
      } else if constexpr (Codec::casts) {
        list.template cast<true>();
      } else {
        list.template chunks<encode_kernel>();
      }
      return list.result();
    }
  }

  template <class Codec, class Element>
  [[nodiscard]] status recompress(plan<Codec> const& plan,
                                  exchange_args<Codec, Element> const& args) const
  {
    if (plan.part_bytes() == 0) { return {}; }
    auto list = list_of(plan, args);
    if (args.parts.recompressed.begin == 0) {
      list(clear_parts_kernel{{}, args.parts.gathered, args.rank}, 1);
    }
    list.owned(recompress_kernel{});
    return list.result();
  }

  template <class Codec, class Element>
  [[nodiscard]] status decode(plan<Codec> const& plan,
                              exchange_args<Codec, Element> const& args) const
  {
    if constexpr (is_low_rank<Codec>) {
      return decode_low_rank<tuning_of<Executor>>(plan, launch_of(args));
    } else {
      auto list = list_of(plan, args);
      list.bypass(bypass_kernel<false>{});  // its flag stops residuals that move here
      if constexpr (gathering<Codec>) {
        list.threads(clear_coordinates_kernel{}, plan.chunks());
        for (int rank = 0; rank < plan.ranks().size; ++rank) {
          list.threads(add_coordinates_kernel{{}, static_cast<std::uint64_t>(rank)}, plan.chosen());
        }
        list.threads(receive_coordinates_kernel{}, plan.chunks());
      } else if constexpr (has_parts<Codec>) {
        list.decode_parts();
      } else if constexpr (Codec::casts) {
        list.template cast<false>();
      } else {
        list.template chunks<decode_kernel>();
        if constexpr (Codec::rotates_all) {
          for (int pass = full_passes(plan) - 1; pass >= 0; --pass) {
            list.full_pass(full_backward_kernel{{}, pass});
          }
        }
      }
      list(finish_kernel{}, maximum(plan.tensors(), std::uint64_t{1}));
      return list.result();
    }
  }

  //! Which chunks travel, from the agreed norms: one launch for up to 2^17 chunks, six beyond.
  template <class Codec, class Element>
  [[nodiscard]] status select(plan<Codec> const& plan,
                              exchange_args<Codec, Element> const& args) const
  {
    auto list = list_of(plan, args);
    list.select();
    return list.result();
  }
  //! @}

 protected:
  // Launches a kernel of exchanges with these arguments.
  template <class Codec, class Element>
  [[nodiscard]] auto launch_of(exchange_args<Codec, Element> const& args) const
  {
    return [this, &args](auto const& kernel, std::uint64_t blocks) {
      return static_cast<Executor const&>(*this).run(kernel, blocks, args);
    };
  }

 private:
  template <class Codec, class Element>
  [[nodiscard]] auto list_of(plan<Codec> const& plan,
                             exchange_args<Codec, Element> const& args) const
  {
    return launch_list<Executor, Codec, Element>{static_cast<Executor const&>(*this), plan, args};
  }
};

}  // namespace tersum::inline v0::detail
