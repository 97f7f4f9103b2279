// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Symmetric rounds and exchanges in one kernel on a simulated device, where the kernels of all ranks run at the same time.

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <interop/nccl_conformance.hpp>
#include <interop/simulated/on_interleaved_ranks.hpp>
#include <interop/simulated/world.hpp>
#include <limits>
#include <nccl_device/on_streams.hpp>
#include <string>
#include <support/simulator/runtime_state.hpp>

using namespace tersum;
using tests::flag_fault;
using tests::on_interleaved_ranks;
using turns = simulator::taking_turns;

namespace {

// What is written to stderr meanwhile.
std::string said_during(std::function<void()> const& body)
{
  std::FILE* const said = std::tmpfile();
  REQUIRE(said != nullptr);
  std::fflush(stderr);
  int const kept = dup(STDERR_FILENO);
  dup2(fileno(said), STDERR_FILENO);
  body();
  std::fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  std::string text;
  std::rewind(said);
  for (int c = std::fgetc(said); c != EOF; c = std::fgetc(said)) { text += static_cast<char>(c); }
  std::fclose(said);
  return text;
}

}  // namespace

int tests::on_streams(int ranks, std::function<int(nccl_rank&)> const& body)
{
  return on_interleaved_ranks(ranks, {}, body);
}

TEST_CASE("[nccl] rounds over symmetric memory, in whatever order warps of all ranks go")
{
  auto const runs = [](int ranks, turns order, std::uint64_t coordinates) {
    CAPTURE(ranks);
    CAPTURE(static_cast<int>(order.next));
    CHECK(on_interleaved_ranks(ranks, order, [&](tests::nccl_rank& on) {
            return tests::check_nccl_symmetric(
              on, {.blocks = 2, .coordinates = coordinates, .must_run = true});
          }) == 0);
  };
  runs(3, {.next = turns::by::first, .most = 4096}, 3001);
  runs(3, {.next = turns::by::last, .most = 4096}, 3001);
  runs(2, {.next = turns::by::chance, .seed = 1, .most = 200}, 3001);
  runs(9, {.most = 500}, 1001);  // more than load at once
}

TEST_CASE("[nccl] exchanges in one kernel, in whatever order warps of all ranks go")
{
  // A tile is 4096 coordinates: turns that do not end with the blocks, blocks that do not end with the ranks, and a short chunk.
  auto const runs = [](int ranks, int blocks, turns order, std::uint64_t coordinates) {
    CAPTURE(ranks);
    CAPTURE(static_cast<int>(order.next));
    CHECK(on_interleaved_ranks(ranks, order, [&](tests::nccl_rank& on) {
            on.brief = ranks != 2;
            return tests::check_nccl_fused(
              on, {.blocks = blocks, .coordinates = coordinates, .must_run = true});
          }) == 0);
  };
  runs(2, 2, {.next = turns::by::chance, .seed = 1, .most = 200}, 20001);
  runs(3, 7, {.next = turns::by::last, .most = 4096}, 51001);
  runs(3, 3, {.next = turns::by::first, .most = 4096}, 28001);
  runs(9, 9, {.most = 500}, 37001);
}

TEST_CASE("[nccl] exchanges in one kernel whose flags have a fault")
{
  // One rank is as far ahead of the other as flags let it.
  turns const order{.next = turns::by::first, .most = 4096};
  for (bool const two_shot : {false, true}) {
    for (auto const fault : {flag_fault::none,
                             flag_fault::set_before_stores,
                             flag_fault::set_for_device,
                             flag_fault::no_barrier,
                             flag_fault::no_acquire,
                             flag_fault::turn_before,
                             flag_fault::forgets_calls,
                             flag_fault::not_set}) {
      CAPTURE(two_shot);
      CAPTURE(static_cast<int>(fault));
      tests::symmetric_shape const shape{.blocks = 2, .coordinates = 25001, .fault = fault};
      int found                              = 0;
      std::string const said                 = said_during([&] {
        found = on_interleaved_ranks(2, order, [&](tests::nccl_rank& on) {
          return tests::check_nccl_fused_fault(on, two_shot, shape);
        });
      });
      simulator::runtime_state::get().broken = cudaSuccess;
      CAPTURE(said);
      auto const says = [&](char const* what) { return said.find(what) != std::string::npos; };
      CHECK((found > 0) == (fault != flag_fault::none));
      CHECK(says("a deadlock") == (fault == flag_fault::not_set));
      // In a first call what is read too early was never written.
      CHECK((says("a race") || says("nobody has written")) ==
            (fault != flag_fault::none && fault != flag_fault::not_set));
    }
  }
}

TEST_CASE("[nccl] exchanges in one kernel refuse what they cannot do")
{
  auto const refusals = [] {
    return on_interleaved_ranks(
      2, {}, [](tests::nccl_rank& on) { return tests::check_nccl_fused_refusals(on, 2); });
  };
  CHECK(refusals() == 0);
  simulator::nccl_world::reach = 1;
  CHECK(refusals() == 0);
  simulator::nccl_world::reach = std::numeric_limits<int>::max();
}
