// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! TopK by a threshold from a sample: what its first stage does otherwise, on the CPU and as kernels, to the same bits.

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/chunk/detail/block_selection.hpp>
#include <tersum/chunk/detail/chunk_selection.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/exchange/detail/block_measure.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/exchange_energies.hpp>
#include <tersum/exchange/detail/launch_list.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/tuning.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The number of a sample's coordinate in the gradient.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE std::uint64_t sampled_of(exchange_args<Codec, Element> const& args,
                                                     std::uint64_t j)
{
  return args.codec.chunker.sampled(j, args.chunks, args.header->sign_key);
}

//! @brief The memory of the selection from the sample, behind that of the choice.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE selection_scratch* sample_scratch(
  exchange_args<Codec, Element> const& args)
{
  return args.selection.scratch + 1;
}

//! @brief What a selection works with that finds the threshold: the sample in the place of the gradient.
template <class Codec, class Element>
struct sample_args {
  exchange_args<Codec, Element> const& exchange;
  std::uint64_t chunks;
  selection_args selection;
};

//! @brief Of `size` sampled coordinates that one is the threshold which `above` others exceed.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE sample_args<Codec, Element> sample_of(
  exchange_args<Codec, Element> const& args, std::uint64_t size, std::uint32_t above)
{
  sample_args<Codec, Element> sample{args, size, args.selection};
  sample.selection.scratch       = sample_scratch(args);
  sample.selection.rule.capacity = above;
  return sample;
}

//! @brief What encodes on `threads` threads.
template <class Codec, class Element>
class cpu_sampled_coordinates {
 public:
  explicit cpu_sampled_coordinates(cpu_work<Codec, Element> const& work)
    : threads_(work.threads), set_(work.instructions), numbers_(work.numbers), args_(work.args),
      top_(work)
  {
  }

  void encode() const
  {
    std::uint32_t const least = threshold();
    if (send_listed(list(least))) { return; }
    top_.choose([&](std::uint64_t i) {
      std::uint32_t const magnitude = top_.magnitude(i);
      return magnitude >= least ? magnitude : 0u;
    });
    top_.send();
  }

 private:
  //! Finds the threshold in the sample.
  [[nodiscard]] std::uint32_t threshold() const
  {
    sampled_coordinates const& chunker = args_.codec.chunker;
    std::uint32_t const above =
      chunker.sample_rank(args_.selection.rule.capacity, args_.chunks) - 1;
    auto const sample       = sample_of(args_, chunker.sample_size(args_.chunks), above);
    selection_header& found = sample.selection.scratch->header;
    chunk_selection{threads_,
                    sample.selection.rule,
                    sample.chunks,
                    sample.selection.scratch->histogram[0],
                    sample.selection.places,
                    numbers_.least_selected}
      .run(
        [&](std::uint64_t j) {
          // The sample lies far apart, and nothing else tells the processor where.
          prefetch(sampled_of(args_, minimum(j + ahead, sample.chunks - 1)));
          return top_.magnitude(sampled_of(args_, j));
        },
        found);
    return found.threshold;
  }

  //! Lists the coordinates that reach a threshold, in ascending order and in the place of places. Returns how many there are.
  [[nodiscard]] std::uint64_t list(std::uint32_t least) const
  {
    constexpr int max_shares = chunk_selection::max_shares;
    auto const most          = static_cast<std::uint64_t>(minimum(threads_, max_shares));
    std::uint64_t const shares =
      maximum<std::uint64_t>(1, minimum(most, args_.chunks / numbers_.least_selected));
    std::uint64_t counts[max_shares];
    parallel_for(threads_, shares, [&](std::uint64_t share) {
      std::uint64_t const begin  = args_.chunks * share / shares;
      std::uint64_t const end    = args_.chunks * (share + 1) / shares;
      std::uint32_t* const found = args_.selection.places + begin;
      std::uint64_t count        = 0;
      if constexpr (feeds_back<Codec>) {
        for (std::uint64_t i = begin; i < end; ++i) {
          found[count] = static_cast<std::uint32_t>(i);
          count += top_.magnitude(i) >= least ? 1u : 0u;
        }
      } else {
        count = list_reaching(set_, args_.gradient, begin, end, least, found);
      }
      counts[share] = count;
    });
    std::uint64_t all = counts[0];
    for (std::uint64_t share = 1; share < shares; ++share) {
      std::uint32_t const* const found = args_.selection.places + args_.chunks * share / shares;
      std::copy(found, found + counts[share], args_.selection.places + all);
      all += counts[share];
    }
    return all;
  }

  //! Sends of the first `count` that are listed those that travel. Does nothing and returns false if they are so many that their
  //! list leaves no room for their places.
  [[nodiscard]] bool send_listed(std::uint64_t count) const
  {
    if (count > args_.chunks / 2) { return false; }
    selection_args const& selection = args_.selection;
    std::uint32_t const wanted      = selection.rule.capacity;
    coordinate_part const part      = part_of(args_, args_.rank);
    if (count < wanted) {
      add_in_turn(static_cast<std::uint32_t>(count), part.index);
    } else {
      choose_listed(count, part.index);
    }
    if constexpr (feeds_back<Codec>) {
      // What does not travel is kept, so that all are gone through once more.
      std::fill_n(selection.places, args_.chunks, 0u);
      for (std::uint32_t k = 0; k < wanted; ++k) {
        selection.places[part.index[k]] = k << place_shift | 1u;
      }
      top_.send();
    } else {
      constexpr std::uint32_t at_once = 256;
      Element values[at_once];
      for (std::uint32_t first = 0; first < wanted; first += at_once) {
        std::uint32_t const here = minimum(at_once, wanted - first);
        for (std::uint32_t k = 0; k < here; ++k) {
          prefetch(part.index[minimum(first + k + static_cast<std::uint32_t>(ahead), wanted - 1)]);
          values[k] = args_.gradient[part.index[first + k]];
        }
        static_cast<void>(convert_values(set_, +values, part.value + first, 1.0f, here));
      }
    }
    return true;
  }

  //! Writes the numbers of the largest that are listed.
  void choose_listed(std::uint64_t count, std::uint32_t* index) const
  {
    selection_args const& selection   = args_.selection;
    std::uint32_t const* const listed = selection.places;
    std::uint32_t* const places       = selection.places + (args_.chunks - count);
    chunk_selection{threads_,
                    selection.rule,
                    count,
                    selection.scratch->histogram[0],
                    places,
                    numbers_.least_selected}
      .run([&](std::uint64_t n) { return top_.magnitude(listed[n]); },
           selection.scratch->header,
           selection_turn(args_));
    for (std::uint64_t n = 0; n < count; ++n) {
      if (places[n] != 0) { index[places[n] >> place_shift] = listed[n]; }
    }
  }

  //! Writes the numbers of all that are listed and, of the others, of as many as there are places left: those whose turn it is.
  void add_in_turn(std::uint32_t count, std::uint32_t* index) const
  {
    std::uint32_t const* const listed = args_.selection.places;
    std::uint32_t const others        = static_cast<std::uint32_t>(args_.chunks) - count;
    std::uint32_t const left          = args_.selection.rule.capacity - count;
    std::uint32_t const first         = first_tie(selection_turn(args_), others);
    std::uint32_t const end           = minimum(first + left, others);
    std::uint32_t n                   = 0;
    // The coordinate that has that number among the others is by as much higher as there are listed ones below it.
    auto const add = [&](std::uint32_t from, std::uint32_t to) {
      for (std::uint32_t other = from; other < to; ++other) {
        for (; n < count && listed[n] <= other + n; ++n) { *index++ = listed[n]; }
        *index++ = other + n;
      }
    };
    add(0, left - (end - first));
    add(first, end);
    std::copy(listed + n, listed + count, index);
  }

  //! How many coordinates ahead, of those that lie apart, memory is asked for.
  static constexpr std::uint64_t ahead = 32;
  void prefetch(std::uint64_t i) const { __builtin_prefetch(args_.gradient + i); }

  int threads_;
  instruction_set set_;
  cpu_tuning const& numbers_;
  exchange_args<Codec, Element> const& args_;
  cpu_top_coordinates<Codec, Element> top_;
};

template <sampling Codec, class Element>
[[nodiscard]] status run_stage(stage::encode, cpu_work<Codec, Element> const& work)
{
  cpu_sampled_coordinates<Codec, Element>{work}.encode();
  return {};
}

template <class Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY std::uint32_t selection_energy(Context const& ctx,
                                                         sample_args<Codec, Element> const& sample,
                                                         std::uint64_t j)
{
  return coordinate_magnitude(ctx, sample.exchange, sampled_of(sample.exchange, j));
}

//! @brief Ties of a sample have no turns: only the threshold is wanted.
template <class Codec, class Element>
[[nodiscard]] TERSUM_INLINE std::uint64_t selection_turn(sample_args<Codec, Element> const&)
{
  return 0;
}

//! @brief A magnitude below the threshold counts as zero.
template <sampling Codec, class Element, class Context>
[[nodiscard]] TERSUM_BODY std::uint32_t selection_energy(Context const& ctx,
                                                         exchange_args<Codec, Element> const& args,
                                                         std::uint64_t coordinate)
{
  std::uint32_t const magnitude = coordinate_magnitude(ctx, args, coordinate);
  std::uint32_t const threshold = ctx.load(&sample_scratch(args)->header.threshold);
  return magnitude >= threshold ? magnitude : 0u;
}

//! @brief Finds the threshold in the sample. Several blocks of it wait for each other.
struct sample_kernel : kernel_of_threads<&cuda_tuning::select_threads> {
  std::uint64_t size;
  std::uint32_t above;
  template <class Codec, tuning Tuning = tuning{}>
  static constexpr int blocks = Tuning.cuda.select_blocks;
  template <class Codec>
  static constexpr int shared = select_shared;
  TERSUM_RUNS(find_threshold_of(ctx, sample_of(args, size, above)))
};

template <class Executor, sampling Codec, class Element>
[[nodiscard]] status run_stage(stage::encode, launch_list<Executor, Codec, Element>& launches)
{
  auto const& plan                   = launches.plan();
  sampled_coordinates const& chunker = plan.codec().chunker;
  std::uint64_t const size           = chunker.sample_size(plan.chunks());
  std::uint32_t const above          = chunker.sample_rank(plan.chosen(), plan.chunks()) - 1;
  launches.together(sample_kernel{{}, size, above}, select_blocks(size, tuning_of<Executor>.cuda));
  launches.select();
  launches.threads(send_coordinates_kernel{}, plan.chunks());
  return launches.result();
}

}  // namespace tersum::inline v0::detail
