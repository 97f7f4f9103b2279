// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The conformance suite of transports over MPI: one rank, started by mpirun.

#include <tersum/interop/mpi.hpp>

#include <cstdint>
#include <cstdio>
#include <interop/conformance.hpp>
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

}  // namespace

int main(int argc, char** argv)
{
  MPI_Init(&argc, &argv);
  int failures = 0;
  {
    tersum::mpi_transport const transport{MPI_COMM_WORLD};
    auto const any = tersum::tests::forget_type(transport);
    failures += tersum::tests::check_presets(any);
    failures += tersum::tests::check_agreement(any);
    failures += check_blocks(transport);
    bool kept                    = true;
    tersum::status const outcome = tersum::tests::exchange_once(
      any, [](int) {}, kept);
    if (!outcome.ok() || (kept && transport.size() > 1)) {
      ++failures;
      std::printf("rank %d: an exchange failed\n", transport.rank());
    }
    if (transport.rank() == 0 && failures == 0) { std::printf("%d ranks: ok\n", transport.size()); }
  }
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
