// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of nccl_fused.cuh.

namespace tersum::inline v0 {

namespace detail {

inline constexpr std::size_t fused_line = 128;  //!< Flags begin at a multiple of it.

[[nodiscard]] constexpr std::size_t fused_flag_bytes(int blocks, int ranks) noexcept
{
  std::size_t const words =
    fused_flags::words(static_cast<std::size_t>(blocks), static_cast<std::size_t>(ranks));
  return round_up(words * sizeof(std::uint32_t), fused_line);
}

//! @brief Whether the current device holds so many blocks of a kernel together.
template <class Flags, class Codec, class Element>
[[nodiscard]] status check_resident(std::uint32_t blocks)
{
  constexpr chunk_grid grid = fused_grid<Codec>;
  auto* const kernel        = fused_kernel<Flags, Codec, Element>;
  std::uint64_t together    = 0;
  if (status const s = count_resident<Flags, Codec, Element>(
        reinterpret_cast<void const*>(kernel), grid.threads, grid.shared, together);
      !s.ok()) {
    return s;
  }
  if (together < blocks) {
    return {
      error_code::unsupported,
      "blocks wait for one another and this device does not hold all of them: give nccl_fused fewer"};
  }
  return {};
}

}  // namespace detail

template <class Codec>
constexpr std::size_t fused_memory_bytes(plan<Codec> const& plan, int blocks) noexcept
{
  return detail::round_up(plan.workspace_bytes(), detail::fused_line) +
         detail::fused_flag_bytes(blocks, plan.ranks().size);
}

inline nccl_fused::nccl_fused(ncclComm_t comm,
                              cuda_executor const& exec,
                              std::span<std::byte> memory,
                              int blocks) noexcept
  : memory_(memory), blocks_(blocks), flags_at_(flags_at(comm, memory, blocks)),
    // Before the ranks have registered their memory no other one sets a flag.
    ready_(detail::cuda_status(
      cudaMemsetAsync(memory.data() + flags_at_, 0, memory.size() - flags_at_, exec.stream))),
    rounds_(
      [&] {
        if (ready_.ok()) { ready_ = detail::cuda_status(cudaStreamSynchronize(exec.stream)); }
        return comm;
      }(),
      exec,
      memory,
      std::min(blocks, 32))
{
}

inline std::size_t nccl_fused::flags_at(ncclComm_t comm,
                                        std::span<std::byte> memory,
                                        int blocks) noexcept
{
  int ranks = 0;
  if (ncclCommCount(comm, &ranks) != ncclSuccess || blocks < ranks) { return memory.size(); }
  std::size_t const bytes = detail::fused_flag_bytes(blocks, ranks);
  return memory.size() < bytes ? memory.size()
                               : (memory.size() - bytes) / detail::fused_line * detail::fused_line;
}

inline status nccl_fused::check() const noexcept
{
  if (status const s = rounds_.check(); !s.ok()) { return s; }
  if (flags_at_ == memory_.size()) {
    return {
      error_code::invalid_argument,
      "nccl_fused needs a block for each rank, and memory for their flags: fused_memory_bytes"};
  }
  return ready_;
}

template <class Flags, class Codec, class Element>
status nccl_fused::exchange(plan<Codec> const& plan,
                            detail::exchange_args<Codec, Element> const& args) const
{
  static_assert(detail::fuses_sums<Codec> || detail::fuses_parts<Codec>,
                "tersum: nccl_fused takes in_wire and two_shot under fixed_chunks, two_shot "
                "without feedback, none with scales that the library keeps: use nccl_symmetric");
  if (plan.ranks().size != rounds_.device_.nRanks) {
    return {error_code::invalid_argument,
            "plan is of another number of ranks than the communicator"};
  }
  if (status const s = check(); !s.ok()) { return s; }
  constexpr detail::chunk_grid grid = detail::fused_grid<Codec>;
  std::uint64_t const tiles = (plan.chunks() + grid.chunks_a_block - 1) / grid.chunks_a_block;
  if (tiles == 0) { return {}; }
  detail::fused_shape shape{.payload     = rounds_.place(args.payload),
                            .mean        = 0,
                            .flags       = flags_at_,
                            .flag_blocks = static_cast<std::uint32_t>(blocks_),
                            .tiles       = static_cast<std::uint32_t>(tiles),
                            .turns       = 0,
                            .rank        = plan.ranks().rank,
                            .ranks       = plan.ranks().size};
  std::size_t end = shape.payload + plan.payload_bytes();
  if constexpr (scattering<Codec>) {
    shape.mean = rounds_.place(args.parts.gathered);
    end        = std::max(end, shape.mean + plan.mean_bytes());
  }
  if (shape.payload >= flags_at_ || end > flags_at_) {
    return {error_code::invalid_argument, "workspace does not lie in that of nccl_fused"};
  }
  auto const ranks = static_cast<std::uint64_t>(shape.ranks);
  // As large a part of the blocks as fits where all of them would with 128 registers a thread, but one group at least.
  std::uint64_t const fit = std::uint64_t{shape.flag_blocks} * detail::fused_together<Codec> / 512;
  auto const most         = std::max(fit / ranks, std::uint64_t{1});
  auto const groups       = std::min((tiles + ranks - 1) / ranks, most);
  auto const blocks       = static_cast<std::uint32_t>(groups * ranks);
  shape.turns             = (shape.tiles + blocks - 1) / blocks;
  auto* const kernel      = detail::fused_kernel<Flags, Codec, Element>;
  if constexpr (grid.shared > 48 * 1024) {
    if (status const s = detail::cuda_status(
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, grid.shared));
        !s.ok()) {
      return s;
    }
  }
  if (status const s = detail::check_resident<Flags, Codec, Element>(blocks); !s.ok()) { return s; }
  auto with_clip = args;
  if constexpr (detail::looks_up_clip<Codec>) {
    with_clip.codec.coder.range.clip = detail::clip_of(args.codec, args.world);
  }
  return detail::launch_kernel<detail::launch_kind::together>(kernel,
                                                              blocks,
                                                              grid.threads,
                                                              grid.shared,
                                                              rounds_.exec_.stream,
                                                              with_clip,
                                                              rounds_.window_,
                                                              shape);
}

}  // namespace tersum::inline v0
