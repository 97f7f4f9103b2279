// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of nccl_symmetric.cuh.

namespace tersum::inline v0 {

inline nccl_symmetric::nccl_symmetric(ncclComm_t comm,
                                      cuda_executor const& exec,
                                      std::span<std::byte> memory,
                                      int blocks) noexcept
  : comm_(comm), exec_(exec), memory_(memory), blocks_(blocks)
{
  error_ = ncclCommWindowRegister(
    comm_, memory_.data(), memory_.size(), &window_, NCCL_WIN_COLL_SYMMETRIC);
  if (error_ != ncclSuccess) { return; }
#if defined(NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER)
  ncclDevCommRequirements requirements = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
#else
  ncclDevCommRequirements requirements{};
#endif
  requirements.lsaBarrierCount = blocks_;
  error_                       = ncclDevCommCreate(comm_, &requirements, &device_);
  made_                        = error_ == ncclSuccess;
}

inline nccl_symmetric::~nccl_symmetric()
{
  if (made_) { ncclDevCommDestroy(comm_, &device_); }
  if (window_ != nullptr) { ncclCommWindowDeregister(comm_, window_); }
}

inline void nccl_symmetric::abandon() noexcept
{
  made_   = false;
  window_ = nullptr;
  error_  = ncclRemoteError;
}

inline status nccl_symmetric::check() const noexcept
{
  if (error_ != ncclSuccess) {
    return {error_code::transport_failed, "NCCL returned an error", static_cast<int>(error_)};
  }
  if (window_ == nullptr || device_.lsaSize != device_.nRanks) {
    return {error_code::unsupported, "not all ranks reach one another's memory: use reduce_over"};
  }
  return {};
}

template <reduce_op Op>
status nccl_symmetric::operator()(wire<Op> const& round) const
{
  using element = typename Op::element;
  if (status const s = detail::check_ranks(round, device_.nRanks); !s.ok()) { return s; }
  if (status const s = check_place(round.data, round.bytes()); !s.ok()) { return s; }
  rank_blocks const vectors{.count         = round.count / detail::in_vector<element>,
                            .element_bytes = 16,
                            .ranks         = device_.nRanks};
  return detail::launch_kernel(detail::symmetric_kernel<Op>,
                               static_cast<unsigned>(blocks_),
                               detail::symmetric_threads,
                               0,
                               exec_.stream,
                               device_,
                               window_,
                               place(round.data),
                               round.count,
                               vectors.begin(device_.rank),
                               vectors.begin(device_.rank + 1),
                               round.op);
}

template <class Round>
requires requires(Round const& round) { round.gathered; }
status nccl_symmetric::operator()(Round const& round) const
{
  return launch(detail::symmetric_gather_kernel<typename Round::element>, round.gathered, round);
}

template <class Round>
requires requires(Round const& round) { round.sent; }
status nccl_symmetric::operator()(Round const& round) const
{
  return launch(
    detail::symmetric_scatter_kernel<typename Round::element>, round.sent, round, round.received);
}

template <reduce_op Op, class Parts>
status nccl_symmetric::operator()(summed_wire_of<Op, Parts> const& round) const
{
  static_assert(!has_combine_at<Op>,
                "tersum: a reduce-scatter takes operations that do not depend on the position");
  return launch(detail::symmetric_sum_kernel<Op>, round.data, round, round.sum);
}

template <class Kernel, class Element, class Round, class... Further>
status nccl_symmetric::launch(Kernel* kernel,
                              Element* data,
                              Round const& round,
                              Further... further) const
{
  if (status const s = detail::check_ranks(round, device_.nRanks); !s.ok()) { return s; }
  std::size_t const bytes = round.begin(round.ranks) * sizeof(Element);
  if (status const s = check_place(data, bytes); !s.ok()) { return s; }
  // The kernels look for the part behind those of the ranks before, as if all were as large as this one: it may be that rank 0 has
  // none there, and the difference wraps. An empty part is launched too, because the others wait for this rank.
  std::size_t const count  = round.size(device_.rank);
  std::size_t const before = static_cast<std::size_t>(device_.rank) * count * sizeof(Element);
  return detail::launch_kernel(kernel,
                               static_cast<unsigned>(blocks_),
                               detail::symmetric_threads,
                               0,
                               exec_.stream,
                               device_,
                               window_,
                               place(data + round.begin(device_.rank)) - before,
                               count,
                               further...);
}

inline std::size_t nccl_symmetric::place(void const* data) const noexcept
{
  return static_cast<std::size_t>(static_cast<std::byte const*>(data) - memory_.data());
}

inline status nccl_symmetric::check_place(void const* data, std::size_t bytes) const noexcept
{
  if (status const s = check(); !s.ok()) { return s; }
  auto const* const at = static_cast<std::byte const*>(data);
  if (at < memory_.data() || at + bytes > memory_.data() + memory_.size()) {
    return {error_code::invalid_argument,
            "workspace does not lie in the memory that nccl_symmetric registered"};
  }
  return {};
}

}  // namespace tersum::inline v0
