// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of cuda_executor.cuh: exchanges of low-rank factors.

namespace tersum::inline v0 {

template <class Codec, class Element>
auto cuda_executor::low_rank_launch(detail::exchange_args<Codec, Element> const& args) const
{
  return [this, &args]<class Kernel>(Kernel const& kernel, std::uint64_t blocks) {
    return launch(detail::low_rank_kernel<Kernel, Codec, Element>,
                  blocks,
                  Kernel::threads,
                  Kernel::template shared<Codec>,
                  kernel,
                  args);
  };
}

template <class Codec, class Element>
status cuda_executor::initialize(plan<Codec> const& plan,
                                 detail::exchange_args<Codec, Element> const& args,
                                 std::uint64_t seed) const requires is_low_rank<Codec>
{
  auto const clear = [this](float* to, std::uint64_t count) {
    if (count == 0) { return status{}; }
    return detail::cuda_status(cudaMemsetAsync(to, 0, count * sizeof(float), stream));
  };
  if (auto const s = clear(args.warm, detail::round_up(args.elements, 4)); !s.ok()) { return s; }
  if constexpr (Codec::feeds_back) {
    if (auto const s = clear(args.residual, plan.coordinates()); !s.ok()) { return s; }
  }
  return detail::initialize_low_rank(plan, seed, low_rank_launch(args));
}

template <class Codec, class Element>
status cuda_executor::encode(plan<Codec> const& plan,
                             detail::exchange_args<Codec, Element> const& args) const requires
  is_low_rank<Codec>
{
  return detail::encode_low_rank(plan, low_rank_launch(args));
}

template <class Codec, class Element>
status cuda_executor::advance(plan<Codec> const& plan,
                              detail::exchange_args<Codec, Element> const& args) const requires
  is_low_rank<Codec>
{
  return detail::advance_low_rank(plan, low_rank_launch(args));
}

template <class Codec, class Element>
status cuda_executor::decode(plan<Codec> const& plan,
                             detail::exchange_args<Codec, Element> const& args) const requires
  is_low_rank<Codec>
{
  return detail::decode_low_rank(plan, low_rank_launch(args));
}

}  // namespace tersum::inline v0
