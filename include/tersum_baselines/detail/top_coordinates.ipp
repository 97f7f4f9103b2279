// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages of TopK, on the CPU and as kernels, to the same bits.

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/chunk/detail/chunk_selection.hpp>
#include <tersum/chunk/detail/selection.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/exchange/detail/launch_list.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/execute/instruction_set.hpp>
#include <tersum/feedback/detail/kept_value.hpp>
#include <tersum/tuning.hpp>
#include <tersum_baselines/detail/block_top_coordinates.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tersum::inline v0::detail {

//! @brief The stages of TopK on `threads` threads.
template <class Codec, class Element>
class cpu_top_coordinates {
 public:
  explicit cpu_top_coordinates(cpu_work<Codec, Element> const& work)
    : threads_(work.threads), set_(work.instructions), args_(work.args), numbers_(work.numbers)
  {
  }

  void encode() const
  {
    selection_args const& selection = args_.selection;
    chunk_selection{threads_,
                    selection.rule,
                    args_.chunks,
                    selection.scratch->histogram[0],
                    selection.places,
                    numbers_.least_selected}
      .run([&](std::uint64_t i) { return magnitude_bits(value(i)); },
           selection.scratch->header,
           selection_turn(args_));
    send();
  }

  void decode() const
  {
    float* const sums = reinterpret_cast<float*>(args_.selection.places);
    for_each_stretch(
      [&](std::uint64_t begin, std::uint64_t end) { std::fill(sums + begin, sums + end, 0.0f); });
    for (int rank = 0; rank < args_.world; ++rank) {
      add(part_of(args_, static_cast<std::uint64_t>(rank)), sums);
    }
    float const share = 1.0f / static_cast<float>(args_.world);
    for_each_stretch([&](std::uint64_t begin, std::uint64_t end) {
      auto const count = static_cast<std::size_t>(end - begin);
      if (!convert_values(set_, sums + begin, args_.gradient + begin, share, count)) {
        raise_flag(args_);
      }
    });
  }

 private:
  //! Writes those that have a place to this rank's part, in ascending order. With feedback it keeps the others.
  void send() const
  {
    selection_args const& selection = args_.selection;
    coordinate_part const part      = part_of(args_, args_.rank);
    for_each_stretch([&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i) {
        std::uint32_t const place = selection.places[i];
        float const whole         = value(i);
        half const rounded = feeds_back<Codec> ? sendable_from_float<half>(whole) : to_half(whole);
        if (place != 0) {
          part.index[place >> place_shift] = static_cast<std::uint32_t>(i);
          part.value[place >> place_shift] = rounded;
        }
        if constexpr (feeds_back<Codec>) {
          float const lost = place != 0 ? whole - to_float(rounded) : whole;
          float const rest = args_.codec.feedback.after(host_group{}, whole, lost, kept(i));
          if (is_sendable<half>(whole) && is_finite(rest)) {
            args_.residual[i] =
              kept_value<residual_element<Codec>>(rest, draw_of_kept(args_, i, args_.rank));
          }
        }
      }
    });
  }

  [[nodiscard]] float kept(std::uint64_t i) const
  {
    return weighed<Codec>(host_group{}, weight_of_kept(args_), to_float(args_.residual[i]));
  }

  [[nodiscard]] float value(std::uint64_t i) const
  {
    float const own = to_float(args_.gradient[i]);
    if constexpr (feeds_back<Codec>) {
      return args_.codec.feedback.before(host_group{}, own, kept(i));
    }
    return own;
  }

  //! Adds the values of a part to the sums of their coordinates.
  void add(coordinate_part const& part, float* sums) const
  {
    constexpr std::uint32_t at_once = 256, ahead = 32;
    std::uint32_t const count = args_.selection.rule.capacity;
    float values[at_once];
    for (std::uint32_t first = 0; first < count; first += at_once) {
      std::uint32_t const here = minimum(at_once, count - first);
      static_cast<void>(convert_values(set_, part.value + first, values, 1.0f, here));
      for (std::uint32_t k = 0; k < here; ++k) {
        // They lie far apart.
        __builtin_prefetch(sums + part.index[minimum(first + k + ahead, count - 1)], 1);
        std::uint32_t const i = part.index[first + k];
        if (i < args_.chunks) { sums[i] = sums[i] + values[k]; }
      }
    }
  }

  //! body(begin, end) for stretches of the coordinates.
  template <class Body>
  void for_each_stretch(Body const& body) const
  {
    std::uint64_t const stretch = numbers_.coordinate_stretch;
    parallel_for(threads_, (args_.chunks + stretch - 1) / stretch, [&](std::uint64_t part) {
      body(part * stretch, std::min(args_.chunks, (part + 1) * stretch));
    });
  }

  int threads_;
  instruction_set set_;
  exchange_args<Codec, Element> const& args_;
  cpu_tuning const& numbers_;
};

template <gathering Codec, class Element>
[[nodiscard]] status run_stage(stage::encode, cpu_work<Codec, Element> const& work)
{
  cpu_top_coordinates<Codec, Element>{work}.encode();
  return {};
}

template <gathering Codec, class Element>
[[nodiscard]] status run_stage(stage::decode, cpu_work<Codec, Element> const& work)
{
  cpu_top_coordinates<Codec, Element>{work}.decode();
  return {};
}

//! @name Kernels of top_coordinates
//! One thread a coordinate.
//! @{
struct send_coordinates_kernel : kernel_of_threads<&cuda_tuning::coordinate_threads> {
  TERSUM_RUNS(send_coordinates(ctx, args))
};

struct clear_coordinates_kernel : kernel_of_threads<&cuda_tuning::coordinate_threads> {
  TERSUM_RUNS(clear_coordinates(ctx, args))
};

struct add_coordinates_kernel : kernel_of_threads<&cuda_tuning::coordinate_threads> {
  std::uint64_t rank;
  TERSUM_RUNS(add_coordinates(ctx, args, rank))
};

struct receive_coordinates_kernel : kernel_of_threads<&cuda_tuning::coordinate_threads> {
  TERSUM_RUNS(receive_coordinates(ctx, args))
};
//! @}

template <class Executor, gathering Codec, class Element>
void run_stage(stage::encode, launch_list<Executor, Codec, Element>& launches)
{
  launches.run(stage::select{});
  launches.threads(send_coordinates_kernel{}, launches.plan().chunks());
}

template <class Executor, gathering Codec, class Element>
void run_stage(stage::decode, launch_list<Executor, Codec, Element>& launches)
{
  auto const& plan = launches.plan();
  launches.threads(clear_coordinates_kernel{}, plan.chunks());
  for (int rank = 0; rank < plan.ranks().size; ++rank) {
    launches.threads(add_coordinates_kernel{{}, static_cast<std::uint64_t>(rank)}, plan.chosen());
  }
  launches.threads(receive_coordinates_kernel{}, plan.chunks());
}

}  // namespace tersum::inline v0::detail
