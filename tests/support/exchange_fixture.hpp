// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges of several ranks on any executor, recorded byte by byte, so that executors can be compared.

#pragma once

#include <tersum/collective/loopback.hpp>
#include <tersum/execute/cpu_executor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iomanip>
#include <limits>
#include <new>
#include <ostream>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tersum::tests {

using byte_string = std::vector<std::byte>;

//! @brief Host memory that ends where its contents end, so that an overrun is one of the heap, which ASan sees.
class host_buffer {
 public:
  //! @param bytes      Its size; every byte holds `fill`.
  //! @param misplaced  How far after a multiple of 16 it begins.
  host_buffer(std::size_t bytes, std::size_t misplaced, std::byte fill)
    : memory_{static_cast<std::byte*>(::operator new(bytes + misplaced, alignment))},
      contents_{memory_ + misplaced, bytes}
  {
    std::fill(contents_.begin(), contents_.end(), fill);
  }
  host_buffer(host_buffer const&)            = delete;
  host_buffer& operator=(host_buffer const&) = delete;
  ~host_buffer() { ::operator delete(memory_, alignment); }

  [[nodiscard]] std::span<std::byte> contents() const { return contents_; }

  void write(std::span<std::byte const> from)
  {
    std::copy(from.begin(), from.end(), contents_.begin());
  }

  [[nodiscard]] byte_string read(std::size_t offset, std::size_t bytes) const
  {
    auto const part = contents_.subspan(offset, bytes);
    return {part.begin(), part.end()};
  }

 private:
  static constexpr std::align_val_t alignment{16};

  std::byte* memory_;
  std::span<std::byte> contents_;
};

//! @brief What is exchanged, and how often.
template <class Codec, class Element>
struct exchange_case {
  Codec codec{};
  layout gradient{};
  int world             = 2;
  int steps             = 3;
  bool misaligned       = false;  //!< Gradients begin one element after a multiple of 16 bytes.
  int non_finite_step   = -1;     //!< The step, from 0, in which gradients hold a NaN and an Inf.
  reduction_order order = reduction_order::ring;
  std::uint64_t seed    = 0x0123456789abcdef;

  friend std::ostream& operator<<(std::ostream& out, exchange_case const& c)
  {
    return out << c.gradient.coordinates << " coordinates, " << c.gradient.tensors.size()
               << " tensors, " << c.world << " ranks, " << c.steps << " steps, "
               << (c.misaligned ? "misaligned" : "aligned") << ", not finite in step "
               << c.non_finite_step;
  }
};

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

//! @brief One rank: its plan and memory of the executor for gradient, state and workspace.
template <class Buffer, class Codec, class Element>
class rank_memory {
 public:
  rank_memory(exchange_case<Codec, Element> const& c, int rank, std::byte fill)
    : plan{c.codec.plan(c.gradient, {.size = c.world, .rank = rank})},
      gradient{plan.coordinates() * sizeof(Element), c.misaligned ? sizeof(Element) : 0, fill},
      state{plan.state_bytes(), 0, fill}, workspace{plan.workspace_bytes(), 0, fill}
  {
  }

  [[nodiscard]] loopback_rank<Codec, Element> spans() const
  {
    auto* const values = reinterpret_cast<Element*>(gradient.contents().data());
    return {plan, {values, plan.coordinates()}, state.contents(), workspace.contents()};
  }

  [[nodiscard]] auto agreed() const { return agreed_wire(plan, workspace.contents()); }
  [[nodiscard]] auto gathered() const { return gathered_wire(plan, workspace.contents()); }
  [[nodiscard]] auto payload() const { return payload_wire(plan, workspace.contents()); }
  [[nodiscard]] auto bypass() const { return bypass_wire(plan, workspace.contents()); }

  //! What one of the wires holds.
  template <class Wire>
  [[nodiscard]] byte_string read(Wire const& wire) const
  {
    auto const begin = reinterpret_cast<std::byte const*>(wire.data) - workspace.contents().data();
    return workspace.read(static_cast<std::size_t>(begin), wire.bytes());
  }

  tersum::plan<Codec> plan;
  Buffer gradient;
  Buffer state;
  Buffer workspace;
};

//! @brief Some memory of one rank at some point of an exchange.
struct trace_entry {
  std::string_view what;
  int step;
  int rank;
  byte_string bytes;
};

//! @brief All that the ranks sent and kept: their own agreed scalars, codes and bypassing values before each reduction,
//! then their gradients and states.
using exchange_trace = std::vector<trace_entry>;

//! @brief Appends one wire of every rank.
template <class Memory, class Wire>
void record_wires(exchange_trace& trace,
                  std::string_view what,
                  int step,
                  std::deque<Memory> const& ranks,
                  Wire (Memory::*wire_of)() const)
{
  int rank = 0;
  for (Memory const& mine : ranks) {
    trace.push_back({what, step, rank++, mine.read((mine.*wire_of)())});
  }
}

template <class Executor, class Memory, class Wire>
void reduce_wires(Executor const& exec,
                  reduction_order order,
                  std::deque<Memory> const& ranks,
                  Wire (Memory::*wire_of)() const)
{
  std::vector<Wire> wires;
  for (Memory const& mine : ranks) { wires.push_back((mine.*wire_of)()); }
  std::span<Wire const> const all{wires};
  REQUIRE(loopback_all_reduce(exec, all, order) == status{});
}

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

//! @brief Runs the exchanges of a case.
//!
//! @tparam Buffer  Memory of the executor, with the members of `host_buffer`.
//! @param fill     What state and workspace hold before; two traces made with different values are equal only if nothing
//!                 is read or kept that was never written.
template <class Buffer, class Executor, class Codec, class Element>
[[nodiscard]] exchange_trace record_exchange(Executor const& exec,
                                             exchange_case<Codec, Element> const& c,
                                             std::byte fill)
{
  using memory = rank_memory<Buffer, Codec, Element>;
  exchange_trace trace;
  std::deque<memory> ranks;
  for (int rank = 0; rank < c.world; ++rank) {
    memory const& mine = ranks.emplace_back(c, rank, fill);
    REQUIRE(initialize(exec, mine.plan, mine.state.contents(), c.seed) == status{});
  }
  for (int step = 0; step < c.steps; ++step) {
    int rank = 0;
    for (memory& mine : ranks) {
      auto const gradient =
        make_gradient<Element>(c.gradient.coordinates, rank++, step, step == c.non_finite_step);
      mine.gradient.write(std::as_bytes(std::span{gradient}));
      auto const r = mine.spans();
      REQUIRE(encode(exec, r.plan, r.gradient, r.state, r.workspace) == status{});
    }
    if constexpr (Codec::agrees) {
      record_wires(trace, "agreed scalars", step, ranks, &memory::agreed);
      reduce_wires(exec, c.order, ranks, &memory::agreed);
      for (memory const& mine : ranks) {
        auto const r = mine.spans();
        REQUIRE(advance(exec, r.plan, r.gradient, r.state, r.workspace) == status{});
      }
    }
    if constexpr (gathering<Codec> || scattering<Codec>) {
      std::vector<loopback_rank<Codec, Element>> all;
      for (memory const& mine : ranks) { all.push_back(mine.spans()); }
      std::span<loopback_rank<Codec, Element> const> const spans{all};
      if constexpr (scattering<Codec>) {
        rank = 0;
        for (memory const& mine : ranks) {
          byte_string const sent =
            mine.workspace.read(mine.plan.payload_offset(), mine.plan.payload_bytes());
          trace.push_back({"payload", step, rank++, sent});
        }
        record_wires(trace, "bypass", step, ranks, &memory::bypass);
        reduce_wires(exec, c.order, ranks, &memory::bypass);
        REQUIRE(detail::scatter_loopback_round(exec, spans) == status{});
        for (auto const& r : all) {
          REQUIRE(recompress(exec, r.plan, r.gradient, r.state, r.workspace) == status{});
        }
      }
      REQUIRE(detail::gather_loopback_round(exec, spans) == status{});
      rank = 0;
      for (memory const& mine : ranks) {
        auto whole = mine.gathered();
        whole.count *= static_cast<std::size_t>(c.world);
        trace.push_back({"gathered", step, rank++, mine.read(whole)});
      }
    } else {
      record_wires(trace, "payload", step, ranks, &memory::payload);
      record_wires(trace, "bypass", step, ranks, &memory::bypass);
      reduce_wires(exec, c.order, ranks, &memory::payload);
      reduce_wires(exec, c.order, ranks, &memory::bypass);
    }
    rank = 0;
    for (memory const& mine : ranks) {
      auto const r = mine.spans();
      REQUIRE(decode(exec, r.plan, r.gradient, r.state, r.workspace) == status{});
      std::size_t const bytes = mine.plan.coordinates() * sizeof(Element);
      trace.push_back(
        {"gradient", step, rank, with_one_nan<Element>(mine.gradient.read(0, bytes))});
      trace.push_back({"state", step, rank++, mine.state.read(0, mine.plan.state_bytes())});
    }
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

//! @brief The trace of the CPU executor with vectors of four, which is the reference for everything else.
template <class Codec, class Element>
[[nodiscard]] exchange_trace record_reference(exchange_case<Codec, Element> const& c)
{
  return record_exchange<host_buffer>(
    cpu_executor{.threads = 1, .instructions = instruction_set::baseline}, c, std::byte{0x5a});
}

//! @brief Checks that the other instruction sets of the CPU give the reference. Says which are missing.
template <class Codec, class Element>
void check_instruction_sets(exchange_case<Codec, Element> const& c, exchange_trace const& reference)
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
    CHECK(difference(record_exchange<host_buffer>(exec, c, std::byte{0xa5}), reference) == "");
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

//! @brief Tensors at aligned and odd offsets: matrices of whole chunks, of less than one and between, vectors, an empty
//! tensor, one coordinate.
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

}  // namespace tersum::tests
