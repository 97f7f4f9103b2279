// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rounds of two shots and hops on a CUDA device: definitions of cuda_executor.cuh.

namespace tersum::inline v0 {

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
  bool const first = args.parts.recompressed.begin == 0;
  if (auto const s = launch(detail::clear_parts_kernel<Codec, Element>,
                            first ? 1 : 0,
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

}  // namespace tersum::inline v0
