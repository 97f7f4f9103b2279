// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The kernels of exchanges of chunks: what an executor calls with a context and arguments, its threads and its shared memory.

#pragma once

#include <tersum/chunk/detail/block_selection.hpp>
#include <tersum/config.hpp>
#include <tersum/exchange/detail/block_cast.hpp>
#include <tersum/exchange/detail/block_coding.hpp>
#include <tersum/exchange/detail/block_measure.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/block_part_stages.hpp>
#include <tersum/exchange/detail/block_scaled_cast.hpp>
#include <tersum/exchange/detail/block_steps.hpp>
#include <tersum/quantize/detail/block_encode.hpp>
#include <tersum/tuning.hpp>

#include <cstddef>
#include <cstdint>

//! The body of a kernel: a call that names its context `ctx` and the arguments of the exchange `args`.
#define TERSUM_RUNS(...)                                                                           \
  template <class Context, class Codec, class Element>                                             \
  TERSUM_BODY void operator()(Context const& ctx, exchange_args<Codec, Element> const& args) const \
  {                                                                                                \
    __VA_ARGS__;                                                                                   \
  }

namespace tersum::inline v0::detail {

//! @brief A kernel of `Threads` threads per block. The compiler keeps its registers so few that at least `Blocks` blocks fit a
//! multiprocessor; 0 sets no bound. Each is a number, or the member of `cuda_tuning` that says it.
template <auto Threads, auto Blocks = 0>
struct kernel_of_threads {
  template <class Codec, tuning Tuning = tuning{}>
  static constexpr int blocks = number_of<Tuning>(Blocks);
  template <class Codec, tuning Tuning = tuning{}>
  static constexpr int threads = number_of<Tuning>(Threads);
  template <class Codec>
  static constexpr int shared = 0;  //!< Bytes of shared memory, unless the kernel says otherwise.
};

//! @brief A kernel of as many threads as chunks need.
struct kernel_of_chunks {
  template <class Codec, tuning Tuning = tuning{}>
  static constexpr int blocks = 0;
  template <class Codec, tuning Tuning = tuning{}>
  static constexpr int threads = grid_of<Codec>.threads;
  template <class Codec>
  static constexpr int shared = grid_of<Codec>.shared;
};

//! @brief The same with codebooks.
struct kernel_of_parts : kernel_of_chunks {
  template <class Codec>
  static constexpr int shared = two_shot_grid<Codec>.shared;
};

//! @brief Whether blocks on chunks of the gradient may have a bound. In a metric threads need more registers than that leaves.
template <class Codec>
inline constexpr bool may_be_bounded = own_chunk<Codec>::in_warp && !in_metric<Codec> &&
                                       in_few_registers<typename Codec::quantizer_type>;

//! @brief A kernel on chunks of the gradient. If their codes have several widths at least `Blocks` blocks share a multiprocessor. In
//! a metric, or with feedback, threads need more registers than that leaves.
template <class Kernel, int cuda_tuning::*Blocks>
struct kernel_of_widths : Kernel {
  template <class Codec>
  static constexpr bool bounded =
    several_bits<Codec> && !feeds_back<Codec> && may_be_bounded<Codec>;
  template <class Codec, tuning Tuning = tuning{}>
  static constexpr int blocks = bounded<Codec> ? Tuning.cuda.*Blocks : 0;
};

//! @brief A kernel of small exchanges, where launches count: its blocks may be launched while the kernel before it on the stream ends, and then wait
//! for that.
template <class Kernel>
concept overlapping_kernel = Kernel::overlaps;

//! @brief What a kernel on chunks has besides: the number of the first chunk; at edges the bits of `edge_groups`.
struct first_chunk {
  std::uint64_t first;
};

//! One block a tensor of the batch.
struct initialize_kernel : kernel_of_threads<&cuda_tuning::record_threads> {
  static constexpr unsigned records_a_block = 1;
  record_batch<tensor_record> batch;
  std::uint64_t seed;
  std::uint64_t coordinates;
  std::uint64_t fingerprint;
  TERSUM_RUNS(initialize_tensors(ctx, args, batch, seed, coordinates, fingerprint))
};

//! One block a tensor.
template <bool Encode>
struct bypass_kernel : kernel_of_threads<&cuda_tuning::bypass_threads> {
  TERSUM_RUNS(bypass_tensors<Encode>(ctx, args))
};

//! @name Kernels on chunks
//! Without `Edge`: on those that are regular.
//! @{
template <bool Edge>
struct norms_kernel : first_chunk, kernel_of_threads<128> {
  TERSUM_RUNS(chunk_norms<Edge>(ctx, args, first))
};

template <bool Edge>
struct scaled_norms_kernel : first_chunk, kernel_of_chunks {
  TERSUM_RUNS(scaled_norms<Edge>(ctx, args, first))
};

template <bool Edge>
struct magnitudes_kernel : first_chunk, kernel_of_chunks {
  TERSUM_RUNS(chunk_magnitudes<Edge>(ctx, args, first))
};

template <bool Edge>
struct measure_kernel : first_chunk, kernel_of_chunks {
  template <class Codec>
  static constexpr int shared = measure_shared<Codec>;
  TERSUM_RUNS(measure_chunks<Edge>(ctx, args, first))
};

template <bool Edge>
struct encode_kernel : first_chunk,
                       kernel_of_widths<kernel_of_chunks, &cuda_tuning::encode_blocks_of_widths> {
  TERSUM_RUNS(encode_chunks<Edge>(ctx, args, first))
};

//! What counts and decodes by butterflies would otherwise take more registers. Tiles take no shared memory.
template <bool Edge>
struct decode_kernel : first_chunk, kernel_of_chunks {
  template <class Codec>
  static constexpr int shared = !Edge && decodes_on_tiles<Codec> ? 0 : grid_of<Codec>.shared;
  template <class Codec, tuning Tuning = tuning{}>
  static constexpr int blocks =
    !Edge && saturates<Codec> && may_be_bounded<Codec> && !decodes_on_tiles<Codec>
      ? Tuning.cuda.decode_blocks_of_widths
      : 0;
  TERSUM_RUNS(decode_chunks<Edge>(ctx, args, first))
};

template <bool Edge>
struct encode_parts_kernel
  : first_chunk,
    kernel_of_widths<kernel_of_parts, &cuda_tuning::encode_blocks_of_widths> {
  TERSUM_RUNS(encode_parts<Edge>(ctx, args, first))
};

template <bool Edge>
struct keep_residual_kernel : first_chunk, kernel_of_parts {
  TERSUM_RUNS(keep_residual<Edge>(ctx, args, first))
};

template <bool Edge>
struct decode_parts_kernel : first_chunk, kernel_of_parts {
  using widths = kernel_of_widths<kernel_of_parts, &cuda_tuning::decode_blocks_of_widths>;
  //! Codes of more bits, and shorter chunks, would spill.
  template <class Codec>
  static constexpr bool bounded = !Edge && !several_bits<Codec> && may_be_bounded<Codec> &&
                                  Codec::chunk_size == 1024 && Codec::quantizer_type::bits <= 4;
  // What adds two floats at once wants them in pairs of registers, of which 48 are too few; so are they where it loops over copies.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
  template <class Codec>
  static constexpr int fewer = 1;
#else
  template <class Codec>
  static constexpr int fewer = copying<Codec> ? 1 : 0;
#endif
  template <class Codec, tuning Tuning = tuning{}>
  static constexpr int blocks = bounded<Codec>        ? Tuning.cuda.decode_blocks - fewer<Codec>
                                : keeps_metric<Codec> ? Tuning.cuda.decode_blocks_of_scales
                                                      : widths::template blocks<Codec, Tuning>;
  TERSUM_RUNS(decode_parts<Edge>(ctx, args, first))
};
//! @}

//! @brief On all chunks.
struct derive_and_encode_kernel : kernel_of_chunks {
  static constexpr bool overlaps = true;
  TERSUM_RUNS(derive_and_encode(ctx, args))
};

//! @name Kernels on the chunks that a rank owns
//! @{
//! With `InRows` where the scales of a metric are not aligned.
template <bool InRows>
struct recompress_kernel : kernel_of_parts {
  // The warps of a chunk above 1024 coordinates add their sums up through shared memory.
  template <class Codec>
  static constexpr bool shares = codebook_room<Codec>() > 0 || owner_feeds_back<Codec> ||
                                 !own_chunk<Codec>::in_warp;
  template <class Codec>
  static constexpr int shared = shares<Codec> ? two_shot_grid<Codec>.shared : 0;
  TERSUM_RUNS(in_owned_chunk<chunk_in_lanes<true, InRows, Codec, Element, Context>>(
    ctx, args, [](auto& own) { recompress_chunk(own); }))
};

template <bool InRows>
struct keep_owner_residual_kernel : kernel_of_parts {
  template <class Codec, tuning Tuning = tuning{}>
  static constexpr int blocks = in_metric<Codec> ? 0 : Tuning.cuda.owner_blocks;
  TERSUM_RUNS(if (!step_is_poisoned(args)) {
    in_owned_chunk<chunk_in_lanes<true, InRows, Codec, Element, Context>>(
      ctx, args, [](auto& own) { keep_lost_of_mean(own); });
  })
};
//! @}

//! @name Kernels of sharded codecs
//! @{
struct initialize_shards_kernel : kernel_of_threads<32> {
  static constexpr unsigned records_a_block = 32;
  record_batch<shard_record> batch;
  TERSUM_RUNS(batch.write(ctx, args.parts.records))
};

//! One block a part.
struct share_cut_kernel : kernel_of_threads<&cuda_tuning::part_threads> {
  TERSUM_RUNS(share_cut_chunk(ctx, args))
};

template <bool InRows>
struct add_shard_kernel : kernel_of_parts {
  TERSUM_RUNS(in_owned_chunk<chunk_in_lanes<true, InRows, Codec, Element, Context>>(
    ctx, args, [](auto& own) { add_chunk_of_shard(own); }))
};
//! @}

//! @name Kernels of values codecs
//! @{

//! One thread a coordinate of the shard.
struct recall_kernel : kernel_of_threads<&cuda_tuning::part_threads> {
  TERSUM_RUNS(auto const at = std::uint64_t{ctx.block_rank()} * ctx.block_threads() +
                              ctx.thread_rank();
              if (at < args.parts.end - args.parts.begin) { recall_held(ctx, args, at); })
};

//! With `InRows` for shards that are not aligned.
template <bool InRows>
struct publish_kernel : kernel_of_parts {
  TERSUM_RUNS(publish_part<InRows>(ctx, args))
};

template <bool InRows>
struct keep_published_kernel : kernel_of_parts {
  TERSUM_RUNS(keep_published<InRows>(ctx, args))
};
//! @}

//! `tensor_blocks` blocks.
struct tensor_norms_kernel : kernel_of_threads<tensor_threads> {
  template <class Codec>
  static constexpr int shared = tensor_shared(1);
  TERSUM_RUNS(tensor_norms(ctx, args))
};

//! Several blocks of it wait for each other.
struct select_kernel : kernel_of_threads<&cuda_tuning::select_threads> {
  static constexpr bool overlaps = true;
  template <class Codec, tuning Tuning = tuning{}>
  static constexpr int blocks =
    Codec::chunker_type::level_count == 1 ? Tuning.cuda.select_blocks
                                          : Tuning.cuda.select_blocks_of_widths;
  template <class Codec>
  static constexpr int shared = select_shared;
  TERSUM_RUNS(select_of<Codec::chunker_type::level_count>(ctx, args))
};

//! One thread a chunk.
struct steps_kernel : kernel_of_threads<&cuda_tuning::step_threads> {
  static constexpr bool overlaps = true;
  TERSUM_RUNS(derive_steps(ctx, args))
};

//! One thread a tensor.
struct tell_ratios_kernel : kernel_of_threads<&cuda_tuning::step_threads> {
  TERSUM_RUNS(auto const tensor = std::uint64_t{ctx.block_rank()} * step_threads<Context> +
                                  ctx.thread_rank();
              if (tensor < args.tensors) { tell_ratio(args, tensor); })
};

//! Where chunks are chosen, a thread has eight coordinates of one that travels; otherwise a block has one chunk.
template <bool Encode>
struct cast_kernel : kernel_of_threads<&cuda_tuning::cast_threads> {
  TERSUM_RUNS(cast_chunks<Encode>(ctx, args))
};

//! @name Kernels of casts in a metric
//! @{
template <bool Edge>
struct encode_scaled_casts_kernel : first_chunk, kernel_of_chunks {
  TERSUM_RUNS(encode_scaled_casts<Edge>(ctx, args, first))
};

template <bool Edge>
struct decode_scaled_casts_kernel : first_chunk, kernel_of_chunks {
  TERSUM_RUNS(decode_scaled_casts<Edge>(ctx, args, first))
};

//! One thread for eight elements of the payload.
struct inspect_scaled_casts_kernel : kernel_of_threads<&cuda_tuning::part_threads> {
  std::uint64_t eights;
  TERSUM_RUNS(inspect_scaled_casts(ctx, args, eights))
};
//! @}

//! One block a part.
struct clear_parts_kernel : kernel_of_threads<&cuda_tuning::part_threads> {
  std::uint32_t* parts;
  std::uint32_t first;
  TERSUM_RUNS(clear_parts(ctx, args, parts, first))
};

//! One thread a chunk.
struct inspect_parts_kernel : kernel_of_threads<&cuda_tuning::part_threads> {
  TERSUM_RUNS(inspect_chunk(
    ctx, args, std::uint64_t{ctx.block_rank()} * part_threads<Context> + ctx.thread_rank()))
};

//! `tensor_blocks` blocks where there is something to add up, otherwise one.
struct finish_kernel : kernel_of_threads<tensor_threads> {
  static constexpr bool overlaps = true;
  template <class Codec>
  static constexpr int shared = adds_up_at_end<Codec> ? tensor_shared(sums_at_end<Codec>) : 0;
  TERSUM_RUNS(finish_exchange(ctx, args))
};

template <class Context>
inline constexpr int item_threads = tuning_of<Context>.cuda.item_threads;

//! @brief One item a thread, `count` of them, which do not know each other.
template <class Item, class Context>
TERSUM_BODY void each_item(Context const& ctx, Item const& item, std::size_t count)
{
  std::size_t const at =
    static_cast<std::size_t>(ctx.block_rank()) * item_threads<Context> + ctx.thread_rank();
  if (at < count) { item(ctx, at); }
}

}  // namespace tersum::inline v0::detail
