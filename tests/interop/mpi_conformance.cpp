// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The conformance suite of transports over MPI: one rank, started by mpirun. With the argument `survive`, and mpirun's
//! --enable-recovery, the last rank is killed during an exchange instead; with `brief` there is one shape a codec.

#include <tersum/interop/mpi.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <interop/conformance.hpp>
#include <interop/summed_shards.hpp>
#include <memory>
#include <thread>
#include <vector>

namespace {

// Blocks that are larger than a word, and that MPI must not cut: the second half is the sum of the first's bytes.
struct block {
  std::uint32_t value[8];
  std::uint32_t check;
};

int cut_blocks = 0;

struct add_blocks {
  using element                     = block;
  static constexpr bool native      = false;
  static constexpr bool associative = true;
  static constexpr bool exact       = true;

  block operator()(block const& a, block const& b) const
  {
    block sum{};
    if (!whole(a) || !whole(b)) { ++cut_blocks; }
    for (int i = 0; i < 8; ++i) { sum.value[i] = a.value[i] + b.value[i]; }
    sum.check = a.check + b.check;
    return sum;
  }

  static bool whole(block const& b)
  {
    std::uint32_t sum = 0;
    for (std::uint32_t const v : b.value) { sum += v; }
    return sum == b.check;
  }
};

int check_blocks(tersum::mpi_transport const& transport)
{
  std::vector<block> blocks(20011);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::uint32_t k = 0; k < 8; ++k) {
      blocks[i].value[k] =
        static_cast<std::uint32_t>(i * 8 + k) + static_cast<std::uint32_t>(transport.rank());
      blocks[i].check += blocks[i].value[k];
    }
  }
  tersum::wire<add_blocks> const round{.data = blocks.data(), .count = blocks.size()};
  int bad      = transport.all_reduce(round).ok() ? cut_blocks : 1;
  auto const n = static_cast<std::uint32_t>(transport.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    bad += blocks[i].value[0] != static_cast<std::uint32_t>(i * 8) * n + n * (n - 1) / 2;
  }
  if (bad > 0) { std::printf("%d blocks are cut or wrong\n", bad); }
  return bad;
}

// Every exchange and every collective tells within its timeout that a rank is dead, and those left make a new communicator.
int survive()
{
  using namespace tersum;
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds timeout{300};
  constexpr std::size_t size = 1 << 18;
  // MPI may go on using the memory of a call that did not end.
  static std::vector<float> values(size, 1.0f), received(size);
  static std::vector<std::uint32_t> lanes(size);
  wire<native_sum<float>> const native{.data = values.data(), .count = size};
  wire<saturating_add<4>> const custom{.data = lanes.data(), .count = size};

  constexpr int ways = 5;
  static std::vector<std::unique_ptr<mpi_transport>> over;
  for (int k = 0; k < ways; ++k) {
    over.push_back(std::make_unique<mpi_transport>(MPI_COMM_WORLD, timeout));
  }
  int const me = over[0]->rank(), n = over[0]->size();
  rank_blocks const blocks{.count = size, .element_bytes = sizeof(float), .ranks = n};
  auto* const data   = reinterpret_cast<std::byte*>(values.data());
  auto const attempt = [&](int way) {
    std::uint64_t word      = 0;
    mpi_transport const& to = *over[static_cast<std::size_t>(way)];
    switch (way) {
      case 0: return to.all_reduce(native);
      case 1: return to.all_reduce(custom);
      case 2: return to.all_to_all(data, blocks, reinterpret_cast<std::byte*>(received.data()));
      case 3: return to.all_gather(data, blocks);
      default: return to.exchange_word((me + 1) % n, 1, (me + n - 1) % n, word);
    }
  };
  int failures      = 0;
  auto const expect = [&](bool ok, int way, char const* what) {
    if (!ok) { std::printf("rank %d of %d, call %d: %s\n", me, n, way, what); }
    failures += ok ? 0 : 1;
  };
  for (int way = 0; way < ways; ++way) {
    expect(attempt(way).ok(), way, "failed among the living");
  }
  // A word that comes too late must not be written where the call that waited for it has left: the stack, perhaps.
  static std::uint64_t word = 0;
  static mpi_transport const impatient{MPI_COMM_WORLD, std::chrono::milliseconds(100)};
  if (me == n - 1) { std::this_thread::sleep_for(std::chrono::milliseconds(500)); }
  bool const came = impatient.exchange_word((me + 1) % n, 7, (me + n - 1) % n, word).ok();
  expect(came == (me != 0), ways, "a late rank was waited for, or one that was not late");
  for (int i = 0; i < 3; ++i) { MPI_Barrier(MPI_COMM_WORLD); }
  expect(word == (came ? 7 : 0), ways, "a word was written when nobody waited for it any more");

  static std::vector<std::unique_ptr<mpi_transport>> exchanges;
  for (int k = 0; k < 2; ++k) {
    exchanges.push_back(std::make_unique<mpi_transport>(MPI_COMM_WORLD, timeout));
  }
  for (bool const in_wire : {false, true}) {
    static int const last = n - 1;
    bool kept             = false;
    auto const over_this  = tests::forget_type(*exchanges[in_wire]);
    status const outcome  = tests::exchange_once(
      over_this,
      in_wire,
      [](int rank) {
        if (rank == last) { std::raise(SIGKILL); }
      },
      kept);
    if (me == last) { std::raise(SIGKILL); }  // it was the others that were late
    expect(outcome.code == error_code::transport_failed, ways + in_wire, "an exchange ended well");
    expect(kept, ways + in_wire, "a gradient was overwritten by an exchange that failed");
  }
  for (int way = 0; way < ways; ++way) {
    auto const begin     = clock::now();
    status const outcome = attempt(way);
    if (way == ways - 1 && me != 0) { continue; }  // hears from a rank that lives
    expect(outcome.code == error_code::transport_failed, way, "a rank is dead, and nobody said so");
    expect(clock::now() - begin < timeout + std::chrono::seconds(5), way, "the timeout passed");
    expect(!over[static_cast<std::size_t>(way)]->check().ok(),
           way,
           "a transport that failed can be used");
  }
  MPI_Group all = MPI_GROUP_NULL, left = MPI_GROUP_NULL;
  MPI_Comm next = MPI_COMM_NULL;
  int const dead[]{n - 1};
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_excl(all, 1, dead, &left);
  MPI_Comm_create_group(MPI_COMM_WORLD, left, 0, &next);
  static mpi_transport const survivors{next, std::chrono::seconds(30)};
  float sum          = static_cast<float>(failures);
  status const after = survivors.all_reduce(wire<native_sum<float>>{.data = &sum, .count = 1});
  bool kept          = true;
  status const next_exchange = tests::exchange_once(
    tests::forget_type(survivors), true, [](int) {}, kept);
  bool const good = after.ok() && sum == 0.0f && next_exchange.ok() && !kept;
  if (good && me == 0) { std::printf("one of %d ranks killed: ok\n", n); }
  std::fflush(stdout);
  _exit(good ? 0 : 1);  // MPI_Finalize would wait for the dead
}

// Communicators that cannot be used are refused in a sentence.
int check_communicators()
{
  int failures        = 0;
  auto const refusing = [&](MPI_Comm communicator, char const* sentence) {
    auto const answer = tersum::mpi_transport{communicator}.check();
    if (answer.code == tersum::error_code::invalid_argument && answer.message == sentence) {
      return;
    }
    ++failures;
    std::printf("instead of \"%s\": \"%s\"\n", sentence, answer.message.data());
  };
  refusing(MPI_COMM_NULL, "communicator is MPI_COMM_NULL, or was freed");
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) { return failures; }
  MPI_Comm half = MPI_COMM_NULL, between = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &between);
  refusing(between,
           "communicator is between two groups: only ranks of one group are exchanged with");
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
  return failures;
}

}  // namespace

int main(int argc, char** argv)
{
  tersum::status const early = tersum::mpi_transport{MPI_COMM_WORLD}.check();
  MPI_Init(&argc, &argv);
  if (argc > 1 && std::strcmp(argv[1], "survive") == 0) { return survive(); }
  int failures = 0;
  if (early.message != "MPI is not running: MPI_Init was not called, or MPI_Finalize was") {
    ++failures;
    std::printf("before MPI_Init: \"%s\"\n", early.message.data());
  }
  {
    tersum::mpi_transport const transport{MPI_COMM_WORLD};
    auto const any   = tersum::tests::forget_type(transport);
    bool const brief = argc > 1 && std::strcmp(argv[1], "brief") == 0;
    failures += tersum::tests::check_presets(any, brief);
    failures += tersum::tests::check_agreement(any);
    failures += check_blocks(transport);
    failures += tersum::tests::check_summed_shards(transport, true);
    failures += check_communicators();
    // With a time limit other calls of MPI are made.
    tersum::mpi_transport const limited{MPI_COMM_WORLD, std::chrono::seconds(60)};
    if (!brief) {
      failures += tersum::tests::check_presets(tersum::tests::forget_type(limited), true);
    }
    failures += check_blocks(limited);
    failures += tersum::tests::check_summed_shards(limited, true);
    bool kept                    = true;
    tersum::status const outcome = tersum::tests::exchange_once(
      any, false, [](int) {}, kept);
    if (!outcome.ok() || (kept && transport.size() > 1)) {
      ++failures;
      std::printf("rank %d: an exchange failed\n", transport.rank());
    }
    if (transport.rank() == 0 && failures == 0) { std::printf("%d ranks: ok\n", transport.size()); }
  }
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
