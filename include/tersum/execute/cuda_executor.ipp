// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of cuda_executor.cuh.

namespace tersum::inline v0 {

namespace detail {

[[nodiscard]] inline status cuda_status(cudaError_t error) noexcept
{
  if (error == cudaSuccess) { return {}; }
  return {
    error_code::execution_failed, "the CUDA runtime refused a launch", static_cast<int>(error)};
}

}  // namespace detail

template <class Kernel, class... Args>
status cuda_executor::launch(
  Kernel* kernel, std::uint64_t blocks, int threads, int shared, Args const&... args) const
{
  if (blocks == 0) { return {}; }
  if (blocks > std::numeric_limits<std::int32_t>::max()) {
    return {error_code::unsupported, "the gradient needs more blocks than a grid has"};
  }
  if (shared > 48 * 1024) {
    if (auto const s = detail::cuda_status(
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
        !s.ok()) {
      return s;
    }
  }
  kernel<<<static_cast<unsigned>(blocks),
           static_cast<unsigned>(threads),
           static_cast<std::size_t>(shared),
           stream>>>(args...);
  return detail::cuda_status(cudaGetLastError());
}

template <class Codec, class Element, class Kernel>
status cuda_executor::launch_chunks(plan<Codec> const& plan,
                                    detail::exchange_args<Codec, Element> const& args,
                                    Kernel* regular,
                                    Kernel* edge,
                                    detail::chunk_grid grid) const
{
  auto const [chunks_a_block, threads, shared] = grid;
  auto const blocks                            = [&](std::uint64_t chunks) {
    return (chunks + chunks_a_block - 1) / chunks_a_block;
  };
  if (Codec::rotates_all) {
    return launch(regular, blocks(plan.chunks()), threads, shared, args, std::uint64_t{0});
  }
  // Of one vector only the last chunk can be short; tensors of a bucket may end and begin anywhere.
  bool const aligned        = reinterpret_cast<std::uintptr_t>(args.gradient) % 16 == 0;
  bool const one            = plan.gradient().tensors.empty();
  std::uint64_t const whole = plan.coordinates() / Codec::chunk_size;
  if (!one || aligned) {
    if (auto const s = launch(
          regular, blocks(one ? whole : plan.chunks()), threads, shared, args, std::uint64_t{0});
        !s.ok()) {
      return s;
    }
  }
  std::uint64_t const first = one && aligned ? whole : 0;
  return launch(edge, blocks(plan.chunks() - first), threads, shared, args, first);
}

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
                    plan.coordinates());
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
  if constexpr (recompressing<Codec>) {
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

template <class Kernel, class... Args>
status cuda_executor::launch_coordinates(Kernel* kernel,
                                         std::uint64_t count,
                                         Args const&... args) const
{
  constexpr std::uint64_t threads = detail::coordinate_threads;
  return launch(kernel, (count + threads - 1) / threads, detail::coordinate_threads, 0, args...);
}

template <class Codec, class Element>
status cuda_executor::launch_norms(plan<Codec> const& plan,
                                   detail::exchange_args<Codec, Element> const& args) const
{
  return launch_chunks(plan,
                       args,
                       detail::norms_kernel<false, Codec, Element>,
                       detail::norms_kernel<true, Codec, Element>,
                       detail::norms_grid<Codec, Element>);
}

template <class Codec, class Element>
status cuda_executor::encode_cast(plan<Codec> const& plan,
                                  detail::exchange_args<Codec, Element> const& args) const
{
  std::uint64_t blocks = plan.chunks();
  if constexpr (Codec::selects) {
    if (auto const s = select(plan, args); !s.ok()) { return s; }
    blocks = detail::selected_blocks<Codec>(plan.chunks());
  }
  return launch(detail::cast_kernel<true, Codec, Element>, blocks, detail::cast_threads, 0, args);
}

template <class Codec, class Element>
status cuda_executor::select(plan<Codec> const& plan,
                             detail::exchange_args<Codec, Element> const& args) const
{
  std::uint64_t const blocks = detail::select_blocks(plan.chunks());
  if (blocks == 0) { return {}; }
  auto& histogram = args.selection.scratch->histogram;
  if (auto const s = detail::cuda_status(cudaMemsetAsync(&histogram, 0, sizeof(histogram), stream));
      !s.ok()) {
    return s;
  }
  // One block can do all phases at once; several need launches between them.
  int const at_once = blocks == 1 ? detail::select_phases : 1;
  for (int phase = 0; phase < detail::select_phases; phase += at_once) {
    if (auto const s = launch(detail::select_kernel<Codec, Element>,
                              blocks,
                              static_cast<int>(detail::select_threads),
                              detail::select_shared,
                              args,
                              phase,
                              phase + at_once);
        !s.ok()) {
      return s;
    }
  }
  return {};
}

template <class Codec, class Element, class Kernel>
status cuda_executor::launch_owned(plan<Codec> const& plan,
                                   detail::exchange_args<Codec, Element> const& args,
                                   Kernel* kernel) const
{
  constexpr auto grid = detail::two_shot_grid<Codec>;
  return launch(kernel,
                (plan.owned_chunks() + grid.chunks_a_block - 1) / grid.chunks_a_block,
                grid.threads,
                grid.shared,
                args);
}

template <class Codec, class Element>
status cuda_executor::encode_parts(plan<Codec> const& plan,
                                   detail::exchange_args<Codec, Element> const& args) const
{
  if (plan.payload_bytes() == 0) { return {}; }
  status cleared;
  if constexpr (recoding<Codec> && !detail::tiling<Codec>) {
    // The last block may have chunks to spare.
    constexpr std::size_t block = sizeof(typename Codec::payload_op::element);
    auto* const end             = reinterpret_cast<std::byte*>(args.payload) + plan.payload_bytes();
    cleared = detail::cuda_status(cudaMemsetAsync(end - block, 0, block, stream));
  } else {
    auto parts = static_cast<std::uint64_t>(plan.ranks().size);
    if constexpr (recoding<Codec>) { parts = plan.tiles(); }
    cleared = launch(detail::clear_parts_kernel<Codec, Element>,
                     parts,
                     detail::part_threads,
                     0,
                     args,
                     args.payload,
                     0u);
  }
  if (!cleared.ok()) { return cleared; }
  if (auto const s = launch_chunks(plan,
                                   args,
                                   detail::encode_parts_kernel<false, Codec, Element>,
                                   detail::encode_parts_kernel<true, Codec, Element>,
                                   detail::two_shot_grid<Codec>);
      !s.ok()) {
    return s;
  }
  if constexpr (recoding<Codec> && Codec::feeds_back) {
    // What hops add is a copy: feedback compares it with what was sent.
    return copy(args.parts.gathered, args.payload, plan.payload_bytes() / sizeof(std::uint32_t));
  }
  return {};
}

template <class Codec, class Element>
status cuda_executor::recompress(plan<Codec> const& plan,
                                 detail::exchange_args<Codec, Element> const& args) const
{
  if (plan.part_bytes() == 0) { return {}; }
  if (auto const s = launch(detail::clear_parts_kernel<Codec, Element>,
                            1,
                            detail::part_threads,
                            0,
                            args,
                            args.parts.gathered,
                            args.rank);
      !s.ok()) {
    return s;
  }
  return launch_owned(plan, args, detail::recompress_kernel<Codec, Element>);
}

template <class Codec, class Element>
status cuda_executor::decode_parts(plan<Codec> const& plan,
                                   detail::exchange_args<Codec, Element> const& args) const
{
  constexpr std::uint64_t threads = detail::part_threads;
  if (auto const s = launch(detail::inspect_parts_kernel<Codec, Element>,
                            (plan.chunks() + threads - 1) / threads,
                            detail::part_threads,
                            0,
                            args);
      !s.ok()) {
    return s;
  }
  constexpr auto grid = detail::two_shot_grid<Codec>;
  if constexpr (Codec::feeds_back) {
    if (auto const s = launch_chunks(plan,
                                     args,
                                     detail::keep_rest_kernel<false, Codec, Element>,
                                     detail::keep_rest_kernel<true, Codec, Element>,
                                     grid);
        !s.ok()) {
      return s;
    }
  }
  if constexpr (Codec::owner_feeds_back) {
    if (auto const s = launch_owned(plan, args, detail::keep_owner_rest_kernel<Codec, Element>);
        !s.ok()) {
      return s;
    }
  }
  return launch_chunks(plan,
                       args,
                       detail::decode_parts_kernel<false, Codec, Element>,
                       detail::decode_parts_kernel<true, Codec, Element>,
                       grid);
}

template <class Codec, class Element>
status cuda_executor::decode(plan<Codec> const& plan,
                             detail::exchange_args<Codec, Element> const& args) const
{
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
  if (plan.bypassed() > 0) {
    if (auto const s =
          launch(detail::bypass_kernel<false, Codec, Element>, plan.tensors(), 256, 0, args);
        !s.ok()) {
      return s;
    }
  }
  return launch(detail::finish_kernel<Codec, Element>,
                plan.tensors() == 0 ? 1 : plan.tensors(),
                detail::tensor_threads,
                detail::tensor_shared,
                args);
}

template <reduce_op Op>
status cuda_executor::reduce([[maybe_unused]] Op const& op,
                             typename Op::element* to,
                             typename Op::element const* a,
                             typename Op::element const* b,
                             std::size_t count) const
{
  using element = typename Op::element;
  if constexpr (recoding<Op>) {
    constexpr auto grid        = detail::two_shot_grid<detail::codec_of_op<Op>>;
    std::uint64_t const chunks = count * element::chunks;
    return launch(detail::recode_elements_kernel<Op>,
                  (chunks + grid.chunks_a_block - 1) / grid.chunks_a_block,
                  grid.threads,
                  grid.shared,
                  to,
                  a,
                  b,
                  count);
  } else if constexpr (has_combine_at<Op>) {
    constexpr std::size_t a_block = detail::reduce_threads * 4;
    return launch(detail::reduce_segments_kernel<Op>,
                  (count + a_block - 1) / a_block,
                  detail::reduce_threads,
                  0,
                  op,
                  to,
                  a,
                  b,
                  count);
  } else {
    using vector = detail::element_vector<element>;
    auto const misplace =
      (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(a) |
       reinterpret_cast<std::uintptr_t>(b)) %
      16;
    std::size_t const vectors   = misplace == 0 ? count / vector::count : 0;
    std::size_t const done      = vectors * vector::count;
    constexpr std::size_t block = detail::reduce_threads * detail::reduce_vectors;
    if (auto const s = launch(detail::reduce_vectors_kernel<Op>,
                              (vectors + block - 1) / block,
                              detail::reduce_threads,
                              0,
                              reinterpret_cast<vector*>(to),
                              reinterpret_cast<vector const*>(a),
                              reinterpret_cast<vector const*>(b),
                              vectors);
        !s.ok()) {
      return s;
    }
    return launch(detail::reduce_elements_kernel<Op>,
                  (count - done + detail::reduce_threads - 1) / detail::reduce_threads,
                  detail::reduce_threads,
                  0,
                  to + done,
                  a + done,
                  b + done,
                  count - done);
  }
}

template <class Item>
status cuda_executor::each(Item const& item, std::size_t count) const
{
  return launch(detail::item_kernel<Item>,
                (count + detail::item_threads - 1) / detail::item_threads,
                detail::item_threads,
                0,
                item,
                count);
}

template <class T>
status cuda_executor::copy(T* to, T const* from, std::size_t count) const
{
  if (count == 0) { return {}; }
  return detail::cuda_status(
    cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToDevice, stream));
}

}  // namespace tersum::inline v0
