// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What random_exchange.hpp declares.

#include "random_exchange.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <sstream>

namespace tersum::tests {

namespace {

// Below it no sum of 64 ranks comes near the largest half, so nothing may be flagged.
constexpr float tame = 100;

exchange_settings draw_settings(number_source& source, reduction_order order)
{
  exchange_settings out;
  out.threads      = source.from_to(1, 4);
  int const best   = static_cast<int>(best_instruction_set());
  out.instructions = static_cast<instruction_set>(source.from_to(0, best));
  out.filling      = static_cast<std::byte>(source.below(256));
  out.shift        = source.one_in(2) ? source.from_to(0, 9) : 0;
  out.order        = order;
  return out;
}

std::uint64_t draw_length(number_source& source, std::uint64_t most)
{
  constexpr std::uint64_t borders[] = {
    0, 1, 2, 31, 32, 33, 64, 127, 128, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025};
  std::uint64_t const length =
    source.one_in(3) ? borders[source.below(std::size(borders))] : source.below(most + 1);
  return std::min(length, most);
}

bool finite(std::vector<float> const& values)
{
  return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

//! Equal bits, where any NaN equals any other.
bool same(float a, float b)
{
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}
bool same(std::vector<float> const& a, std::vector<float> const& b)
{
  return std::ranges::equal(a, b, [](float x, float y) { return same(x, y); });
}

//! The coordinates that a value which is not finite may make NaN.
std::vector<bool> reached(tried_codec const& codec,
                          tried_ranks& ranks,
                          std::vector<bool> const& bad)
{
  std::vector<bool> out = bad;
  auto const spread     = [&](std::uint64_t begin, std::uint64_t length) {
    auto const first = out.begin() + static_cast<std::ptrdiff_t>(begin);
    auto const last  = first + static_cast<std::ptrdiff_t>(length);
    if (std::find(first, last, true) != last) { std::fill(first, last, true); }
  };
  if (codec.far == reach::tensor) {
    for (tensor_record const& r : ranks.records(0)) {
      if (r.chunks != 0) { spread(r.offset, r.size); }
    }
  } else if (codec.far != reach::coordinate) {
    for (chunk_entry const& c : ranks.table(0)) { spread(c.offset, c.length); }
  }
  return out;
}

//! The first law that a step broke.
std::string check_step(tried_codec const& codec,
                       tried_ranks& ranks,
                       gradients const& in,
                       gradients const& out,
                       bool was_tame)
{
  std::size_t const world = in.size();
  bool const flagged      = ranks.flagged();
  bool const finite_in    = std::ranges::all_of(in, finite);
  for (std::size_t rank = 0; rank < world; ++rank) {
    int const r = static_cast<int>(rank);
    if (!same(out[rank], out[0])) {
      return "rank " + std::to_string(r) + " has another mean than rank 0";
    }
    // Where owners feed back, the fingerprint contains the rank.
    tersum::state_header header = ranks.header(r);
    header.layout               = ranks.header(0).layout;
    if (codec.flags_shards) { header.non_finite_step = ranks.header(0).non_finite_step; }
    auto const behind = ranks.common_bytes() - sizeof header;
    if (std::memcmp(&header, &ranks.header(0), sizeof header) != 0 ||
        std::memcmp(ranks.state(r).data() + sizeof header,
                    ranks.state(0).data() + sizeof header,
                    behind) != 0) {
      return "rank " + std::to_string(r) + " has another state than rank 0";
    }
    // Where nothing travels, feedback keeps the gradient as it is.
    if (ranks.travels() &&
        !std::ranges::all_of(ranks.residual(r), [](float v) { return std::isfinite(v); })) {
      return "the residual of rank " + std::to_string(r) + " is not finite";
    }
  }
  if (!ranks.intact()) { return "something was written beside the memory"; }
  if (!finite(out[0]) && !flagged) { return "the mean is not finite, and there is no flag"; }
  if (finite_in && was_tame && flagged) { return "finite gradients were flagged"; }
  if (!finite_in && codec.sees_all && ranks.travels() && !flagged) {
    return "a gradient that is not finite was not flagged";
  }
  return {};
}

}  // namespace

std::string random_exchange::text() const
{
  std::ostringstream out;
  out << codec.name << ' ' << codec.element << " world " << world << " coordinates " << coordinates;
  if (!tensors.empty()) {
    out << " tensors";
    for (tensor const& t : tensors) {
      out << ' ' << t.rows << 'x' << t.columns;
      if (t.weight != 1) { out << '*' << t.weight; }
    }
    out << " bypass_below " << bypass_below;
  }
  for (exchange_settings const* s : {&first, &second}) {
    out << " (threads " << s->threads << " set " << static_cast<int>(s->instructions) << " shift "
        << s->shift << " filling " << static_cast<int>(s->filling) << " order "
        << static_cast<int>(s->order) << ')';
  }
  for (gradient_kind const k : kinds) { out << ' ' << kind_names[static_cast<std::size_t>(k)]; }
  return out.str();
}

random_exchange draw_exchange(number_source& source,
                              std::vector<tried_codec> const& codecs,
                              std::uint64_t values)
{
  random_exchange e{};
  e.codec = codecs[source.below(codecs.size())];
  switch (source.below(8)) {
    case 0: e.world = 1; break;
    case 1: e.world = source.from_to(1, 64); break;
    case 2: e.world = source.from_to(1, 20); break;
    default: e.world = source.from_to(2, 6);
  }
  std::uint64_t const longest = values / static_cast<std::uint64_t>(e.world);
  std::uint64_t const most    = std::min<std::uint64_t>(e.world > 16 ? 1500 : 6000, longest);
  if (e.codec.needs_tensors || source.one_in(2)) {
    for (int left = source.from_to(1, 5); left > 0; --left) {
      tensor t{.rows = source.below(48), .columns = source.below(48) + 1, .offset = e.coordinates};
      if (source.one_in(3)) { t.rows = draw_length(source, most / 2), t.columns = 1; }
      if (source.one_in(4)) { std::swap(t.rows, t.columns); }
      std::uint64_t const left_over = longest - e.coordinates;
      if (t.size() > left_over) { t.rows = left_over / t.columns; }
      if (source.one_in(4)) { t.weight = source.one_in(3) ? 0.0f : 50.0f; }
      e.coordinates += t.size();
      e.tensors.push_back(t);
    }
    e.bypass_below = source.one_in(2) ? source.below(200) : 0;
  } else {
    e.coordinates = draw_length(source, most);
  }
  e.seed           = source.below(1u << 16);
  auto const order = source.one_in(2) ? reduction_order::direct : reduction_order::ring;
  e.first          = draw_settings(source, order);
  e.second         = draw_settings(source, order);
  for (int left = source.from_to(1, 4); left > 0; --left) {
    e.kinds.push_back(static_cast<gradient_kind>(source.below(kind_names.size())));
  }
  return e;
}

input_counts::~input_counts()
{
  std::fprintf(stderr,
               "stat::exchanged_inputs: %llu\nstat::refused_inputs: %llu\n",
               static_cast<unsigned long long>(exchanged),
               static_cast<unsigned long long>(refused));
}

verdict try_exchange(random_exchange const& e, number_source& source)
{
  verdict out;
  auto const first  = e.codec.make(e.gradient(), e.world, e.first.shift);
  auto const second = e.codec.make(e.gradient(), e.world, e.second.shift);
  if (!first->check().ok()) {
    out.refused = true;
    return out;
  }
  auto const fail = [&](std::string_view what) {
    out.broken = std::string{what} + ", in step " + std::to_string(out.steps);
    return out;
  };
  for (auto const& [ranks, settings] :
       {std::pair{first.get(), &e.first}, {second.get(), &e.second}}) {
    if (status const s = ranks->initialize(*settings, e.seed); !s.ok()) { return fail(s.message); }
  }
  float const largest = e.codec.element == "half" ? 65504.0f : 3.3e38f;
  bool was_tame       = true;
  for (gradient_kind const kind : e.kinds) {
    ++out.steps;
    gradients in = make_gradients(kind, e.coordinates, e.world, largest, source);
    first->round(in);
    for (auto const& of_rank : in) {
      for (float const v : of_rank) {
        was_tame = was_tame && !(std::isfinite(v) && std::abs(v) > tame);
      }
    }
    gradients means = in, again = in;
    if (status const s = first->exchange(e.first, means); !s.ok()) { return fail(s.message); }
    if (status const s = second->exchange(e.second, again); !s.ok()) { return fail(s.message); }
    if (first->flagged()) { ++out.flagged; }

    if (auto const text = check_step(e.codec, *first, in, means, was_tame); !text.empty()) {
      return fail(text);
    }
    for (int rank = 0; rank < e.world; ++rank) {
      if (!same(means[static_cast<std::size_t>(rank)], again[static_cast<std::size_t>(rank)])) {
        return fail("threads, instructions, alignment or old memory changed the mean");
      }
      if (!std::ranges::equal(first->state(rank), second->state(rank))) {
        return fail("threads, instructions, alignment or old memory changed the state");
      }
    }
    if (out.steps > 1) { continue; }

    // Without a past there is no residual.
    if (kind == gradient_kind::zeros &&
        std::ranges::any_of(means[0], [](float v) { return v != 0; })) {
      return fail("zeros have a mean that is not zero");
    }
    if (kind == gradient_kind::with_nan || kind == gradient_kind::with_inf) {
      std::vector<bool> bad(e.coordinates);
      gradients without = in;
      for (auto& of_rank : without) {
        for (std::size_t i = 0; i < of_rank.size(); ++i) {
          if (!std::isfinite(of_rank[i])) {
            bad[i]     = true;
            of_rank[i] = 0;
          }
        }
      }
      auto const clean = e.codec.make(e.gradient(), e.world, e.first.shift);
      if (!clean->initialize(e.first, e.seed).ok() || !clean->exchange(e.first, without).ok()) {
        return fail("without the NaN the exchange fails");
      }
      auto const may = reached(e.codec, *first, bad);
      for (std::size_t i = 0; i < e.coordinates; ++i) {
        if (may[i]) { continue; }
        bool const as_without = e.codec.far == reach::codes ? std::isfinite(means[0][i])
                                                            : same(means[0][i], without[0][i]);
        if (!as_without) {
          return fail("a value that is not finite changed coordinate " + std::to_string(i) +
                      " beyond its chunk");
        }
      }
    }
  }
  return out;
}

}  // namespace tersum::tests
