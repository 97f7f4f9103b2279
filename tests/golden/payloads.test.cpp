// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Golden payloads: the wire format of docs/wire_format.md must not change unnoticed. TERSUM_WRITE_GOLDEN=1 in the
//! environment writes tests/golden/payloads.txt anew, which the changelog then lists under *Wire format*.

#include "support/codecs.hpp"
#include "support/flush_subnormals.hpp"
#include "support/loopback_run.hpp"

#include <tersum/exchange/exchange.hpp>
#include <tersum/exchange/metric_scales.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>
#include <tersum/reduce/guard_lanes.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum_baselines/group_absmax.hpp>
#include <tersum_baselines/presets.hpp>
#include <tersum_baselines/served_sum.hpp>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

using namespace tersum;

namespace {

std::string const path = "tests/golden/payloads.txt";

// A gradient from integers alone: every machine makes the same one.
std::vector<float> integer_gradient(std::size_t coordinates, std::uint32_t rank)
{
  std::vector<float> out(coordinates);
  std::uint32_t x = 12345u + rank;
  for (std::size_t i = 0; i < coordinates; ++i) {
    x      = x * 1664525u + 1013904223u;
    out[i] = static_cast<float>(static_cast<std::int32_t>(x >> 8) - (1 << 23)) *
             (i % 700 < 350 ? 0x1p-30f : 0x1p-24f);
  }
  return out;
}

std::string digest(std::span<std::byte const> bytes)
{
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (std::byte const b : bytes) {
    hash = (hash ^ static_cast<std::uint64_t>(b)) * 1099511628211u;
  }
  std::ostringstream text;
  text << bytes.size() << ' ' << std::hex << hash << ' ';
  for (std::size_t i = 0; i < std::min<std::size_t>(32, bytes.size()); ++i) {
    text << "0123456789abcdef"[static_cast<unsigned>(bytes[i]) >> 4]
         << "0123456789abcdef"[static_cast<unsigned>(bytes[i]) & 15];
  }
  return text.str();
}

// What one executor makes of the presets, by name.
struct digests {
  cpu_executor exec;
  std::map<std::string, std::string> of = {};
};

// Rank 1 of 2 in its third step: what it sends, and what it gets.
template <class Codec>
void describe(std::string const& name,
              Codec const& codec,
              digests& into,
              std::span<tensor const> tensors = {},
              std::size_t d                   = 2500)
{
  std::vector<std::vector<float>> const in{integer_gradient(d, 0), integer_gradient(d, 1)};
  tests::loopback_run<Codec> run{codec, layout{d, tensors}, 2, 0x7e25, into.exec};
  run.exchange(in);
  run.exchange(in);
  auto const& plan = run.plan(1);
  auto mine        = in[1];
  std::vector<word4> state(plan.state_bytes() / 16 + 1), workspace(plan.workspace_bytes() / 16 + 1);
  auto const s = std::as_writable_bytes(std::span{state});
  auto const w = std::as_writable_bytes(std::span{workspace});
  std::copy(run.state(1).begin(), run.state(1).end(), s.begin());
  REQUIRE(measure(into.exec, plan, mine, s, w) == status{});
  if constexpr (agrees<Codec>) {
    into.of[name + " agreed"] = digest(w.subspan(plan.offset("agreed"), plan.agreed_bytes()));
  }
  REQUIRE(encode(into.exec, plan, mine, s, w) == status{});
  if constexpr (gathering<Codec>) {
    into.of[name + " part"] =
      digest(w.subspan(plan.offset("payload") + plan.part_bytes(), plan.part_bytes()));
  } else {
    into.of[name + " payload"] = digest(w.subspan(plan.offset("payload"), plan.payload_bytes()));
  }
  if constexpr (looking_up<Codec>) {
    std::vector<word4> indices(index_bytes(plan) / sizeof(word4));
    auto const up = std::as_writable_bytes(std::span{indices});
    REQUIRE(pack_indices(into.exec, plan, w, up) == status{});
    into.of[name + " indices"] = digest(up);
  }
  into.of[name + " mean"] = digest(std::as_bytes(std::span{run.exchange(in)[1]}));
}

// What the executor makes of presets and codecs that cover the wire format.
std::map<std::string, std::string> describe_codecs(cpu_executor const& exec)
{
  digests got{exec};
  describe("fp32", presets::fp32, got);
  describe("fp16", presets::fp16, got);
  describe("bf16", presets::bf16, got);
  describe("thc_wide4", presets::thc_wide4, got);
  describe("thc_wide4_partial", presets::thc_wide4_partial, got);
  describe("thc_wide4_unrotated", presets::thc_wide4_unrotated, got);
  describe("thc_lookup4", presets::thc_lookup4, got);
  describe("thc_sat2", presets::thc_sat2, got);
  describe("thc_sat4", presets::thc_sat4, got);
  describe("thc_sat8", presets::thc_sat8, got);
  describe("rotated_sat2", presets::rotated_sat2, got);
  describe("rotated_sat4", presets::rotated_sat4, got);
  describe("rotated_sat8", presets::rotated_sat8, got);
  describe("rotated_sat2_ef", presets::rotated_sat2_ef, got);
  describe("rotated_sat4_ef", presets::rotated_sat4_ef, got);
  describe("topkc_b2", presets::topkc_b2, got);
  describe("topkc_b2_ef", presets::topkc_b2_ef, got);
  describe("randomkc_b2", presets::randomkc_b2, got);
  describe("topkc_sat4", presets::topkc_sat4, got);
  using scaled =
    codec<top_chunks<128>, no_rotation, cast<tersum::half>, in_wire, error_feedback, kept_diagonal>;
  describe("halves in a metric", scaled{.chunker = {.bits = 4}}, got);
  using summed_widths = presets::allocated_saturating<nearest_quantizer<8>, error_feedback>;
  describe("summed widths by fourth roots of energies",
           summed_widths{.chunker = {.bits = 2, .weighting = 0.25f}},
           got);
  describe("topk_b2", presets::topk_b2, got);
  using guarded = tests::
    rotated_sums<128, rms_range<no_headroom, bfloat16>, stochastic_quantizer<4>, guard_lanes<8>>;
  describe("guard_lanes<8> of 128", guarded{}, got);
  using large = tests::rotated_sums<4096, rms_range<>, stochastic_quantizer<4>, saturating_sum<4>>;
  describe("saturating_sum<4> of 4096", large{}, got);
  std::vector<tensor> const tensors{{.rows = 70, .columns = 20},
                                    {.rows = 100, .offset = 1400},
                                    {.rows = 10, .columns = 100, .offset = 1500}};
  describe("powersgd_r1", presets::powersgd_r1, got, tensors);
  constexpr low_rank_codec<low_rank<3>, half> in_halves{.low_rank = {.least_saving = 1}};
  describe("factors in turns", presets::alternating_iteration<1>{}, got, tensors);
  describe("factors of 3 in half", in_halves, got, tensors);
  describe("two shots of 1 bit", presets::two_shot<1>{}, got);
  describe("two_shot_3", presets::two_shot_3, got);
  describe("two_shot_4_ef", presets::two_shot_4_ef, got);
  describe("allocated_4", presets::allocated_4, got);
  describe("widths by fourth roots of energies",
           presets::allocated_two_shot<>{.chunker = {.bits = 2, .weighting = 0.25f}},
           got);
  describe("blocks_4", presets::blocks_4, got);
  return got.of;
}

}  // namespace

TEST_CASE("[golden] payloads are those of the documented wire format")
{
  auto got = describe_codecs({});

  char const* const write = std::getenv("TERSUM_WRITE_GOLDEN");
  if (write != nullptr && std::string{write} == "1") {
    std::ofstream file(path);
    for (auto const& [name, text] : got) { file << name << ": " << text << '\n'; }
    MESSAGE("wrote ", path);
  }
  std::ifstream file(path);
  REQUIRE(file.good());
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    auto const colon = line.rfind(": ");
    CAPTURE(line);
    CHECK(got[line.substr(0, colon)] == line.substr(colon + 2));
  }
  CHECK(lines == got.size());
}

TEST_CASE(
  "[golden] ordinary gradients give the same bytes where the caller flushes subnormals to zero")
{
  if (!tests::flush_subnormals::works()) {
    MESSAGE("not tested: no such switch");
    return;
  }
  // All coordinates are multiples of 2^-30 (docs/contracts.md has the range), halves on the wire subnormal ones too.
  auto const want = describe_codecs({.threads = 1});
  for (instruction_set const set : {instruction_set::baseline, best_instruction_set()}) {
    auto const got = [&] {
      tests::flush_subnormals const scope;
      return describe_codecs({.threads = 1, .instructions = set});
    }();
    for (auto const& preset : want) {
      CAPTURE(preset.first);
      CHECK(got.at(preset.first) == preset.second);
    }
  }
}
