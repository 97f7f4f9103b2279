// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How a rank adds up what an all-to-all brought it: launches, and the bits of sums of two.

#include "device/reduce_cases.hpp"
#include "support/emulated_executor.hpp"

#include <tersum/device/reduce.hpp>
#include <tersum/tersum.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

using namespace tersum;
using namespace tersum::tests;

namespace {

// Counts the launches of calls on arrays. A sum of two is one too.
struct counting_executor : emulated_executor {
  int* launches;

  explicit counting_executor(int& count) : launches{&count} {}

  template <class Kernel>
  [[nodiscard]] status run(Kernel const& kernel, std::uint64_t blocks) const
  {
    if (blocks > 0) { ++*launches; }
    return emulated_executor::run(kernel, blocks);
  }
};

// Payloads one after the other, aligned to 16 bytes as scratch memory is, with room for any element.
template <class Op>
void check_received(Op const& op, std::size_t count, std::size_t ranks, int want_launches)
{
  using element = typename Op::element;
  CAPTURE(count);
  CAPTURE(ranks);
  std::vector<word4> room(ranks * count * sizeof(element) / 16 + 1);
  auto* const received = reinterpret_cast<element*>(room.data());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    auto const payload = random_payload<std::uint32_t>(count * sizeof(element) / 4 + 1,
                                                       7 + static_cast<unsigned>(rank));
    std::memcpy(received + rank * count, payload.data(), count * sizeof(element));
  }
  std::vector<word4> sum(count * sizeof(element) / 16 + 1), want(sum.size());
  auto* const to     = reinterpret_cast<element*>(sum.data());
  auto* const wanted = reinterpret_cast<element*>(want.data());
  cpu_executor const cpu{};
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    REQUIRE(cpu.reduce(op, wanted, rank == 1 ? received : wanted, received + rank * count, count) ==
            status{});
  }
  int launches = 0;
  counting_executor const exec{launches};
  std::span<element> const out{to, count};
  std::span<element const> const gathered{received, ranks * count};
  REQUIRE(reduce(exec, op, out, gathered, static_cast<int>(ranks)) == status{});
  CHECK(launches == want_launches);
  CHECK(same_bytes(sum, want));
  std::memset(sum.data(), 0, sum.size() * sizeof(word4));
  REQUIRE(reduce(cpu, op, out, gathered, static_cast<int>(ranks)) == status{});
  CHECK(same_bytes(sum, want));
}

}  // namespace

TEST_CASE("[interop] blocks that arrived from all ranks are added up in one launch")
{
  for (std::size_t const ranks : {2u, 3u, 8u, 64u}) {
    check_received(saturating_add<4>{}, 260, ranks, 1);
    check_received(native_sum<half>{}, 520, ranks, 1);
    check_received(native_sum<float>{}, 0, ranks, 0);
    check_received(native_max<float>{}, 4, ranks, 1);
  }
  // Payloads of no whole vectors do not begin at 16 bytes: an element a thread.
  check_received(native_sum<std::uint32_t>{}, 3, 8, 1);
  check_received(saturating_add<4>{}, 261, 8, 1);
  // Of more ranks than a launch takes addresses: 64, then 63 at a time.
  check_received(saturating_add<8>{}, 4, 128, 3);
  // The width of a word follows from its position.
  detail::selection_header header{};
  header.base[2] = 101;
  header.base[1] = 230;
  check_received(saturating_segments<2, 4, 8>{&header}, 404, 8, 1);
}
