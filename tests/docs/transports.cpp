// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/transports.md, which runs: over MPI on one rank, and as a collective of one's own among three threads.
//! What comes out is checked.

#include "docs/page.hpp"

#include <tersum/single_process/loopback_transport.hpp>
#include <tersum/tersum.hpp>
#include <tersum_baselines/presets.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

using codec = std::remove_const_t<decltype(tersum::presets::rotated_sat4)>;

using pages::check;
using pages::make_bytes;

// Values of a rank, which are alike on all ranks but for a fifth.
float value_of(int rank, std::size_t i)
{
  return std::sin(.37f * static_cast<float>(i)) +
         .2f * std::cos(static_cast<float>(1 + rank) * .61f * static_cast<float>(i));
}

std::vector<float> values_of(int rank, std::size_t count)
{
  std::vector<float> made(count);
  for (std::size_t i = 0; i < count; ++i) { made[i] = value_of(rank, i); }
  return made;
}

// The error of a mean of so many ranks.
double error_of(std::vector<float> const& estimate, int ranks)
{
  std::vector<float> mean(estimate.size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    for (int rank = 0; rank < ranks; ++rank) {
      mean[i] += value_of(rank, i) / static_cast<float>(ranks);
    }
  }
  return pages::error_of(estimate, mean);
}

tersum::status exchange(tersum::cpu_executor const& exec,
                        tersum::plan<codec> const& plan,
                        std::span<float> gradient,
                        std::span<std::byte> state,
                        std::span<std::byte> workspace,
                        std::span<std::byte> scratch,
                        std::uint64_t seed)
{
  tersum::status status;
  // code 1
  return status;
}

// The collectives of the page: those of three threads.
constexpr int ranks = 3;
thread_local tersum::loopback_transport const* mine_of_thread;
thread_local std::vector<tersum::word4> moved(1 << 16);

template <class Round>
tersum::status travel(Round const& round)
{
  return reduce_over(*mine_of_thread,
                     tersum::cpu_executor{.threads = 1},
                     std::as_writable_bytes(std::span{moved}))(round);
}

template <class Element, class Op>
requires requires(Op op, Element v) { op(v, v); }
tersum::status my_all_reduce(Element* data, std::size_t count, Op op)
{
  return travel(tersum::wire<Op>{.data = data, .count = count, .op = op});
}
tersum::status my_all_to_all(std::uint32_t const* sent, std::uint32_t* received, std::size_t bytes)
{
  return travel(tersum::scatter_wire<std::uint32_t>{sent, received, bytes / 4, ranks});
}
auto const my_all_to_all_v     = [](auto const& round) { return travel(round); };
auto const my_all_gather_v     = [](auto const& round) { return travel(round); };
auto const my_reduce_scatter_v = [](auto const& round) { return travel(round); };
tersum::status my_all_gather(std::uint32_t* data, std::size_t bytes)
{
  return travel(tersum::gather_wire<std::uint32_t>{data, bytes / 4, ranks});
}

// What becomes of a mean before the ranks compare.
enum class accident { none, flipped_bit, forgotten_rank, other_seed };

constexpr std::size_t coordinates = 96 * 128;
constexpr tersum::tensor whole{.name = "weight", .rows = 96, .columns = 128, .offset = 0};
constexpr tersum::layout matrix{coordinates, {&whole, 1}};

template <class Codec>
bool exchange_by_hand(int rank,
                      Codec const& codec,
                      double bound,
                      accident what              = accident::none,
                      tersum::layout const& made = {.coordinates = coordinates})
{
  tersum::cpu_executor const exec{.threads = 1};
  int const said           = what == accident::forgotten_rank ? 0 : rank;
  std::uint64_t const seed = what == accident::other_seed && rank == 2 ? 6 : 5;
  auto const plan          = codec.plan(made, {.size = ranks, .rank = said});
  std::vector<tersum::word4> kept, work;
  auto const state            = make_bytes(kept, plan.state_bytes());
  auto const workspace        = make_bytes(work, plan.workspace_bytes());
  std::vector<float> gradient = values_of(rank, coordinates);
  tersum::status status       = initialize(exec, plan, state, seed);
  check(status.ok(), "initialize");
  // code 2

  status = all_reduce_mean(exec, plan, gradient, state, workspace, reduce);
  check(status.ok(), "all_reduce_mean");
  if (what == accident::none) {
    check(error_of(gradient, ranks) < bound, "the mean of three ranks");
  }
  if (what == accident::flipped_bit && rank == 1) {
    gradient[coordinates / 2] =
      std::bit_cast<float>(std::bit_cast<std::uint32_t>(gradient[coordinates / 2]) ^ 1u);
  }
  // code 3

  check(status.ok(), "digests travel");
  return alike;
}

void exchange_all(int rank)
{
  using namespace tersum::presets;
  // One codec of each kind of rounds.
  check(exchange_by_hand(rank, rotated_sat4, .2), "rotated_sat4: alike");
  check(exchange_by_hand(rank, thc_sat4, .2), "thc_sat4: alike");
  check(exchange_by_hand(rank, allocated_sat_4, .2), "allocated_sat_4: alike");
  check(exchange_by_hand(rank, allocated_4, .05), "allocated_4: alike");
  check(exchange_by_hand(rank, topk_b2, 1), "topk_b2: alike");
  check(exchange_by_hand(rank, powersgd_r4, .2, accident::none, matrix), "powersgd_r4: alike");
  check(!exchange_by_hand(rank, rotated_sat4, 0, accident::flipped_bit), "a flipped bit is found");
  check(!exchange_by_hand(rank, two_shot_4, 0, accident::forgotten_rank),
        "ranks that all say 0 are found");
  check(!exchange_by_hand(rank, two_shot_4, 0, accident::other_seed), "another seed is found");
}

// code 4: struct piece {

void overlap(tersum::cpu_executor const& exec,
             std::vector<piece>& pieces,
             std::vector<std::unique_ptr<tersum::mpi_transport>> const& transports,
             std::vector<tersum::status>& outcome)
{
  // code 4: std::mutex computing
}

// What runs over MPI, on one rank.
void exchange_over_mpi()
{
  tersum::cpu_executor const exec{.threads = 1};
  std::size_t const count     = 5 * 1024;
  auto const plan             = tersum::presets::rotated_sat4.plan({count}, {.size = 1, .rank = 0});
  std::size_t const least     = scratch_bytes(plan);
  std::vector<float> gradient = values_of(0, count);
  std::vector<tersum::word4> kept[4], work[4], moved[4];
  auto const state = make_bytes(kept[3], plan.state_bytes());
  check(initialize(exec, plan, state, 5).ok(), "initialize");
  check(exchange(exec,
                 plan,
                 gradient,
                 state,
                 make_bytes(work[3], plan.workspace_bytes()),
                 make_bytes(moved[3], least),
                 5)
          .ok(),
        "an exchange over MPI");
  check(error_of(gradient, 1) < .05, "the mean over MPI");

  gradient = values_of(0, count);
  std::vector<piece> pieces;
  for (std::size_t k = 0; k < 3; ++k) {
    std::size_t const begin = k * 2048;
    std::size_t const size  = std::min<std::size_t>(2048, count - begin);
    auto const part         = tersum::presets::rotated_sat4.plan({size}, {.size = 1, .rank = 0});
    pieces.push_back({std::span{gradient}.subspan(begin, size),
                      part,
                      make_bytes(kept[k], part.state_bytes()),
                      make_bytes(work[k], part.workspace_bytes()),
                      make_bytes(moved[k], scratch_bytes(part))});
    check(initialize(exec, part, pieces[k].state, k).ok(), "initialize");
  }
  std::vector<std::unique_ptr<tersum::mpi_transport>> transports;
  for (int thread = 0; thread < 2; ++thread) {
    transports.push_back(std::make_unique<tersum::mpi_transport>(MPI_COMM_SELF));
  }
  std::vector<tersum::status> outcome(pieces.size());
  overlap(exec, pieces, transports, outcome);
  for (tersum::status const& s : outcome) { check(s.ok(), "a piece"); }
  check(error_of(gradient, 1) < .05, "the mean in pieces");
}

int main(int count, char** arguments)
{
  {
    tersum::loopback_group group{ranks};
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&group, rank] {
        tersum::loopback_transport const transport{group, rank};
        mine_of_thread = &transport;
        exchange_all(rank);
      });
    }
  }
  int given = 0;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &given);
  if (given == MPI_THREAD_MULTIPLE) { exchange_over_mpi(); }
  MPI_Finalize();
  return pages::faults;
}
