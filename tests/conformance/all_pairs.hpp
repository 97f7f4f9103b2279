// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Every policy of a role with every policy of another, with the others plain. What goes together is exchanged for three steps among
//! 1, 2 and 5 ranks, with a tail: the kernel bodies give the CPU's bytes, all ranks end alike, and the mean is within what the coder
//! may lose. Of what does not go together the compiler's sentence is printed.

#pragma once

#include "support/emulated_executor.hpp"
#include "support/golden_exchange.hpp"

#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace tersum::tests::pairs {

template <class... T>
struct list {
};

using chunkers =
  list<fixed_chunks<256>, top_chunks<256>, allocated_chunks<256, 2, 4, 8>, random_chunks<256>>;
using rotators = list<no_rotation, partial_hadamard<256>>;
using tracked  = summed_codes<rms_range<>, stochastic_quantizer<8>, saturating_sum<8>>;
using coders   = list<tracked,
                    summed_codes<absmax_range<>, nearest_quantizer<8>, widening_sum<8, 16>>,
                    scaled_codes<lloyd_max<8>>,
                    cast<half>,
                    cast<float>>;
using forms =
  list<in_wire, two_shot, two_shot_to<scaled_codes<lloyd_max<7>>>, gather, shard, publish>;
using feedbacks =
  list<no_feedback, error_feedback, decayed_feedback, difference_feedback, kept_by_owners<>>;
using metrics = list<plain_metric, given_diagonal, kept_diagonal>;

template <class Chunker, class Rotator, class Coder, class Form, class Feedback, class Metric>
using policies = std::tuple<Chunker, Rotator, Coder, Form, Feedback, Metric>;
enum role { of_chunks, of_rotation, of_coding, of_rounds, of_losses, of_units };

//! What stands for the roles that are not tried: the first one in which the pair goes together.
using backgrounds = list<
  policies<fixed_chunks<256>, partial_hadamard<256>, tracked, in_wire, no_feedback, plain_metric>,
  policies<fixed_chunks<256>,
           partial_hadamard<256>,
           scaled_codes<lloyd_max<8>>,
           two_shot,
           no_feedback,
           plain_metric>,
  policies<fixed_chunks<256>,
           partial_hadamard<256>,
           scaled_codes<lloyd_max<8>>,
           publish,
           no_feedback,
           plain_metric>,
  policies<fixed_chunks<256>, no_rotation, cast<half>, in_wire, no_feedback, plain_metric>,
  policies<top_chunks<256>, no_rotation, cast<half>, in_wire, no_feedback, plain_metric>>;

template <role At, class Policy, class Policies>
struct with;
template <role At, class Policy, class... P>
struct with<At, Policy, std::tuple<P...>> {
  template <class Old, std::size_t I>
  using one = std::conditional_t<I == At, Policy, Old>;
  template <std::size_t... I>
  static std::tuple<one<P, I>...> all(std::index_sequence<I...>);
  using type = decltype(all(std::index_sequence_for<P...>{}));
};

template <class Policies>
struct made_of;
template <class... P>
struct made_of<std::tuple<P...>> {
  static constexpr std::string_view refusal = refusal_of<P...>();
  static auto make() requires(refusal.empty())
  {
    codec<P...> made{};
    // All chunks travel.
    if constexpr (requires { made.chunker.bits; }) { made.chunker.bits = 40; }
    // The clip that suits the lanes; where none is known it is far out.
    if constexpr (requires { decltype(made)::reducer_type::best_clip(1); }) {
      made.coder.range.clip = 0;
    } else if constexpr (requires { requires !detail::takes_maxima<decltype(made.coder.range)>; }) {
      made.coder.range.clip = 6;
    }
    return made;
  }
};

template <class T>
std::string name_of()
{
  std::string_view const all = __PRETTY_FUNCTION__;
  auto const begin           = all.find("T = ") + 4;
  std::string name{all.substr(begin, all.rfind(']') - begin)};
  for (std::string_view const part : {"tersum::", "v0::"}) {
    for (auto at = name.find(part); at != name.npos; at = name.find(part)) {
      name.erase(at, part.size());
    }
  }
  return name;
}

//! @brief The most that codes of ranks whose gradients point the same way lose of their mean's energy, by what the coder's policies
//! say of it. The factor of 2 is for what one vector of 1500 coordinates differs from the average.
template <class Coder>
double most_lost(Coder const&, int world)
{
  if constexpr (requires { Coder::reducer_type::distortion(world); }) {
    return 2 * static_cast<double>(Coder::reducer_type::distortion(world));
  } else if constexpr (adding_coder<Coder>) {
    // The largest of 256 coordinates is at most 16 root mean squares, and rounding loses a twelfth of a step's square.
    return std::pow(16.0 / Coder::quantizer_type::max_level, 2) / 12;
  } else if constexpr (conversion<typename Coder::quantizer_type>) {
    return std::pow(world * 0x1p-11, 2);  // each of the sums in half rounds once
  } else if constexpr (requires { Coder::quantizer_type::distortion(); }) {
    return 2 * static_cast<double>(Coder::quantizer_type::distortion());
  } else {
    return std::pow(0.5, 2);  // what a user's codebook of few levels says nothing of: most is left
  }
}

//! What a rank's gradient is of the mean. Without one of them the mean would be off by a tenth and more.
inline float weight_of(int rank, int world)
{
  static constexpr float of_two[] = {1.5f, .5f}, of_five[] = {1.25f, .5f, 1.75f, .75f, .75f};
  if (world == 1) { return 1; }
  return world == 2 ? of_two[rank] : of_five[rank];
}

//! @brief Nothing is missing but what the ranks keep, and owners of what they encode again.
template <class Codec, class Run>
void check_kept(Run const& ranks, int world, std::vector<double> missing)
{
  double by_owners = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    auto const& plan          = ranks[rank].plan;
    auto const kept           = residuals_of(plan, ranks[rank].state);
    std::size_t const of_rank = plan.own_coordinates(), of_owner = kept.size() - of_rank;
    std::size_t first = 0;
    if constexpr (publishing<Codec>) { first = plan.shard_begin(static_cast<int>(rank)); }
    for (std::size_t i = 0; i < of_owner; ++i) {
      by_owners += std::pow(static_cast<double>(to_float(kept[i])), 2);
    }
    for (std::size_t i = 0; i < of_rank; ++i) {
      missing[first + i] -= static_cast<double>(kept[of_owner + i]);
    }
  }
  double left = 0;
  for (double const one : missing) { left += one * one; }
  // Three steps of means of up to 2, which float, or half, rounds world times.
  double const unit = casts<Codec> ? 0x1p-11 : 0x1p-21;
  CHECK(std::abs(std::sqrt(left) - std::sqrt(by_owners)) <=
        3 * 2 * world * unit * std::sqrt(static_cast<double>(missing.size())));
}

//! @brief Three exchanges of a codec: bytes, equal ranks, and what is lost.
template <class Codec>
void exchange(Codec const& codec)
{
  static bool done = false;
  if (done) { return; }
  done = true;
  // Five and two ranks divide it, so that shards are equal; chunks do not, but of the last one of a shard most is there: coders are
  // held to bounds of chunks without padding. Owners also keep what they lost of padding, not counted.
  layout const with_tail{1500}, gradient{owner_feeds_back<Codec> ? 1536u : 960u};
  for (int const world : {1, 2, 5}) {
    CAPTURE(world);
    digested<Codec, float> const on_cpu{codec};
    digested<Codec, float, emulated_executor> const in_kernels{codec};
    std::byte const filling{0x3c};
    auto const bytes =
      digest_exchanges<cpu_executor>(on_cpu, with_tail, world, {.threads = 1}, filling);
    REQUIRE(bytes.exchanges != "refused");
    auto const same =
      digest_exchanges<emulated_executor>(in_kernels, with_tail, world, {}, filling);
    CHECK(same.exchanges == bytes.exchanges);
    CHECK(same.states == bytes.states);

    exchange_case<Codec, float> const c{
      .codec = codec, .gradient = gradient, .world = world, .seed = 7};
    exchange_run<host_buffer, Codec, float> ranks{cpu_executor{}, c};
    auto const scales_of = [&](auto rank) {
      return metric_scales(ranks[rank].plan, ranks[rank].state);
    };
    std::vector<float> units(gradient.coordinates, 1.0f);
    if constexpr (in_metric<Codec> && !keeps_metric<Codec>) {
      for (std::size_t i = 0; i < units.size(); ++i) { units[i] = i % 3 == 0 ? 0.5f : 2.0f; }
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        std::ranges::copy(units, scales_of(rank).begin());
      }
    }
    // What the ranks gave, less what they got and keep; of values once, of gradients n times.
    std::vector<double> missing(gradient.coordinates);
    // One encoding, and a second one where owners encode the mean; with feedback also what the step before lost in both. Differences
    // to what is held are up to twice as large as the values.
    using mean_coder      = typename Codec::form_type::template mean_coder<decltype(codec.coder)>;
    constexpr bool larger = Codec::feedback_type::enabled || codes_differences<Codec>;
    double const most =
      (most_lost(codec.coder, world) + most_lost(mean_coder{}, world)) * (larger ? 4 : 1);
    for (int step = 0; step < 3; ++step) {
      CAPTURE(step);
      std::vector<float> mean(gradient.coordinates);
      for (std::size_t i = 0; i < mean.size(); ++i) {
        std::uint32_t const random =
          (static_cast<std::uint32_t>(i) * 3u + static_cast<std::uint32_t>(step)) * 2654435769u;
        mean[i] =
          (1 + static_cast<float>(random >> 9) * 0x1p-23f) * ((random & 256u) != 0 ? -1.0f : 1.0f);
      }
      if constexpr (keeps_metric<Codec>) {
        if (step > 0 && !ranks[0].plan.all_bypass()) {
          std::ranges::copy(scales_of(0u), units.begin());
        }
      }
      auto const given = [&](int rank) {
        auto values = mean;
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] *= publishing<Codec> ? 1 : weight_of(rank, world);
          missing[i] += values[i];
        }
        return values;
      };
      auto const got = joined<Codec>(ranks.exchange(cpu_executor{}, c.given_by(given)));
      double lost = 0, all = 0;
      for (std::size_t i = 0; i < mean.size(); ++i) {
        lost += std::pow((got[i] - mean[i]) / units[i], 2);
        all += std::pow(mean[i] / units[i], 2);
      }
      // A tracked head-room follows what the step before has shown.
      CHECK((lost <= most * all || (step == 0 && tracks<Codec>)));
      for (std::size_t i = 0; i < mean.size(); ++i) {
        missing[i] -= static_cast<double>(got[i]) * (publishing<Codec> ? 1 : world);
      }
    }
    if constexpr (std::is_same_v<typename Codec::feedback_type, error_feedback> &&
                  !saturates<Codec>) {
      check_kept<Codec>(ranks, world, missing);
    }
  }
}

//! The first codec of these whose policies go together; of none the first one.
template <class First, class... Other>
constexpr auto first_made()
{
  if constexpr (First::refusal.empty() || sizeof...(Other) == 0) {
    return First{};
  } else {
    using found = decltype(first_made<Other...>());
    return std::conditional_t<found::refusal.empty(), found, First>{};
  }
}

//! @brief Tries two policies with the first background in which they go together.
template <role A, role B, class First, class Second, class... Background>
void try_pair(list<Background...>)
{
  std::string const pair = name_of<First>() + " with " + name_of<Second>();
  CAPTURE(pair);
  using made =
    decltype(first_made<made_of<
               typename with<B, Second, typename with<A, First, Background>::type>::type>...>());
  if constexpr (made::refusal.empty()) {
    exchange(made::make());
  } else {
    MESSAGE(pair << ": " << made::refusal);
  }
}

template <role A, role B, class... First, class Second>
void try_roles(list<First...>, Second seconds)
{
  auto const with_all = [&]<class One, class... Other>(std::type_identity<One>, list<Other...>) {
    (try_pair<A, B, One, Other>(backgrounds{}), ...);
  };
  (with_all(std::type_identity<First>{}, seconds), ...);
}

}  // namespace tersum::tests::pairs
