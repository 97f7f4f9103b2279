// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Gathered codes, shards, and values.

#include "support/golden_digest.hpp"
#include "support/shard_run.hpp"
#include "support/values_run.hpp"

#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>
#include <tersum/tersum.hpp>

#include <vector>

using namespace tersum;

TEST_CASE("[golden] exchanges of gathered codes are what they were")
{
  tests::golden_presets golden{"tests/golden/presets_gathered.txt"};
  TERSUM_DESCRIBE(golden, gathered_2);
  TERSUM_DESCRIBE(golden, gathered_4);
  golden.describe_fully("gathered codes with feedback", presets::gathered<2, error_feedback>{});
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
      auto const wire  = tests::codes_wire(run[rank].plan, run[rank].workspace);
      auto const* sent = [&] {
        if constexpr (summing<Codec>) {
          return wire.data;
        } else {
          return wire.sent;
        }
      }();
      for (int part = 0; part < 3; ++part) {
        parts.add(std::as_bytes(std::span{sent + wire.begin(part), wire.size(part)}));
      }
    }
  }
  return {parts.value(), shards.value()};
}

// The same of values, as the last rank has received them.
template <class Codec, class Element>
digests digest_values(Codec const& codec, std::vector<std::uint64_t> const& cuts)
{
  tests::values_run<tests::host_buffer, Codec, float, Element> run{
    cpu_executor{}, {.codec = codec, .values = {9001}, .world = 3, .cuts = cuts}};
  tests::fnv_digest parts, values;
  for (int step = 0; step < 3; ++step) {
    auto const out = run.exchange(cpu_executor{}, tests::integer_gradient<float>(9001, 0, step));
    values.add(std::as_bytes(std::span{out[0]}));
    auto const wire = published_wire(run[2].plan, run[2].workspace);
    for (int part = 0; part < 3; ++part) {
      parts.add(std::as_bytes(std::span{wire.data + wire.begin(part), wire.size(part)}));
    }
  }
  return {parts.value(), values.value()};
}

}  // namespace

TEST_CASE("[golden] exchanges of shards are what they were")
{
  CHECK(digest_shards<std::remove_cv_t<decltype(presets::sharded_4)>, float>(
          presets::sharded_4, {}) == digests{0xef538f0d514686ca, 0x899829facc41d758});
  CHECK(digest_shards<std::remove_cv_t<decltype(presets::sharded<2, error_feedback>{})>, bfloat16>(
          presets::sharded<2, error_feedback>{}, {0, 500, 501, 9001}) ==
        digests{0x3a92a88e7d224893, 0x7f460110c9313508});
  CHECK(digest_shards<std::remove_cv_t<decltype(
                        sharded_codec<fixed_chunks<1024>, no_rotation, cast<tersum::half>>{})>,
                      float>(sharded_codec<fixed_chunks<1024>, no_rotation, cast<tersum::half>>{},
                             {0, 500, 501, 9001}) ==
        digests{0x14b190a8d333d495, 0x4553e0fd5cf3340e});
  CHECK(digest_shards<std::remove_cv_t<decltype(presets::summed_shards_sat4)>, float>(
          presets::summed_shards_sat4, {}) == digests{0xc56f77e8352261f6, 0x3499c7b4eaa9afb1});
  CHECK(
    digest_shards<
      std::remove_cv_t<decltype(
        presets::saturating_shards<nearest_quantizer<4>, error_feedback>{.range = {.clip = 1.9f}})>,
      bfloat16>(
      presets::saturating_shards<nearest_quantizer<4>, error_feedback>{.range = {.clip = 1.9f}},
      {0, 500, 501, 9001}) == digests{0xac38ad0a0f203e59, 0x297dab5fb611a823});
}

TEST_CASE("[golden] exchanges of values are what they were")
{
  CHECK(digest_values<std::remove_cv_t<decltype(presets::values<4, error_feedback>{})>, float>(
          presets::values<4, error_feedback>{}, {}) ==
        digests{0x6d8366c735c9ea21, 0x5bc57780059ec86c});
  CHECK(
    digest_values<std::remove_cv_t<decltype(presets::values<4, difference_feedback>{})>, bfloat16>(
      presets::values<4, difference_feedback>{}, {0, 500, 501, 9001}) ==
    digests{0xb855d12effa10431, 0xa0275524aa22945});
  CHECK(digest_values<std::remove_cv_t<decltype(
                        values_codec<fixed_chunks<1024>, no_rotation, cast<tersum::half>>{})>,
                      bfloat16>(values_codec<fixed_chunks<1024>, no_rotation, cast<tersum::half>>{},
                                {0, 500, 501, 9001}) ==
        digests{0x97a7d548caa5080b, 0x7cdd00f854f37fee});
  using in_metric = values_codec<fixed_chunks<256>,
                                 partial_hadamard<256>,
                                 lloyd_max<3>,
                                 error_feedback,
                                 kept_diagonal>;
  CHECK(digest_values<in_metric, float>(in_metric{}, {0, 500, 501, 9001}) ==
        digests{0xe6c30946bc0e4cca, 0x2e1cc95adaa2b86f});
}
