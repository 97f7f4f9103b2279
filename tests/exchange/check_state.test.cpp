// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Saved states: which are believed.

#include "support/sanitized.hpp"

#include <tersum/exchange/check_state.hpp>
#include <tersum/exchange/exchange.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/presets.hpp>
#include <tersum/tersum.hpp>
#include <tersum_baselines/top_coordinates.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

using namespace tersum;

namespace {

using bytes = std::vector<std::byte>;

tensor const bucket[] = {{"a", 10, 100, 0}, {"b", 1, 7, 1000}, {"c", 30, 100, 1007, 2}};
tensor const other[]  = {{"a", 10, 100, 0}, {"b", 1, 8, 1000}, {"c", 30, 100, 1008, 2}};
constexpr world ranks{.size = 3, .rank = 1};

// A state of a plan, one byte late in its array, as a file may hold it.
template <class Codec>
bytes made_for(plan<Codec> const& plan)
{
  std::vector<word4> words(plan.state_bytes() / sizeof(word4) + 1);
  REQUIRE(initialize(cpu_executor{}, plan, std::as_writable_bytes(std::span{words}), 7) ==
          status{});
  bytes out(plan.state_bytes() + 1);
  std::memcpy(out.data() + 1, words.data(), plan.state_bytes());
  return out;
}

std::span<std::byte const> behind_first(bytes const& saved) { return std::span{saved}.subspan(1); }

bool is_refused(status const& s, std::string_view word)
{
  return s.code == error_code::invalid_argument && s.message.find(word) != std::string_view::npos;
}

// Every bit of header, records and table is flipped, and some of what follows; under the sanitizer every seventh one.
template <class Codec>
void check_bits(Codec const& codec, layout const& gradient)
{
  auto const plan       = codec.plan(gradient, ranks);
  bytes saved           = made_for(plan);
  state_seal const seal = seal_state(plan, behind_first(saved));
  REQUIRE(check_state(plan, behind_first(saved)) == status{});
  REQUIRE(check_state(plan, behind_first(saved), seal) == status{});
  std::size_t believed = 0, unnoticed = 0;
  constexpr std::size_t near = tests::sanitized ? 7 : 1;
  for (std::size_t bit = 0; bit < 8 * plan.state_bytes(); bit += bit < 8 * 64 * 64 ? near : 997) {
    std::byte const mask = std::byte{1} << bit % 8;
    saved[1 + bit / 8] ^= mask;
    believed += check_state(plan, behind_first(saved), seal).ok() ? 1 : 0;
    // Without a seal: step, seed and what the plan says are held to each other.
    bool const of_header = bit / 8 < sizeof(state_header);
    bool const of_step   = bit / 8 >= offsetof(state_header, non_finite_step) &&
                         bit / 8 < offsetof(state_header, tensors);
    // Factors have no key that follows from step and seed.
    constexpr bool keyed = !is_low_rank<Codec>;
    bool const of_plan   = of_header && !of_step && (keyed || bit / 64 >= 3);
    unnoticed += of_plan && check_state(plan, behind_first(saved)).ok() ? 1 : 0;
    saved[1 + bit / 8] ^= mask;
  }
  CHECK(believed == 0);
  CHECK(unnoticed == 0);
}

}  // namespace

TEST_CASE("[check_state] one flipped bit is found, wherever it is")
{
  SUBCASE("chunks with feedback") { check_bits(presets::rotated_sat4_ef, {4007, bucket}); }
  SUBCASE("factors") { check_bits(presets::powersgd_r4, {4007, bucket}); }
  SUBCASE("shards") { check_bits(presets::sharded<4, error_feedback>{}, {4007, bucket}); }
  SUBCASE("coordinates") { check_bits(top_coordinates_codec<error_feedback>{}, {4007}); }
}

TEST_CASE("[check_state] what is of another plan or version, or cut, is refused in a sentence")
{
  auto const plan       = presets::rotated_sat4_ef.plan({4007, bucket}, ranks);
  bytes const saved     = made_for(plan);
  auto const state      = behind_first(saved);
  state_seal const seal = seal_state(plan, state);
  auto const elsewhere  = presets::rotated_sat4_ef.plan({4008, other}, ranks);
  auto const unfed      = presets::rotated_sat4.plan({4007, bucket}, ranks);

  CHECK(is_refused(check_state(plan, state.first(state.size() - 1)), "smaller"));
  CHECK(is_refused(check_state(plan, state.first(state.size() - 1), seal), "smaller"));
  CHECK(is_refused(check_state(plan, {}), "smaller"));
  bytes const unlike = made_for(elsewhere);
  CHECK(is_refused(check_state(plan, behind_first(unlike)), "another plan"));
  CHECK(is_refused(check_state(unfed, state), "another plan"));
  CHECK(is_refused(check_state(unfed, state, seal), "another plan"));
  CHECK(is_refused(check_state(plan, state, state_seal{seal.version + 1, seal.bytes, seal.check}),
                   "version"));
  CHECK(is_refused(check_state(plan, state, state_seal{seal.version, seal.bytes - 1, seal.check}),
                   "cut"));
  CHECK(is_refused(check_state(plan, state, state_seal{seal.version, seal.bytes, ~seal.check}),
                   "sealed"));
  // A state of another version says so in the lowest byte of its fingerprint.
  bytes old = saved;
  old[1 + offsetof(state_header, layout)] ^= std::byte{1};
  CHECK(is_refused(check_state(plan, behind_first(old)), "another version"));
  // Cut before it was sealed.
  CHECK(is_refused(check_state(plan, state, seal_state(plan, state.first(100))), "cut"));
}

TEST_CASE("[check_state] a header alone says the version of the library that made it")
{
  auto const says = [](auto const& plan) {
    CHECK((plan.state_fingerprint() & 0xff) == state_version);
    bytes saved = made_for(plan);
    state_header header{};
    std::memcpy(&header, saved.data() + 1, sizeof header);
    CHECK(header.version() == state_version);
    for (unsigned const other : {1u, 2u, 128u, 255u}) {
      header.layout ^= other;
      CHECK(header.version() != state_version);
      std::memcpy(saved.data() + 1, &header, sizeof header);
      CHECK(is_refused(check_state(plan, behind_first(saved)), "another version"));
      header.layout ^= other;
    }
    // Of the same version, and another plan.
    header.layout ^= 256;
    std::memcpy(saved.data() + 1, &header, sizeof header);
    CHECK(is_refused(check_state(plan, behind_first(saved)), "another plan"));
  };
  layout const gradient{4007, bucket};
  says(presets::rotated_sat4_ef.plan(gradient, ranks));
  says(presets::allocated_two_shot<error_feedback>{.chunker = {.bits = 2}}.plan(gradient, ranks));
  says(presets::fp16.plan(gradient, ranks));
  says(presets::two_shot_4_ef.plan(gradient, ranks));
  says(presets::sharded_4.plan(gradient, ranks));
  says(presets::powersgd_r4.plan(gradient, ranks));
  says(top_coordinates_codec<error_feedback>{}.plan(layout{4007}, ranks));
}

TEST_CASE("[check_state] records, tables and matrices are held to the plan, also without a seal")
{
  auto const plan = presets::rotated_sat4_ef.plan({4007, bucket}, ranks);
  bytes saved     = made_for(plan);
  auto const with = [&](std::size_t at) {
    bytes copy = saved;
    copy[1 + at] ^= std::byte{4};
    return check_state(plan, behind_first(copy));
  };
  for (std::size_t const at : {offsetof(tensor_record, offset),
                               offsetof(tensor_record, size),
                               offsetof(tensor_record, first_chunk),
                               offsetof(tensor_record, chunks),
                               offsetof(tensor_record, bypass),
                               offsetof(tensor_record, weight)}) {
    CHECK(is_refused(with(plan.offset("records") + at), "record"));
    CHECK(is_refused(with(plan.offset("records") + 2 * sizeof(tensor_record) + at), "record"));
  }
  for (std::size_t at = plan.offset("table"); at < plan.offset("residual"); at += 4) {
    CHECK(is_refused(with(at), "table"));
  }
  auto const sharded = presets::sharded_4.plan({4007, bucket}, ranks);
  REQUIRE(sharded.offset("table") == sharded.offset("shards") + 3 * sizeof(shard_record));
  saved = made_for(sharded);
  REQUIRE(check_state(sharded, behind_first(saved)) == status{});
  for (std::size_t at = sharded.offset("shards"); at < sharded.offset("table"); ++at) {
    saved[1 + at] ^= std::byte{4};
    CHECK(is_refused(check_state(sharded, behind_first(saved)), "shard"));
    saved[1 + at] ^= std::byte{4};
  }
  auto const factors = presets::powersgd_r4.plan({4007, bucket}, ranks);
  saved              = made_for(factors);
  saved[1 + factors.offset("table") + offsetof(matrix_record, slot)] ^= std::byte{4};
  CHECK(is_refused(check_state(factors, behind_first(saved)), "table"));
}

TEST_CASE("[check_state] a state that has exchanged is sealed, believed, and goes on")
{
  auto const plan = presets::rotated_sat4_ef.plan({4007, bucket}, {});
  std::vector<word4> state(plan.state_bytes() / 16 + 1), memory(plan.workspace_bytes() / 16 + 1);
  std::vector<float> gradient(4007, 1.0f);
  cpu_executor const exec;
  auto const kept = std::as_writable_bytes(std::span{state});
  auto const work = std::as_writable_bytes(std::span{memory});
  REQUIRE(initialize(exec, plan, kept, 7) == status{});
  state_seal const before = seal_state(plan, kept);
  for (int step = 0; step < 2; ++step) {
    REQUIRE(measure(exec, plan, gradient, kept, work) == status{});
    REQUIRE(encode(exec, plan, gradient, kept, work) == status{});
    REQUIRE(decode(exec, plan, gradient, kept, work) == status{});
    CHECK(check_state(plan, kept) == status{});
    CHECK(check_state(plan, kept, seal_state(plan, kept)) == status{});
    CHECK(is_refused(check_state(plan, kept, before), "sealed"));
  }
}
