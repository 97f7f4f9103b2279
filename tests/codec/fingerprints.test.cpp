// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Fingerprints follow from policies' names and parameters and, of states, from what memory is made of: no two that differ in it agree.

#include "../../examples/your_own/decaying_feedback.hpp"
#include "../../examples/your_own/largest_mean.hpp"
#include "../../examples/your_own/mean_magnitude.hpp"
#include "../../examples/your_own/signed_permutation.hpp"
#include "support/codecs.hpp"

#include <tersum/chunk/random_chunks.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/exchange/check_state.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/feedback/decayed_feedback.hpp>
#include <tersum/feedback/difference_feedback.hpp>
#include <tersum/feedback/kept_by.hpp>
#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/presets.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/reduce/guard_lanes.hpp>
#include <tersum/reduce/widening_sum.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace tersum;

namespace {

struct made_state {
  std::string what;  // all that a reader of the state relies on
  std::uint64_t fingerprint;
};

template <class Codec>
made_state describe(Codec const& codec, layout const& gradient, world const& ranks)
{
  auto const plan = codec.plan(gradient, ranks);
  REQUIRE(plan.check() == status{});
  std::ostringstream out;
  auto const sections = plan.state_sections();
  for (auto const& entry : sections.entries()) {
    out << entry.name.hash << " of " << entry.element << " at " << sections.offset(entry.name)
        << " to " << entry.bytes << "; ";
  }
  out << plan.coordinates() << " in " << plan.chunks() << ": ";
  plan.for_each_record([&](tensor_record const& record) {
    out << record.offset << ' ' << record.size << ' ' << record.chunks << ' ' << record.weight
        << ' ';
  });
  plan.for_each_matrix([&](matrix_record const& m) {
    out << m.rows << " x " << m.columns << " of " << m.rank << ' ' << m.swapped << ' ';
  });
  return {out.str(), plan.state_fingerprint()};
}

template <class Metric, class... Feedback>
void add_two_shots(std::vector<made_state>& to, layout const& gradient, world const& ranks)
{
  (to.push_back(describe(
     tests::rotated_codes<1024, lloyd_max<4>, two_shot, Feedback, Metric>{}, gradient, ranks)),
   ...);
}

template <class... Feedback>
void add_feedbacks(std::vector<made_state>& to, layout const& gradient, world const& ranks)
{
  using scales = kept_diagonal_in<bfloat16>;
  add_two_shots<plain_metric, Feedback...>(to, gradient, ranks);
  add_two_shots<kept_diagonal, Feedback...>(to, gradient, ranks);
  add_two_shots<scales, Feedback...>(to, gradient, ranks);
  auto const add = [&](auto const&... codecs) {
    (to.push_back(describe(codecs, gradient, ranks)), ...);
  };
  add(presets::gathered<4, Feedback>{}...);
  add(presets::sharded<4, Feedback>{}...);
  add(presets::values<4, Feedback>{}...);
  add(presets::saturating_shards<nearest_quantizer<4>, Feedback>{}...);
  add(presets::tracked_saturating<nearest_quantizer<4>, Feedback>{}...);
  add(codec<top_chunks<64>, no_rotation, cast<half>, in_wire, Feedback>{.chunker = {.bits = 2}}...);
  add(
    codec<top_chunks<128>, no_rotation, cast<half>, in_wire, Feedback>{.chunker = {.bits = 2}}...);
}

// A state of one plan, with which another one is to go on.
template <class First, class Second>
void is_refused(First const& first, Second const& second)
{
  layout const gradient{100000};
  auto const made = first.plan(gradient, {.size = 1, .rank = 0});
  auto const plan = second.plan(gradient, {.size = 1, .rank = 0});
  CHECK(made.state_bytes() != plan.state_bytes());
  std::vector<word4> state(std::max(made.state_bytes(), plan.state_bytes()) / 16 + 1);
  std::vector<word4> workspace(plan.workspace_bytes() / 16 + 1);
  auto const bytes = std::as_writable_bytes(std::span{state});
  REQUIRE(initialize(cpu_executor{}, made, bytes, 1) == status{});
  CHECK(check_state(made, bytes) == status{});
  CHECK(check_state(plan, bytes).message.find("another plan") != std::string_view::npos);
  std::vector<float> values(100000, 0.5f);
  auto const before  = state;
  status const heard = all_reduce_mean(cpu_executor{},
                                       plan,
                                       values,
                                       bytes,
                                       std::as_writable_bytes(std::span{workspace}),
                                       [](auto const&) { FAIL("no round is reached"); });
  CHECK(heard.message.find("initialize") != std::string_view::npos);
  CHECK(std::ranges::equal(bytes, std::as_bytes(std::span{before})));
  CHECK(values == std::vector<float>(100000, 0.5f));
}

}  // namespace

TEST_CASE("[fingerprint] a plan refuses a state whose sections have another size")
{
  using scales = kept_diagonal_in<bfloat16>;
  using wide =
    tests::rotated_codes<1024, lloyd_max<4>, two_shot, kept_by_ranks<error_feedback>, scales>;
  using gained = presets::two_shot<4, kept_by_ranks<decayed_feedback>>;
  is_refused(wide{}, gained{});
  is_refused(gained{}, wide{});
}

TEST_CASE("[fingerprint] states of unlike sections, tensors or chunks never have the same one")
{
  tensor const matrices[] = {{"a", 100, 30, 0}, {"b", 1, 96, 3000}, {"c", 64, 64, 3096}};
  tensor const heavy[]    = {{"a", 100, 30, 0, 2}, {"b", 1, 96, 3000}, {"c", 64, 64, 3096}};
  tensor const turned[]   = {{"a", 30, 100, 0}, {"b", 1, 96, 3000}, {"c", 64, 64, 3096}};
  std::vector<made_state> states;
  for (layout const& gradient : {layout{1},
                                 layout{512},
                                 layout{7192},
                                 layout{7192, matrices},
                                 layout{7192, heavy},
                                 layout{7192, matrices, 100}}) {
    for (world const& ranks : {world{.size = 1, .rank = 0},
                               world{.size = 2, .rank = 0},
                               world{.size = 2, .rank = 1},
                               world{.size = 5, .rank = 3}}) {
      add_feedbacks<no_feedback,
                    error_feedback,
                    decayed_feedback,
                    averaged_feedback,
                    kept_by_ranks<>,
                    kept_by_ranks<decayed_feedback>,
                    kept_in<bfloat16>,
                    kept_in<bfloat16, decayed_feedback>>(states, gradient, ranks);
      add_two_shots<plain_metric,
                    kept_by_owners<>,
                    kept_by_owners<decayed_feedback>,
                    kept_by_owners<kept_in<bfloat16>>>(states, gradient, ranks);
      for (layout const& shape : {gradient, layout{7192, turned}}) {
        if (shape.tensors.empty()) { continue; }
        states.push_back(describe(presets::powersgd_r4, shape, ranks));
        states.push_back(describe(presets::powersgd_r16, shape, ranks));
        states.push_back(describe(presets::acp_r4, shape, ranks));
        states.push_back(describe(
          low_rank_codec<low_rank<4>, cast<float>, low_rank_schedule::paired, decayed_feedback>{},
          shape,
          ranks));
      }
    }
  }
  std::map<std::uint64_t, std::string> seen;
  for (made_state const& one : states) {
    auto const [first, is_new] = seen.emplace(one.fingerprint, one.what);
    if (!is_new) { CHECK(first->second == one.what); }
  }
  CHECK(seen.size() > 400);
}

TEST_CASE("[fingerprint] every compiler finds the same ones, while it compiles and while it runs")
{
  layout const gradient{7192};
  world const ranks{.size = 4, .rank = 1};
  static constexpr std::uint64_t compiled =
    presets::two_shot_4_ef.plan(layout{7192}, {.size = 4, .rank = 1}).state_fingerprint();
  CHECK(compiled == presets::two_shot_4_ef.plan(gradient, ranks).state_fingerprint());
  CHECK(compiled == 0xae22272e045a2202u);
  CHECK(presets::topkc_b2_ef.plan(gradient, ranks).state_fingerprint() == 0xc12abda71d429902u);
  CHECK(fingerprint(presets::rotated_sat4.plan(gradient, ranks), 1) == 0x5b8b05ce618e39f5u);
}

TEST_CASE(
  "[fingerprint] owners' residuals, and parts of shards, are those of one rank of one world")
{
  layout const gradient{7192};
  auto const of = [&](auto const& codec, int size, int rank) {
    return codec.plan(gradient, {.size = size, .rank = rank}).state_fingerprint();
  };
  CHECK(of(presets::two_shot_4_ef, 4, 0) != of(presets::two_shot_4_ef, 4, 1));
  CHECK(of(presets::two_shot_4_ef, 4, 0) != of(presets::two_shot_4_ef, 5, 0));
  CHECK(of(presets::two_shot_4, 4, 0) == of(presets::two_shot_4, 5, 1));
  using fed = presets::values<4, error_feedback>;
  CHECK(of(fed{}, 4, 0) != of(fed{}, 4, 1));
  std::uint64_t const even[] = {0, 3596, 7192}, uneven[] = {0, 3595, 7192};
  world const ranks{.size = 2, .rank = 0};
  auto const at = [&](auto const& codec, auto const& boundaries) {
    return codec.plan(gradient, ranks, boundaries).state_fingerprint();
  };
  CHECK(at(presets::sharded_4, even) != at(presets::sharded_4, uneven));
  CHECK(at(presets::values_4, even) != at(presets::values_4, uneven));
  CHECK(at(presets::summed_shards_sat4, even) != at(presets::summed_shards_sat4, uneven));
  CHECK(at(presets::sharded_4, even) == of(presets::sharded_4, 2, 0));
}

TEST_CASE(
  "[fingerprint] plans that differ in one policy, parameter or size never have the same one")
{
  tensor const matrices[] = {{"a", 100, 30, 0}, {"b", 1, 96, 3000}, {"c", 64, 64, 3096}};
  tensor const turned[]   = {{"a", 30, 100, 0}, {"b", 1, 96, 3000}, {"c", 64, 64, 3096}};
  std::map<std::uint64_t, int> seen;
  std::set<std::uint64_t> states;
  int number              = 0;
  layout const plain      = {.coordinates = 7192};
  layout const bucket     = {.coordinates = 7192, .tensors = matrices};
  layout const of_turned  = {.coordinates = 7192, .tensors = turned};
  layout const of_large   = {.coordinates = 7192, .tensors = matrices, .bypass_below = 3050};
  layout const of_vectors = {.coordinates = 7192, .tensors = matrices, .bypass_vectors = false};
  layout const unpaid     = {.coordinates = 7192, .bypass_unpaid = false};
  auto const add_in       = [&](layout const& gradient, auto const& codec, int size) {
    ++number;
    std::uint64_t const own =
      fingerprint(codec.plan(gradient, {.size = size, .rank = size - 1}), 1);
    CAPTURE(number);
    CAPTURE(seen[own]);
    CHECK(seen[own] == 0);
    seen[own] = number;
    CHECK(own == fingerprint(codec.plan(gradient, {.size = size, .rank = 0}), 1));
  };
  auto const add = [&](auto const&... codecs) {
    (add_in(plain, codecs, 5), ...);
    world const last{.size = 5, .rank = 4};
    for (auto const state : {codecs.plan(plain, last).state_fingerprint()...}) {
      CHECK(states.insert(state).second);
    }
  };

  for (layout const& gradient : {plain, bucket, of_turned, of_large, of_vectors, unpaid}) {
    add_in(gradient, presets::two_shot_2, 5);
    add_in(gradient, presets::topkc_b05, 5);
  }
  for (int const size : {1, 2, 4}) { add_in(plain, presets::two_shot_2, size); }

  // Kinds of codecs, of one quantizer.
  add(presets::two_shot_4, presets::gathered_4, presets::sharded_4, presets::values_4);
  add(presets::rotated_sat4, presets::summed_shards_sat4);
  add(presets::fp32, presets::fp16, presets::bf16);
  for (layout const& gradient : {bucket, of_turned}) {
    add_in(gradient, presets::powersgd_r4, 5);
    add_in(gradient, presets::powersgd_r1, 5);
    add_in(gradient, presets::acp_r4, 5);
  }

  // Feedback, in each kind that takes it.
  using averaged = averaged_feedback;
  using decayed  = decayed_feedback;
  add(presets::two_shot<4, error_feedback>{}, presets::two_shot<4, kept_by_ranks<>>{});
  add(presets::two_shot<4, kept_by_owners<>>{}, presets::two_shot<4, kept_in<bfloat16>>{});
  add(presets::two_shot<4, averaged>{},
      presets::two_shot<4, averaged>{.feedback = {.averaging = 0.75f}});
  add(presets::two_shot<4, decayed>{}, presets::two_shot<4, decayed>{.feedback = {.decay = 0.75f}});
  add(presets::two_shot<4, decayed>{.feedback = {.reset_every = 3}},
      presets::two_shot<4, decayed>{.feedback = {.reset_every = 4}});
  add(presets::gathered<4, error_feedback>{}, presets::sharded<4, error_feedback>{});
  add(presets::values<4, error_feedback>{}, presets::values<4, difference_feedback>{});

  // Metrics.
  add(presets::metric_2, presets::metric_3);
  add(
    tests::rotated_codes<1024, lloyd_max<2>, two_shot, no_feedback, kept_diagonal_in<bfloat16>>{});
  add(tests::rotated_codes<1024, lloyd_max<2>, two_shot, no_feedback, given_diagonal>{});

  for (kept_diagonal const& units : {kept_diagonal{.prior = 9}, kept_diagonal{.horizon = 1000}}) {
    add(tests::rotated_codes<1024, lloyd_max<2>, two_shot, no_feedback, kept_diagonal>{.metric =
                                                                                         units});
  }
  add(tests::rotated_codes<1024, lloyd_max<2>, two_shot, no_feedback, given_diagonal>{
    .metric = {.floor = 0.5f}});

  // Policies of users.
  add(tests::in_lanes<signed_permutation, rms_range<tracked_correlation>, no_feedback>{},
      tests::in_lanes<no_rotation, rms_range<tracked_correlation>, no_feedback>{},
      tests::in_lanes<signed_permutation, rms_range<tracked_correlation>, decaying_feedback>{},
      tests::in_lanes<signed_permutation, mean_magnitude, decaying_feedback>{},
      tests::in_lanes<signed_permutation, mean_magnitude, decaying_feedback>{
        .feedback = {.decay = 0.5f}},
      tests::rotated_codes<1024, lloyd_max<2>, two_shot, no_feedback, largest_mean>{});

  // Chunkers.
  add(presets::topkc_b2, presets::topkc_b8, presets::randomkc_b2, presets::topkc_sat4);
  add(presets::allocated_2, presets::allocated_4, presets::allocated_sat_4);
  add(presets::allocated_two_shot<>{.chunker = {.bits = 2, .weighting = 0.25f}});
  add(presets::two_way_shot<4, 8>{}, presets::two_way_shot<8, 4>{}, presets::two_way_shot<3, 5>{});

  // Ranges, quantizers and reducers.
  add(presets::tracked_saturating<stochastic_quantizer<4>>{.coder = {.range = {.clip = 1.8f}}});
  add(presets::tracked_saturating<stochastic_quantizer<4, independent>>{
    .coder = {.range = {.clip = 1.8f}}});
  add(presets::tracked_saturating<nearest_quantizer<4>>{.coder = {.range = {.clip = 1.8f}}});
  add(tests::plain_sums<1024, rms_range<>, stochastic_quantizer<4>, saturating_sum<4>>{
    .coder = {.range = {.clip = 1.8f}}});
  add(
    tests::rotated_sums<1024, rms_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 8>>{
      .coder = {.range = {.clip = 1.8f}}},
    tests::rotated_sums<1024, rms_range<no_headroom>, stochastic_quantizer<4>, widening_sum<4, 16>>{
      .coder = {.range = {.clip = 1.8f}}},
    tests::rotated_sums<1024, rms_range<no_headroom>, stochastic_quantizer<4>, guard_lanes<8>>{
      .coder = {.range = {.clip = 1.8f}}},
    tests::rotated_sums<1024, absmax_range<no_headroom>, stochastic_quantizer<4>, guard_lanes<8>>{
      .coder = {.range = {.clip = 1.8f}}});
}

TEST_CASE("[fingerprint] no two sections have the same hash")
{
  std::regex const taken(R"re((?:take\w*|keep)<[\w:]+>\([^;"]*"(\w+)"|share\("\w+", "(\w+)")re");
  std::set<std::string> names;
  std::set<std::uint64_t> hashes;
  for (auto const& entry : std::filesystem::recursive_directory_iterator("include/tersum")) {
    if (!entry.is_regular_file()) { continue; }
    std::ifstream file(entry.path());
    std::string const text{std::istreambuf_iterator<char>{file}, {}};
    for (std::sregex_iterator it(text.begin(), text.end(), taken), end; it != end; ++it) {
      names.insert(it->str(1) + it->str(2));
    }
  }
  for (std::string const& name : names) { hashes.insert(detail::named(name.c_str())); }
  CHECK(names.size() > 20);
  CHECK(hashes.size() == names.size());
}
