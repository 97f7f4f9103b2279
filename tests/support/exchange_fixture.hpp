// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges of several ranks on any executor, recorded byte by byte, so that executors can be compared.

#pragma once

#include "exchange_run.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tersum::tests {

//! @brief A gradient like those of training: ranks share part of their signal, stretches differ in size by orders of
//! magnitude, some are zero, some coordinates stand out.
template <class Element>
[[nodiscard]] std::vector<Element> make_gradient(std::uint64_t coordinates,
                                                 int rank,
                                                 int step,
                                                 bool non_finite)
{
  std::vector<Element> gradient(coordinates);
  std::mt19937 common(static_cast<unsigned>(1000 + step));
  std::mt19937 own(static_cast<unsigned>(2000 + 100 * step + rank));
  auto const uniform = [](std::mt19937& random) {
    return static_cast<float>(random()) * 0x1p-31F - 1.0F;
  };
  float size = 1.0F;
  for (std::uint64_t i = 0; i < coordinates; ++i) {
    if (i % 384 == 0) {
      unsigned const kind = common() % 8;
      size                = kind == 0 ? 0.0F : std::ldexp(1.0F, -4 * static_cast<int>(kind % 4));
    }
    float const shared   = uniform(common) + uniform(common);
    float const separate = uniform(own) + uniform(own);
    float const stands   = own() % 512 == 0 ? 20.0F : 1.0F;
    gradient[i]          = from_float<Element>(size * stands * (0.6F * shared + separate));
  }
  if (non_finite && coordinates > 0) {
    float const infinity = std::numeric_limits<float>::infinity();
    if (rank == 0) {
      gradient[coordinates / 2] = from_float<Element>(std::numeric_limits<float>::quiet_NaN());
    }
    if (rank == 1) { gradient[coordinates - 1] = from_float<Element>(-infinity); }
  }
  return gradient;
}

//! @brief Some memory of one rank at some point of an exchange.
struct trace_entry {
  std::string_view what;
  int step;
  std::size_t rank;
  byte_string bytes;
};

//! @brief All that the ranks sent in each round, then what they got, and their states.
using exchange_trace = std::vector<trace_entry>;

//! @brief The values with every NaN the same: which bits a NaN has is not specified.
template <class Element>
[[nodiscard]] byte_string with_one_nan(byte_string values)
{
  for (std::size_t at = 0; at + sizeof(Element) <= values.size(); at += sizeof(Element)) {
    Element value;
    std::memcpy(&value, values.data() + at, sizeof(value));
    if (!std::isnan(to_float(value))) { continue; }
    value = from_float<Element>(std::numeric_limits<float>::quiet_NaN());
    std::memcpy(values.data() + at, &value, sizeof(value));
  }
  return values;
}

//! @brief Appends what every rank ends with.
template <class Buffer, class Codec, class Given, class Got>
void record_results(exchange_trace& trace,
                    int step,
                    exchange_run<Buffer, Codec, Given, Got> const& run)
{
  for (std::size_t rank = 0; rank < run.size(); ++rank) {
    trace.push_back({"result", step, rank, with_one_nan<Got>(run.result(rank))});
    trace.push_back({"state", step, rank, run.kept(rank)});
  }
}

//! @brief What the ranks are given in a step.
template <class Codec, class Given, class Got>
[[nodiscard]] auto given_in_step(exchange_case<Codec, Given, Got> const& c, int step)
{
  return c.given_by([&](int rank) {
    return make_gradient<Given>(c.gradient.coordinates, rank, step, step == c.non_finite_step);
  });
}

//! @brief Runs the exchanges of a case.
//!
//! @tparam Buffer  Memory of the executor, with the members of `host_buffer`.
//! @param fill     What state and workspace hold before; two traces made with different values are equal only if nothing
//!                 is read or kept that was never written.
template <class Buffer, class Executor, class Codec, class Given, class Got>
[[nodiscard]] exchange_trace record_exchange(Executor const& exec,
                                             exchange_case<Codec, Given, Got> const& c,
                                             std::byte fill)
{
  exchange_trace trace;
  exchange_run<Buffer, Codec, Given, Got> run{exec, c, fill};
  if constexpr (in_metric<Codec> && ending_in_shards<Codec>) { run.write_scales(); }
  for (int step = 0; step < c.steps; ++step) {
    if constexpr (weighs_kept<Codec>) { run.write_gains(1.5f / static_cast<float>(step + 1)); }
    run.exchange(exec, given_in_step(c, step), [&](auto round, bool arrived) {
      if (!arrived) {
        run.for_each_piece(round, false, [&](auto const& piece) {
          trace.push_back({"what is sent", step, piece.rank, run.read(piece)});
        });
      } else if (c.hostile) {
        run.disturb(round, step);
      }
    });
    record_results(trace, step, run);
  }
  return trace;
}

//! @brief The first difference between two traces in words; empty when there is none.
[[nodiscard]] inline std::string difference(exchange_trace const& got, exchange_trace const& want)
{
  if (want.empty() || got.size() != want.size()) { return "the traces differ in length"; }
  for (std::size_t i = 0; i < got.size(); ++i) {
    trace_entry const& a = got[i];
    trace_entry const& b = want[i];
    if (a.bytes == b.bytes) { continue; }
    std::ostringstream text;
    text << a.what << " of rank " << a.rank << " in step " << a.step;
    if (a.bytes.size() != b.bytes.size()) {
      text << ": " << a.bytes.size() << " bytes, want " << b.bytes.size();
      return text.str();
    }
    std::size_t first = a.bytes.size(), differ = 0;
    for (std::size_t at = a.bytes.size(); at-- > 0;) {
      if (a.bytes[at] == b.bytes[at]) { continue; }
      first = at;
      ++differ;
    }
    auto const word = [&](byte_string const& bytes) {
      std::uint32_t value     = 0;
      std::size_t const begin = first / 4 * 4;
      std::memcpy(&value, bytes.data() + begin, std::min<std::size_t>(4, bytes.size() - begin));
      return value;
    };
    text << ": " << differ << " of " << a.bytes.size() << " bytes differ, first byte " << first
         << ", in the word " << std::hex << word(a.bytes) << ", want " << word(b.bytes);
    return text.str();
  }
  return {};
}

//! The CPU with vectors of four: the reference for everything else.
inline constexpr cpu_executor reference_executor{.threads      = 1,
                                                 .instructions = instruction_set::baseline};

template <class Codec, class Given, class Got>
[[nodiscard]] exchange_trace record_reference(exchange_case<Codec, Given, Got> const& c)
{
  return record_exchange<host_buffer>(reference_executor, c, std::byte{0x5a});
}

//! @brief Checks that record(executor) gives the reference for the other instruction sets of the CPU. Says which are missing.
template <class Record>
void check_instruction_sets(Record const& record, exchange_trace const& reference)
{
  for (instruction_set const set : {instruction_set::avx2, instruction_set::avx512}) {
    std::string_view const name = set == instruction_set::avx2 ? "AVX2" : "AVX-512";
    CAPTURE(name);
    cpu_executor const exec{.threads = 1, .instructions = set};
    if (!exec.check().ok()) {
      // Once for a program, not for each of its cases.
      static std::set<std::string_view> said;
      if (said.insert(name).second) { MESSAGE("not compared: this machine lacks " << name); }
      continue;
    }
    CHECK(difference(record(exec), reference) == "");
  }
}

//! @brief Calls check(c) for gradients that begin at any element of a sector but the first, and end within a thread's neighbours.
template <class Element, class Codec, class Check>
void for_each_offset(Codec const& codec, Check const& check)
{
  constexpr std::uint64_t size = Codec::chunk_size;
  exchange_case<Codec, Element> c{
    .codec = codec, .gradient = {.coordinates = 2 * size + size / 4 * 3 - 5}, .steps = 2};
  for (c.misaligned = 1; c.misaligned < static_cast<int>(32 / sizeof(Element)); ++c.misaligned) {
    CAPTURE(c);
    check(c);
  }
}

//! @brief The least prime that is not below a number.
[[nodiscard]] inline std::uint64_t prime_from(std::uint64_t number)
{
  auto const is_prime = [](std::uint64_t n) {
    for (std::uint64_t divisor = 2; divisor * divisor <= n; ++divisor) {
      if (n % divisor == 0) { return false; }
    }
    return n >= 2;
  };
  while (!is_prime(number)) { ++number; }
  return number;
}

//! @brief Matrices and vectors one after the other; those below 32 coordinates bypass, as vectors do.
class bucket {
 public:
  struct shape {
    std::uint64_t rows;
    std::uint64_t columns;
  };

  explicit bucket(std::vector<shape> const& shapes)
  {
    for (auto const [rows, columns] : shapes) {
      tensors_.push_back({.name = {}, .rows = rows, .columns = columns, .offset = end_});
      end_ += rows * columns;
    }
    weighted_ = tensors_;
    for (std::size_t i = 0; i < weighted_.size(); ++i) {
      weighted_[i].weight = i % 3 == 0 ? 0.3f : i % 3 == 1 ? 50.0f : 1.0f;
    }
  }

  //! Valid as long as the bucket.
  [[nodiscard]] layout gradient() const
  {
    return {.coordinates = end_, .tensors = tensors_, .bypass_below = 32, .bypass_vectors = true};
  }

  //! The same, its tensors with weights.
  [[nodiscard]] layout weighted() const
  {
    layout out  = gradient();
    out.tensors = weighted_;
    return out;
  }

 private:
  std::vector<tensor> tensors_;
  std::vector<tensor> weighted_;
  std::uint64_t end_ = 0;
};

//! @brief Tensors at aligned and odd offsets: matrices of whole chunks, of less and between, vectors, an empty tensor, one coordinate.
[[nodiscard]] inline bucket const& odd_bucket()
{
  static bucket const all{{{64, 16},  // whole chunks at an aligned offset
                           {1, 5},    // a vector, which moves what follows to an odd offset
                           {7, 3},    // below the threshold
                           {33, 31},
                           {0, 9},
                           {64, 32},  // whole chunks, misaligned
                           {1, 1},
                           {5, 1},
                           {1, 4},    // brings the offset back to a multiple of four
                           {41, 26},  // a whole chunk and a tail, aligned
                           {11, 61}}};
  return all;
}

//! @brief Tensors whose sums over chunks of `Size` coordinates have one, several and again one subtree, the second with a tail.
template <std::uint64_t Size>
[[nodiscard]] bucket const& deep_bucket()
{
  static bucket const all{{{1001, Size}, {1, 4}, {2 * 1024 + 900, Size + 1}, {64, Size}}};
  return all;
}

//! @brief Calls check(case) for sizes about a chunk's, for shards that cut chunks and tensors anywhere, and for empty shards.
template <class Given, class Got, class Codec, class Check>
void for_each_shard_case(Codec const& codec, std::uint64_t several, Check const& check)
{
  using a_case                 = exchange_case<Codec, Given, Got>;
  constexpr std::uint64_t size = Codec::chunk_size;
  for (std::uint64_t const d : {std::uint64_t{0}, std::uint64_t{1}, size - 1, size, size + 1}) {
    check(a_case{.codec = codec, .gradient = {d}, .world = 3, .steps = 2});
  }
  check(a_case{.codec = codec, .gradient = {several}, .world = 1, .steps = 2});
  check(a_case{.codec = codec, .gradient = {several}, .world = 4, .steps = 2, .misaligned = true});
  // Whole chunks; a boundary within one; three within one; empty shards at both ends and between.
  std::uint64_t const end = 4 * size + 17;
  check(
    a_case{.codec    = codec,
           .gradient = {end},
           .world    = 8,
           .cuts  = {0, 0, size, 2 * size + 5, 2 * size + 5, 3 * size + 1, 3 * size + 9, end, end},
           .steps = 3,
           .non_finite_step = 1});
  // Tensors, of which some bypass, cut anywhere.
  layout const bucket       = odd_bucket().gradient();
  std::uint64_t const whole = bucket.coordinates;
  check(a_case{.codec      = codec,
               .gradient   = bucket,
               .world      = 5,
               .cuts       = {0, 700, 1026, 1027, whole - 3, whole},
               .steps      = 2,
               .misaligned = true});
}

}  // namespace tersum::tests
