// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of `entropy_codec` as launches.

#pragma once

#include <tersum/entropy_codec.hpp>
#include <tersum/exchange/detail/block_stream_metric.hpp>
#include <tersum/exchange/detail/block_stream_owners.hpp>
#include <tersum/exchange/detail/block_streams.hpp>
#include <tersum/exchange/detail/exchange_kernels.hpp>
#include <tersum/exchange/detail/launch_list.hpp>
#include <tersum/stages.hpp>
#include <tersum/status.hpp>
#include <tersum/tuning.hpp>

#include <cstdint>

namespace tersum::inline v0::detail {

//! What kernels of streams have besides the arguments of the exchange.
template <class Codec>
struct stream_kernel : kernel_of_threads<&cuda_tuning::stream_threads> {
  stream_span<true, Codec::chunk_size> span;
};

//! @name Kernels with a thread for four values, or for what is kept of 32 in a block
//! @{
template <class Of>
struct fill_streams_kernel : stream_kernel<Of> {
  TERSUM_RUNS(fill_streams(ctx, args, this->span))
};

template <class Of>
struct keep_streams_kernel : stream_kernel<Of> {
  TERSUM_RUNS(keep_streams(ctx, args, this->span))
};

template <class Of>
struct return_streams_kernel : stream_kernel<Of> {
  TERSUM_RUNS(return_streams(ctx, args, this->span))
};

template <class Of>
struct add_kept_by_owner_kernel : stream_kernel<Of> {
  TERSUM_RUNS(add_kept_by_owner(ctx, args, this->span))
};

template <class Of>
struct keep_at_owner_kernel : stream_kernel<Of> {
  TERSUM_RUNS(keep_at_owner(ctx, args, this->span))
};
//! @}

//! @brief A kernel in a metric, which has the threads of other codecs' chunks. `first` is as of `first_chunk`.
template <class Of>
struct stream_metric_kernel : kernel_of_chunks {
  stream_span<true, Of::chunk_size> span;
  std::uint64_t first;
};

//! @name The same three in a metric
//! Without `Edge`: on chunks that are regular.
//! @{
template <class Of, bool Edge>
struct fill_in_metric_kernel : stream_metric_kernel<Of> {
  TERSUM_RUNS(fill_in_metric<Edge>(ctx, args, this->span, this->first))
};

template <class Of, bool Edge>
struct keep_in_metric_kernel : stream_metric_kernel<Of> {
  TERSUM_RUNS(keep_in_metric<Edge>(ctx, args, this->span, this->first))
};

template <class Of, bool Edge>
struct return_in_metric_kernel : stream_metric_kernel<Of> {
  TERSUM_RUNS(return_in_metric<Edge>(ctx, args, this->span, this->first))
};
//! @}

//! @name Kernels with a thread for a chunk
//! @{
template <class Of>
struct stream_peaks_kernel : stream_kernel<Of> {
  TERSUM_RUNS(static_cast<void>(args); stream_peaks(ctx, this->span))
};

template <class Of>
struct count_bits_kernel : stream_kernel<Of> {
  std::uint32_t apart;
  TERSUM_RUNS(static_cast<void>(args); count_bits(ctx, this->span, apart))
};

template <class Of>
struct size_streams_kernel : stream_kernel<Of> {
  TERSUM_RUNS(static_cast<void>(args); size_streams(ctx, this->span))
};

template <class Of>
struct write_streams_kernel : stream_kernel<Of> {
  TERSUM_RUNS(write_streams(ctx, args, this->span))
};

template <class Of>
struct add_streams_kernel : stream_kernel<Of> {
  TERSUM_RUNS(static_cast<void>(args); add_streams<Codec::chunk_size>(ctx, this->span))
};
//! @}

//! What kernels of whole blocks have besides: room for sums.
template <class Of>
struct stream_block_kernel : stream_kernel<Of> {
  template <class Codec>
  static constexpr int shared = 32 * static_cast<int>(sizeof(std::uint32_t));
};

//! One block a stream.
template <class Of>
struct take_finer_kernel : stream_block_kernel<Of> {
  TERSUM_RUNS(take_finer(ctx, args, this->span))
};

//! One block a part.
template <class Of>
struct inspect_streams_kernel : stream_block_kernel<Of> {
  TERSUM_RUNS(inspect_streams(ctx, args, this->span))
};

//! Launches them on the streams of an exchange.
template <class Launches>
class stream_launches {
  using codec = codec_of<Launches>;

 public:
  stream_launches(Launches& launches,
                  stream_set const& set,
                  std::uint32_t* words,
                  bool of_mean = false)
    : launches_{launches}, span_{set,
                                 launches.plan().memory_of_streams(launches.args().parts.gathered,
                                                                   of_mean),
                                 words}
  {
  }

  //! A launch of as many threads as chunks have parts.
  template <template <class> class Kernel, class... More>
  void operator()(std::uint64_t parts, More const&... more) const
  {
    constexpr std::uint64_t threads = static_cast<std::uint64_t>(
      stream_peaks_kernel<codec>::template threads<codec,
                                                   tuning_of<typename Launches::executor_type>>);
    std::uint64_t const blocks = (span_.set.slots * parts + threads - 1) / threads;
    launches_(Kernel<codec>{{{}, span_}, more...}, blocks * span_.set.streams);
  }

  //! A launch with a thread for `Values` values of a chunk or, in a metric, one for the regular chunks and one for the others.
  template <template <class> class Kernel, template <class, bool> class InMetric, int Values = 4>
  void on_values() const
  {
    if constexpr (in_metric<codec>) {
      launches_.chunks([&]<bool Edge>() { return InMetric<codec, Edge>{{{}, span_, 0}}; });
    } else {
      this->template operator()<Kernel>(codec::chunk_size / Values);
    }
  }

  //! Values to streams.
  void encode() const
  {
    launches_.clear(span_.words, span_.set.words * span_.set.streams);
    launches_.clear(reinterpret_cast<std::uint32_t*>(span_.memory.searches),
                    span_.set.streams * (sizeof(stream_search) / sizeof(std::uint32_t)));
    this->template operator()<stream_peaks_kernel>(1);
    for (std::uint32_t apart = stream_search::numbers / 8; apart > 0; apart /= 8) {
      this->template operator()<count_bits_kernel>(1, apart);
    }
    this->template operator()<size_streams_kernel>(1);
    launches_(take_finer_kernel<codec>{{{{}, span_}}}, span_.set.streams);
    this->template operator()<write_streams_kernel>(1);
  }

  //! Where the bits of chunks begin, in all parts.
  void inspect() const
  {
    launches_(inspect_streams_kernel<codec>{{{{}, span_}}},
              std::uint64_t{span_.set.streams} * span_.set.copies);
  }

 private:
  Launches& launches_;
  stream_span<true, codec::chunk_size> span_;
};

//! Eight launches.
template <class Executor, entropy_coding Codec, class Element>
[[nodiscard]] status run_stage(stage::encode, launch_list<Executor, Codec, Element>& launches)
{
  if (launches.plan().chunks() == 0) { return launches.result(); }
  stream_launches const streams{launches, launches.plan().sent(), launches.args().payload};
  streams.template on_values<fill_streams_kernel, fill_in_metric_kernel>();
  streams.encode();
  return launches.result();
}

//! This rank's part of the mean.
template <class Launches>
[[nodiscard]] stream_launches<Launches> launches_of_mean(Launches& launches)
{
  stream_set const mean = launches.plan().mean();
  auto* const own       = launches.args().parts.gathered + launches.args().rank * mean.words;
  return {launches, mean, own, true};
}

//! Nine launches, if owners keep what they lose ten.
template <class Executor, entropy_coding Codec, class Element>
[[nodiscard]] status run_stage(stage::recompress, launch_list<Executor, Codec, Element>& launches)
{
  auto const& parts = launches.args().parts;
  if (launches.plan().chunks() == 0 || !completes_part(launches.args())) {
    return launches.result();
  }
  stream_launches const all{launches, launches.plan().received(), parts.received, true};
  all.inspect();
  all.template operator()<add_streams_kernel>(1);
  if constexpr (owner_feeds_back<Codec>) {
    all.template operator()<add_kept_by_owner_kernel>(Codec::chunk_size / 4);
  }
  launches_of_mean(launches).encode();
  return launches.result();
}

//! Three launches, with feedback of ranks one more, and of owners one more.
template <class Executor, entropy_coding Codec, class Element>
[[nodiscard]] status run_stage(stage::decode, launch_list<Executor, Codec, Element>& launches)
{
  if (launches.plan().chunks() == 0) { return launches.result(); }
  stream_launches const streams{
    launches, launches.plan().gathered(), launches.args().parts.gathered};
  streams.inspect();
  if constexpr (feeds_back<Codec>) {
    stream_launches{launches, launches.plan().sent(), launches.args().payload}
      .template on_values<keep_streams_kernel, keep_in_metric_kernel, values_kept_at_once<Codec>>();
  }
  if constexpr (owner_feeds_back<Codec>) {
    // The mean's values may lie where sums will.
    launches_of_mean(launches).template operator()<keep_at_owner_kernel>(
      Codec::chunk_size / values_kept_at_once<Codec>);
  }
  streams.template operator()<add_streams_kernel>(1);
  streams.template on_values<return_streams_kernel, return_in_metric_kernel>();
  return launches.result();
}

}  // namespace tersum::inline v0::detail
