// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of an exchange of chunks as launches of kernels with their grids, the same for a device and its emulator.

#pragma once

#include <tersum/chunk/detail/chunk_choice.hpp>
#include <tersum/codec_kinds.hpp>
#include <tersum/config.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/block_own_chunk.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_kernels.hpp>
#include <tersum/plan.hpp>
#include <tersum/stages.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>
#include <tersum/tuning.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief Launches the kernels of one exchange, one after the other. After a failure it launches nothing more.
template <class Executor, class Codec, class Element>
class launch_list {
 public:
  using codec_type = Codec;

  launch_list(Executor const& executor,
              tersum::plan<Codec> const& plan,
              exchange_args<Codec, Element> const& args)
    : executor_{executor}, plan_{plan}, args_{args}
  {
  }

  [[nodiscard]] tersum::plan<Codec> const& plan() const { return plan_; }
  [[nodiscard]] exchange_args<Codec, Element> const& args() const { return args_; }

  //! The first failure.
  [[nodiscard]] status result() const { return result_; }

  void operator()(auto const& kernel, std::uint64_t blocks) { launch(kernel, blocks, args_); }

  //! One thread for each of `count`.
  template <class Kernel>
  void threads(Kernel const& kernel, std::uint64_t count)
  {
    (*this)(kernel, blocks_of(count, Kernel::template threads<Codec, tuning_of<Executor>>));
  }

  //! Launches Kernel<false> for the regular chunks and Kernel<true> for the edges, each over the chunks that may be such.
  //! @param a_block   Chunks of a block.
  //! @param in_group  Chunks that lie in one group of `edge_groups`.
  //! @param together  Chunks that are edges if they are not all of one tensor: a power of two.
  template <template <bool> class Kernel>
  void chunks(std::uint64_t a_block  = grid_of<Codec>.chunks_a_block,
              std::uint64_t in_group = chunks_of_group<Codec>,
              std::uint64_t together = 1)
  {
    auto const launch_from = [&](auto kernel, std::uint64_t first, std::uint64_t count) {
      kernel.first = first;
      if (count > 0) { (*this)(kernel, blocks_of(count, a_block)); }
    };
    std::uint64_t const all = plan_.chunks();
    if constexpr (Codec::rotates_all) {
      launch_from(Kernel<false>{}, 0, all);
    } else if (all > 0) {
      record_facts const facts = find_facts();
      // Where there is one tensor, only the last chunk can be short.
      std::uint64_t const whole = minimum(plan_.coordinates() / Codec::chunk_size, all);
      // In the order of widths the short one lies anywhere.
      bool const ends = plan_.tensors() == 1 && !orders_chunks<Codec>;
      if (facts.whole) { launch_from(Kernel<false>{}, 0, ends ? whole : all); }
      if (facts.cut || facts.ends % together != 0 || facts.end > 0) {
        std::uint64_t const begin = minimum(facts.begin, all), end = facts.end;
        edge_groups const groups{.first = static_cast<std::uint32_t>(begin / in_group),
                                 .ends  = static_cast<std::uint32_t>(plan_.tensors())};
        std::uint64_t const others =
          begin < end ? (end + in_group - 1) / in_group - begin / in_group : 0;
        launch_from(Kernel<true>{}, groups.bits(), (plan_.tensors() + others) * in_group);
      }
    }
  }

  //! Which records are aligned to 16 bytes follows from the plan where their arrays are.
  [[nodiscard]] record_facts find_facts() const
  {
    if (is_aligned(args_, 0)) { return plan_.facts(bytes_of_coordinate<Codec, Element> == 4); }
    record_facts facts;
    plan_.for_each_record([&](tensor_record const& record) {
      facts.add(record, Codec::chunk_size, is_aligned(args_, record.offset));
    });
    return facts;
  }

  //! Launches a kernel that adds up over the chunks of tensors. Without chunks one block adds up nothing.
  void tensors(auto const& kernel)
  {
    auto args = args_;
    if (plan_.chunks() == 0) { args.tensors = 0; }
    std::uint64_t const blocks = tensor_blocks(args.tensors, plan_.chunks());
    launch(kernel, maximum(blocks, std::uint64_t{1}), args);
  }

  //! Launches a kernel over as many chunks as a rank may own.
  void owned(auto const& kernel) { (*this)(kernel, blocks_of(plan_.owned_chunks())); }

  //! The same of Kernel<InRows>: in rows where what it moves is not aligned.
  template <template <bool> class Kernel>
  void owned()
  {
    owned(Kernel<false>{});
  }
  template <template <bool> class Kernel>
  requires(in_metric<Codec> || publishing<Codec>) void owned()
  {
    bool aligned = true;
    plan_.for_each_record([&](tensor_record const& record) {
      aligned = aligned && (record.chunks == 0 || is_owned_aligned(args_, record));
    });
    aligned ? owned(Kernel<false>{}) : owned(Kernel<true>{});
  }

  //! Whether the kernel that encodes derives the steps.
  [[nodiscard]] bool derives_late() const
  {
    return derives_in_encode<Codec> &&
           plan_.chunks() * Codec::chunk_size <= numbers.derive_in_encode;
  }

  //! Launches a kernel over records in batches. If there is no record, one batch is empty.
  //! @param for_each  Calls with each record what it is given.
  template <class Kernel>
  void in_batches(Kernel kernel, auto const& for_each)
  {
    auto& batch      = kernel.batch;
    auto const flush = [&] {
      constexpr unsigned a_block = Kernel::records_a_block;
      (*this)(kernel, maximum((batch.count + a_block - 1) / a_block, 1u));
      batch.first += batch.count;
      batch.count = 0;
    };
    for_each([&](auto const& record) {
      batch.records[batch.count++] = record;
      if (batch.count == batch.capacity) { flush(); }
    });
    if (batch.count > 0 || batch.first == 0) { flush(); }
  }

  //! Launches a kernel in at most so many blocks, which wait for each other.
  void together(auto const& kernel, std::uint64_t blocks)
  {
    if (result_.ok()) { result_ = run_together(executor_, kernel, blocks, args_); }
  }

  //! @name Stages
  //! `run_stage(stage, launches)` is one of them, unless a codec brings its own along.
  //! @{
  void run(stage::initialize const& stage)
  {
    plan_.state_sections().for_each_cleared([&](std::size_t begin, std::size_t bytes) {
      auto* const to = reinterpret_cast<std::byte*>(args_.header) + begin;
      if (result_.ok()) { result_ = executor_.clear(to, bytes); }
    });
    write_shards();
    in_batches(
      initialize_kernel{{}, {}, stage.seed, plan_.coordinates(), plan_.state_fingerprint()},
      [&](auto const& write) { plan_.for_each_record(write); });
  }

  //! The state is in memory of the device, which is not read back.
  void run(stage::open) {}

  void run(stage::recall) { threads(recall_kernel{}, plan_.shard_size()); }

  void run(stage::gather_bypass) { bypass(bypass_kernel<true>{}, plan_.own_bypassed()); }

  void run(stage::measure)
  {
    if constexpr (measures_plainly<Codec>) {
      chunks<measure_kernel>();
    } else if constexpr (measures_magnitudes<Codec>) {
      chunks<magnitudes_kernel>();
    }
    if constexpr (measures_norms<Codec>) { norms(); }
    if constexpr (adds_norms<Codec>) { tensors(tensor_norms_kernel{}); }
    if constexpr (tells_ratios<Codec>) { threads(tell_ratios_kernel{}, plan_.tensors()); }
  }

  //! One launch; one more where energies count in units of their tensor's.
  void run(stage::select) { together(select_kernel{}, select_blocks(plan_.chunks(), numbers)); }

  void run(stage::derive_steps)
  {
    if (!derives_late()) { threads(steps_kernel{}, plan_.chunks()); }
  }

  void run(stage::recompress)
  {
    if (plan_.part_bytes() == 0) { return; }
    clear_rests(args_.parts.gathered, args_.rank, 1);
    recompress();
  }

  //! Its flag stops residuals that move while a payload is decoded, so it comes before that.
  void run(stage::return_bypass) { bypass(bypass_kernel<false>{}, plan_.bypassed()); }

  void run(stage::finish)
  {
    adds_up_at_end<Codec> ? tensors(finish_kernel{}) : (*this)(finish_kernel{}, 1);
  }
  //! @}

  //! Gradient to payload, by what travels: casts, those in the units of a metric, codes that are summed, parts, and this rank's shard.
  //! @{
  void run(stage::encode)
  {
    (*this)(cast_kernel<true>{}, cast_blocks<Codec>(plan_.chunks(), numbers));
  }
  void run(stage::encode) requires(casts<Codec>&& in_metric<Codec>)
  {
    chunks<encode_scaled_casts_kernel>();
  }
  void run(stage::encode) requires has_steps<Codec>
  {
    if constexpr (derives_in_encode<Codec>) {
      if (derives_late()) { return (*this)(derive_and_encode_kernel{}, blocks_of(plan_.chunks())); }
    }
    chunks<encode_kernel>();
  }
  void run(stage::encode) requires has_parts<Codec>
  {
    if (plan_.payload_bytes() == 0) { return; }
    auto const parts = copying<Codec> ? 1 : static_cast<std::uint64_t>(plan_.ranks().size);
    clear_rests(args_.payload, 0, parts);
    chunks<encode_parts_kernel>();
  }
  void run(stage::encode) requires sharding<Codec>
  {
    if (plan_.payload_bytes() == 0) { return; }
    auto const parts = static_cast<std::uint64_t>(plan_.ranks().size);
    if (plan_.has_rests()) { (*this)(clear_parts_kernel{{}, args_.payload, 0}, parts); }
    chunks<encode_parts_kernel>();
    if (plan_.cuts_chunks()) { (*this)(share_cut_kernel{}, parts); }
    keep_lost();
  }
  void run(stage::encode) requires publishing<Codec>
  {
    if (plan_.owned_chunks() == 0) { return; }
    clear_rests(args_.parts.gathered, args_.rank, 1);
    owned<publish_kernel>();
    keep_lost_of_shard();
  }
  //! @}

  //! Payload to gradient, likewise; of shards by the rank that gets them.
  //! @{
  void run(stage::decode)
  {
    (*this)(cast_kernel<false>{}, cast_blocks<Codec>(plan_.chunks(), numbers));
  }
  void run(stage::decode) requires(casts<Codec>&& in_metric<Codec>)
  {
    inspect_casts();
    chunks<decode_scaled_casts_kernel>();
  }
  void run(stage::decode) requires has_steps<Codec> { chunks<decode_kernel>(); }
  //! The whole chunks of this rank's shard first, then those that are edges.
  void run(stage::decode) requires(has_steps<Codec>&& summing<Codec>)
  {
    auto const whole = as_of_whole(args_);
    record_facts facts;
    plan_.for_each_record([&](tensor_record const& record) {
      if (!is_own(whole, record)) { return; }
      facts.add(record, Codec::chunk_size, is_aligned(whole, record.offset));
    });
    std::uint64_t const blocks = blocks_of(whole.parts.chunks);
    if (facts.whole) { launch(decode_kernel<false>{{whole.parts.first}, {}}, blocks, whole); }
    if (facts.cut || facts.end > 0) {
      launch(decode_kernel<true>{{whole.parts.first}, {}}, blocks, whole);
    }
  }
  void run(stage::decode) requires sharding<Codec> { owned<add_shard_kernel>(); }

  void run(stage::decode) requires has_parts<Codec>
  {
    threads(inspect_parts_kernel{}, plan_.chunks());
    keep_lost();
    keep_lost_by_owners();
    chunks<decode_parts_kernel>();
  }
  //! @}

 private:
  void launch(auto const& kernel, std::uint64_t blocks, exchange_args<Codec, Element> const& args)
  {
    if (result_.ok()) { result_ = executor_.run(kernel, blocks, args); }
  }

  //! The blocks of so many chunks, or whatever a block has `a_block` of.
  [[nodiscard]] static std::uint64_t blocks_of(
    std::uint64_t count, std::uint64_t a_block = grid_of<Codec>.chunks_a_block)
  {
    return (count + a_block - 1) / a_block;
  }

  //! The records of shards in a new state.
  //! @{
  void write_shards() {}
  void write_shards() requires in_shards<Codec>
  {
    in_batches(initialize_shards_kernel{}, [&](auto const& write) { plan_.for_each_shard(write); });
  }
  //! @}

  void bypass(auto const& kernel, std::uint64_t coordinates)
  {
    if (coordinates > 0) { (*this)(kernel, plan_.tensors()); }
  }

  //! @{
  void norms()
  {
    using shape                     = codec_norm_shape<Codec, Element>;
    constexpr std::uint64_t in_warp = shape::chunks_per_warp;
    chunks<norms_kernel>(shape::chunks_per_block, in_warp, in_warp);
  }

  void norms() requires in_metric<Codec> { chunks<scaled_norms_kernel>(); }
  //! @}

  //! Clears what codes and scales leave free of so many parts from `first` on, where they do: the last of equal parts has the fewest
  //! chunks. What is chosen only the device knows.
  void clear_rests(std::uint32_t* parts, std::uint32_t first, std::uint64_t count)
  {
    if (!selects<Codec>) {
      auto const last      = first + static_cast<std::uint32_t>(count) - 1;
      part_rest const rest = map_of_parts(args_, parts).rest_of(last);
      if (rest.begin >= rest.end) { return; }
    }
    (*this)(clear_parts_kernel{{}, parts, first}, count);
  }

  //! @{
  void recompress() { owned(recompress_kernel<false>{}); }
  void recompress() requires owner_feeds_back<Codec> { owned<recompress_kernel>(); }
  //! @}

  //! What feedback keeps of what a rank's codes lost, of its shard, and of what owners' codes lost; without feedback nothing.
  //! @{
  void keep_lost() {}
  void keep_lost() requires(feeds_back<Codec> && !publishing<Codec>)
  {
    chunks<keep_residual_kernel>();
  }
  void keep_lost_of_shard() {}
  void keep_lost_of_shard() requires feeds_back<Codec> { owned<keep_published_kernel>(); }
  void keep_lost_by_owners() {}
  void keep_lost_by_owners() requires owner_feeds_back<Codec>
  {
    owned<keep_owner_residual_kernel>();
  }
  //! @}

  //! Whether sums of casts are finite, before scales that the library keeps follow them.
  //! @{
  void inspect_casts() {}
  void inspect_casts() requires keeps_metric<Codec>
  {
    std::uint64_t const eights =
      plan_.payload_bytes() / (8 * sizeof(typename Codec::quantizer_type::element));
    threads(inspect_scaled_casts_kernel{{}, eights}, eights);
  }
  //! @}

  static constexpr cuda_tuning numbers = tuning_of<Executor>.cuda;

  Executor const& executor_;
  tersum::plan<Codec> const& plan_;
  exchange_args<Codec, Element> const& args_;
  status result_{};
};

template <class T>
inline constexpr bool is_launch_list = false;
template <class Executor, class Codec, class Element>
inline constexpr bool is_launch_list<launch_list<Executor, Codec, Element>> = true;

template <class T>
concept launching = is_launch_list<T>;

//! @brief Launches a stage, found by its arguments: codecs with stages of their own bring overloads along.
void run_stage(auto const& stage, launching auto& launches) { launches.run(stage); }

}  // namespace tersum::inline v0::detail
