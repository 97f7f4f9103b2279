// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Stages of an exchange on a CUDA device: definitions of cuda_executor.cuh.

namespace tersum::inline v0 {

template <class Codec, class Element>
status cuda_executor::initialize(plan<Codec> const& plan,
                                 detail::exchange_args<Codec, Element> const& args,
                                 std::uint64_t seed) const
{
  detail::record_batch batch{};
  int filled       = 0;
  status result    = {};
  auto const flush = [&] {
    if (!result.ok()) { return; }
    result = launch(detail::initialize_kernel<Codec, Element>,
                    static_cast<std::uint64_t>(filled == 0 ? 1 : filled),
                    256,
                    0,
                    args,
                    batch,
                    seed,
                    plan.coordinates(),
                    plan.state_fingerprint());
    batch.first += static_cast<std::uint64_t>(filled);
    filled = 0;
  };
  plan.for_each_record([&](tensor_record const& record) {
    batch.records[filled++] = record;
    if (filled == detail::record_batch::capacity) { flush(); }
  });
  if (filled > 0 || plan.tensors() == 0) { flush(); }
  if (Codec::feeds_back && result.ok() && plan.coordinates() > 0) {
    result = detail::cuda_status(
      cudaMemsetAsync(args.residual, 0, plan.coordinates() * sizeof(float), stream));
  }
  if constexpr (scattering<Codec>) {
    if (Codec::owner_feeds_back && result.ok() && plan.chunks() > 0) {
      std::size_t const bytes = plan.residual_offset() - plan.owner_residual_offset();
      result = detail::cuda_status(cudaMemsetAsync(args.parts.owner_residual, 0, bytes, stream));
    }
  }
  return result;
}

template <class Codec, class Element>
status cuda_executor::encode(plan<Codec> const& plan,
                             detail::exchange_args<Codec, Element> const& args) const
{
  if (plan.bypassed() > 0) {
    if (auto const s =
          launch(detail::bypass_kernel<true, Codec, Element>, plan.tensors(), 256, 0, args);
        !s.ok()) {
      return s;
    }
  }
  if constexpr (gathering<Codec>) {
    if (auto const s = select(plan, args); !s.ok()) { return s; }
    return launch_coordinates(detail::send_coordinates_kernel<Codec, Element>, plan.chunks(), args);
  } else if constexpr (!Codec::agrees) {
    if constexpr (detail::has_parts<Codec>) {
      return encode_parts(plan, args);
    } else {
      return encode_cast(plan, args);
    }
  } else if constexpr (!detail::has_steps<Codec>) {
    return launch_norms(plan, args);
  } else {
    if constexpr (Codec::rotates_all) {
      for (int pass = 0; pass < detail::full_passes(plan); ++pass) {
        if (auto const s =
              launch(detail::full_forward_kernel<Codec, Element>,
                     (plan.chunks() * (Codec::chunk_size / 32) + detail::full_pass_threads - 1) /
                       detail::full_pass_threads,
                     detail::full_pass_threads,
                     0,
                     args,
                     pass);
            !s.ok()) {
          return s;
        }
      }
    }
    constexpr statistic what = Codec::range_type::measurement;
    if constexpr (what == statistic::chunk_magnitude) {
      if (auto const s = launch_chunks(plan,
                                       args,
                                       detail::magnitudes_kernel<false, Codec, Element>,
                                       detail::magnitudes_kernel<true, Codec, Element>,
                                       detail::grid_of<Codec>);
          !s.ok()) {
        return s;
      }
    }
    if constexpr (what != statistic::chunk_magnitude || Codec::tracks) {
      if (auto const s = launch_norms(plan, args); !s.ok()) { return s; }
    }
    if constexpr (what == statistic::tensor_square_norm ||
                  (what == statistic::chunk_magnitude && Codec::tracks)) {
      return launch(detail::tensor_norms_kernel<Codec, Element>,
                    plan.tensors(),
                    detail::tensor_threads,
                    detail::tensor_shared,
                    args);
    }
    return {};
  }
}

template <class Codec, class Element>
status cuda_executor::advance(plan<Codec> const& plan,
                              detail::exchange_args<Codec, Element> const& args) const
{
  if constexpr (!Codec::agrees) {
    return {};
  } else {
    if constexpr (Codec::selects) {
      if (auto const s = select(plan, args); !s.ok()) { return s; }
    }
    constexpr std::uint64_t threads = detail::settle_threads;
    if (auto const s = launch(detail::settle_kernel<Codec, Element>,
                              (plan.chunks() + threads - 1) / threads,
                              detail::settle_threads,
                              0,
                              args);
        !s.ok()) {
      return s;
    }
    if constexpr (detail::has_parts<Codec>) {
      return encode_parts(plan, args);
    } else if constexpr (Codec::casts) {
      return launch(detail::cast_kernel<true, Codec, Element>,
                    detail::selected_blocks<Codec>(plan.chunks()),
                    detail::cast_threads,
                    0,
                    args);
    } else {
      return launch_chunks(plan,
                           args,
                           detail::encode_kernel<false, Codec, Element>,
                           detail::encode_kernel<true, Codec, Element>,
                           detail::grid_of<Codec>);
    }
  }
}

template <class Codec, class Element>
status cuda_executor::decode(plan<Codec> const& plan,
                             detail::exchange_args<Codec, Element> const& args) const
{
  // Its flag stops residuals that move here.
  if (plan.bypassed() > 0) {
    if (auto const s =
          launch(detail::bypass_kernel<false, Codec, Element>, plan.tensors(), 256, 0, args);
        !s.ok()) {
      return s;
    }
  }
  if constexpr (gathering<Codec>) {
    using namespace detail;
    std::uint64_t const count = plan.chunks();
    if (auto const s = launch_coordinates(clear_coordinates_kernel<Codec, Element>, count, args);
        !s.ok()) {
      return s;
    }
    for (int rank = 0; rank < plan.ranks().size; ++rank) {
      if (auto const s = launch_coordinates(add_coordinates_kernel<Codec, Element>,
                                            plan.chosen(),
                                            args,
                                            static_cast<std::uint64_t>(rank));
          !s.ok()) {
        return s;
      }
    }
    if (auto const s = launch_coordinates(receive_coordinates_kernel<Codec, Element>, count, args);
        !s.ok()) {
      return s;
    }
  } else if constexpr (detail::has_parts<Codec>) {
    if (auto const s = decode_parts(plan, args); !s.ok()) { return s; }
  } else if constexpr (Codec::casts) {
    std::uint64_t blocks = plan.chunks();
    if constexpr (Codec::selects) { blocks = detail::selected_blocks<Codec>(plan.chunks()); }
    if (auto const s =
          launch(detail::cast_kernel<false, Codec, Element>, blocks, detail::cast_threads, 0, args);
        !s.ok()) {
      return s;
    }
  } else {
    if (auto const s = launch_chunks(plan,
                                     args,
                                     detail::decode_kernel<false, Codec, Element>,
                                     detail::decode_kernel<true, Codec, Element>,
                                     detail::grid_of<Codec>);
        !s.ok()) {
      return s;
    }
    if constexpr (Codec::rotates_all) {
      for (int pass = detail::full_passes(plan) - 1; pass >= 0; --pass) {
        if (auto const s =
              launch(detail::full_backward_kernel<Codec, Element>,
                     (plan.chunks() * (Codec::chunk_size / 32) + detail::full_pass_threads - 1) /
                       detail::full_pass_threads,
                     detail::full_pass_threads,
                     0,
                     args,
                     pass);
            !s.ok()) {
          return s;
        }
      }
    }
  }
  return launch(detail::finish_kernel<Codec, Element>,
                plan.tensors() == 0 ? 1 : plan.tensors(),
                detail::tensor_threads,
                detail::tensor_shared,
                args);
}

}  // namespace tersum::inline v0
