// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Choices, casts and coordinates on a CUDA device: definitions of cuda_executor.cuh.

namespace tersum::inline v0 {

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

template <class Kernel, class... Args>
status cuda_executor::launch_coordinates(Kernel* kernel,
                                         std::uint64_t count,
                                         Args const&... args) const
{
  constexpr std::uint64_t threads = detail::coordinate_threads;
  return launch(kernel, (count + threads - 1) / threads, detail::coordinate_threads, 0, args...);
}

}  // namespace tersum::inline v0
