// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Fuzzes plans: any layout, world and budget is refused with a sentence, or has sections that follow each other, within
//! sizes that did not wrap, and rounds within the budget.

#include "number_source.hpp"

#include <tersum/presets.hpp>
#include <tersum_baselines/presets.hpp>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

namespace tersum::tests {

namespace {

void must(bool holds, char const* what)
{
  if (holds) { return; }
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

std::uint64_t any_size(number_source& source)
{
  switch (source.below(4)) {
    case 0: return source.below(3);
    case 1: return source.below(5000);
    case 2: return source.below(std::uint64_t{1} << 40);
    default: return source.below(std::numeric_limits<std::uint64_t>::max());
  }
}

void check_sections(detail::section_list const& sections)
{
  std::uint64_t end = 0;
  for (auto const& s : sections.entries()) {
    if (s.place != s.name) { continue; }
    std::uint64_t const begin = sections.offset(s.name);
    must(begin >= end && begin % 16 == 0, "a section overlaps another one");
    must(s.bytes <= std::numeric_limits<std::uint64_t>::max() - begin, "a section wraps");
    end = begin + s.bytes;
  }
  must(sections.bytes() == end, "the sections have another size than their sum");
}

template <class Codec>
void check_plan(Codec codec, layout const& gradient, world const& ranks, number_source& source)
{
  if constexpr (selects<Codec>) {
    if (source.one_in(2)) {
      float const bits[] = {
        0, -1, 0.01f, 0.5f, 1, 7.5f, 64, 65, 1e30f, std::numeric_limits<float>::quiet_NaN()};
      codec.chunker.bits = bits[source.below(std::size(bits))];
    }
  }
  auto const plan = codec.plan(gradient, ranks);
  if (!plan.check().ok()) {
    must(!plan.check().message.empty(), "a refusal has no sentence");
    return;
  }
  check_sections(plan.workspace_sections());
  check_sections(plan.state_sections());
  must(plan.compressed() + plan.bypassed() == plan.coordinates(), "coordinates are lost");
  must(plan.wire_bytes() == plan.agreed_bytes() + plan.payload_bytes() + plan.bypass_bytes(),
       "rounds differ from their sum");
  must(plan.state_bytes() >= sizeof(state_header), "the state has no header");
  if constexpr (selects<Codec>) {
    double const bits = 8.0 * static_cast<double>(plan.agreed_bytes() + plan.payload_bytes());
    must(bits <= static_cast<double>(codec.chunker.bits) * static_cast<double>(plan.compressed()) *
                     (1 + 1e-6) +
                   1e-3,
         "the budget is exceeded");
  }
}

}  // namespace

}  // namespace tersum::tests

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
  using namespace tersum;
  using namespace tersum::tests;
  number_source source{std::span{data, size}};
  std::vector<tensor> tensors;
  layout gradient{};
  if (source.one_in(3)) {
    gradient.coordinates = any_size(source);
  } else {
    for (int left = source.from_to(0, 6); left > 0; --left) {
      tensor t{.rows    = any_size(source),
               .columns = source.one_in(2) ? 1 : any_size(source),
               .offset  = gradient.coordinates};
      if (source.one_in(9)) { t.offset += any_size(source); }
      float const weights[] = {1, 0, 50, -1, -0.0f, 1e30f, std::numeric_limits<float>::infinity()};
      if (source.one_in(4)) { t.weight = weights[source.below(std::size(weights))]; }
      gradient.coordinates += t.size();
      tensors.push_back(t);
    }
    gradient.tensors        = tensors;
    gradient.bypass_below   = source.one_in(2) ? any_size(source) : 0;
    gradient.bypass_vectors = source.one_in(2);
    if (source.one_in(9)) { gradient.coordinates = any_size(source); }
  }
  world ranks{.size = source.from_to(1, 70), .rank = 0};
  if (source.one_in(4)) { ranks.size = static_cast<int>(source.below(1u << 17)) - 100; }
  ranks.rank = source.from_to(-1, 70);
  switch (source.below(9)) {
    case 0: check_plan(presets::fp16, gradient, ranks, source); break;
    case 1: check_plan(presets::rotated_sat4_ef, gradient, ranks, source); break;
    case 2: check_plan(presets::topkc_b2_ef, gradient, ranks, source); break;
    case 3: check_plan(presets::allocated_sat_2, gradient, ranks, source); break;
    case 4:
      check_plan(presets::allocated_two_shot<error_feedback>{.chunker = {.bits = 2}},
                 gradient,
                 ranks,
                 source);
      break;
    case 5: check_plan(presets::blocks_4, gradient, ranks, source); break;
    case 6: check_plan(presets::thc_wide4, gradient, ranks, source); break;
    case 7: check_plan(presets::topk_b2, gradient, ranks, source); break;
    default: check_plan(presets::powersgd_r4, gradient, ranks, source);
  }
  return 0;
}
