// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Gathered codes, and shards.

#include "support/golden_digest.hpp"
#include "support/shard_run.hpp"

#include <tersum/presets.hpp>
#include <tersum/sharded_presets.hpp>

#include <vector>

using namespace tersum;

TEST_CASE("[golden] exchanges of gathered codes are what they were")
{
  tests::golden_presets golden{"tests/golden/presets_gathered.txt"};
  TERSUM_DESCRIBE(golden, gathered_2);
  TERSUM_DESCRIBE(golden, gathered_4);
  TERSUM_DESCRIBE(golden, gathered_2_ef);
  golden.check();
}

namespace {

struct digests {
  std::uint64_t parts;
  std::uint64_t shards;

  friend bool operator==(digests const&, digests const&) = default;
  friend std::ostream& operator<<(std::ostream& out, digests const& d)
  {
    return out << std::hex << "{0x" << d.parts << ", 0x" << d.shards << '}';
  }
};

// Three exchanges among three ranks, whose boundaries cut chunks: all parts that they sent, and their shards.
template <class Codec, class Element>
digests digest_shards(Codec const& codec, std::vector<std::uint64_t> const& cuts)
{
  tests::shard_run<tests::host_buffer, Codec, Element, float> run{
    cpu_executor{}, {.codec = codec, .gradient = {9001}, .world = 3, .cuts = cuts}};
  tests::fnv_digest parts, shards;
  for (int step = 0; step < 3; ++step) {
    std::vector<std::vector<Element>> in;
    for (int rank = 0; rank < 3; ++rank) {
      in.push_back(tests::integer_gradient<Element>(9001, rank, step));
    }
    for (auto const& shard : run.exchange(cpu_executor{}, in)) {
      shards.add(std::as_bytes(std::span{shard}));
    }
    for (std::size_t rank = 0; rank < 3; ++rank) {
      auto const wire = shards_wire(run[rank].plan, run[rank].workspace);
      for (int part = 0; part < 3; ++part) {
        parts.add(std::as_bytes(std::span{wire.sent + wire.begin(part), wire.size(part)}));
      }
    }
  }
  return {parts.value(), shards.value()};
}

}  // namespace

TEST_CASE("[golden] exchanges of shards are what they were")
{
  CHECK(digest_shards<std::remove_cv_t<decltype(presets::sharded_4)>, float>(
          presets::sharded_4, {}) == digests{0x386b7c90c03148a4, 0x777a7ef7f57becb6});
  CHECK(digest_shards<std::remove_cv_t<decltype(presets::sharded_2_ef)>, bfloat16>(
          presets::sharded_2_ef, {0, 500, 501, 9001}) ==
        digests{0x1100857211ac60ad, 0x41fef8d759b7d007});
}
