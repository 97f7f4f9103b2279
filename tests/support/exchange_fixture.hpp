// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges of several ranks on any executor, recorded byte by byte, so that executors can be compared.

#pragma once

#include "host_buffer.hpp"

#include <tersum/execute/cpu_executor.hpp>
#include <tersum/single_process/loopback.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iomanip>
#include <limits>
#include <ostream>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tersum::tests {

//! @brief What is exchanged, and how often.
template <class Codec, class Element>
struct exchange_case {
  Codec codec{};
  layout gradient{};
  int world             = 2;
  int steps             = 3;
  int misaligned        = 0;   //!< How many elements after a multiple of 16 bytes gradients begin.
  int non_finite_step   = -1;  //!< The step, from 0, in which gradients hold a NaN and an Inf.
  reduction_order order = reduction_order::ring;
  bool hostile       = false;  //!< What arrives in every round is not what was sent: see `disturb`.
  std::uint64_t seed = 0x0123456789abcdef;

  friend std::ostream& operator<<(std::ostream& out, exchange_case const& c)
  {
    return out << c.gradient.coordinates << " coordinates, " << c.gradient.tensors.size()
               << " tensors, " << c.world << " ranks, " << c.steps << " steps, " << c.misaligned
               << " elements misaligned, not finite in step " << c.non_finite_step
               << (c.hostile ? ", hostile" : "");
  }
};

//! Does what it is given: a test may capture it in a graph instead.
struct perform_at_once {
  template <class Exchange>
  [[nodiscard]] status operator()(Exchange const& exchange) const
  {
    return exchange();
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

//! @brief Memory of the executor for one rank: so many bytes of each kind.
template <class Buffer>
struct rank_memory {
  rank_memory(std::size_t values,
              std::size_t misplaced,
              std::size_t kept,
              std::size_t scratch,
              std::byte fill)
    : gradient{values, misplaced, fill}, state{kept, 0, fill}, workspace{scratch, 0, fill}
  {
  }

  template <class Wire>
  [[nodiscard]] static std::byte const* first_of(Wire const& wire)
  {
    if constexpr (requires { wire.gathered; }) {
      return reinterpret_cast<std::byte const*>(wire.gathered);
    } else {
      return reinterpret_cast<std::byte const*>(wire.data);
    }
  }

  //! What a wire holds.
  template <class Wire>
  [[nodiscard]] byte_string read(Wire const& wire) const
  {
    if (wire.bytes() == 0) { return {}; }  // a wire of nothing has no data
    auto const begin = first_of(wire) - workspace.contents().data();
    return workspace.read(static_cast<std::size_t>(begin), wire.bytes());
  }

  //! Puts bytes in the place of those of a wire.
  template <class Wire>
  void write(Wire const& wire, byte_string const& bytes) const
  {
    if (bytes.empty()) { return; }
    auto const begin = first_of(wire) - workspace.contents().data();
    workspace.write(bytes, static_cast<std::size_t>(begin));
  }

  Buffer gradient;
  Buffer state;
  Buffer workspace;
};

//! @brief The ranks of an exchange and their memory: what loopback rounds take.
template <class Buffer, class Codec, class Element>
class exchange_ranks {
 public:
  exchange_ranks(exchange_case<Codec, Element> const& c, std::byte fill) : case_{c}
  {
    for (int rank = 0; rank < c.world; ++rank) {
      auto const plan = plan_of(rank);
      memory_.emplace_back(plan.coordinates() * sizeof(Element),
                           static_cast<std::size_t>(c.misaligned) * sizeof(Element),
                           plan.state_bytes(),
                           plan.workspace_bytes(),
                           fill);
    }
  }

  [[nodiscard]] std::size_t size() const { return memory_.size(); }

  [[nodiscard]] loopback_rank<Codec, Element> operator[](std::size_t rank) const
  {
    auto const& mine   = memory_[rank];
    auto* const values = reinterpret_cast<Element*>(mine.gradient.contents().data());
    return {plan_of(static_cast<int>(rank)),
            {values, case_.gradient.coordinates},
            mine.state.contents(),
            mine.workspace.contents()};
  }

  [[nodiscard]] std::deque<rank_memory<Buffer>> const& memory() const { return memory_; }

  //! Gives every rank its gradient of a step.
  void write_gradients(int step)
  {
    int rank = 0;
    for (rank_memory<Buffer>& mine : memory_) {
      auto const gradient = make_gradient<Element>(
        case_.gradient.coordinates, rank++, step, step == case_.non_finite_step);
      mine.gradient.write(std::as_bytes(std::span{gradient}));
    }
  }

  //! Gives every rank the gain of its feedback.
  void write_gains(float gain) const
  {
    for (rank_memory<Buffer> const& mine : memory_) {
      mine.state.write(std::as_bytes(std::span{&gain, 1}), plan_of(0).offset("gain"));
    }
  }

  //! @name The wires of all ranks
  //! @{
  [[nodiscard]] auto agreed() const
  {
    return wires([](auto const& r) { return agreed_wire(r.plan, r.workspace); });
  }
  [[nodiscard]] auto payload() const
  {
    return wires([](auto const& r) { return payload_wire(r.plan, r.workspace); });
  }
  [[nodiscard]] auto bypass() const
  {
    return wires([](auto const& r) { return bypass_wire(r.plan, r.workspace); });
  }
  //! All parts that a rank sends.
  [[nodiscard]] auto scattered() const
  {
    return wires([](auto const& r) {
      auto* const sent =
        reinterpret_cast<std::uint32_t*>(r.workspace.data() + r.plan.offset("payload"));
      return gather_wire<std::uint32_t>{.gathered = sent,
                                        .count    = r.plan.payload_bytes() / sizeof(*sent)};
    });
  }
  //! All parts that a rank has got.
  [[nodiscard]] auto gathered() const
  {
    return wires([](auto const& r) {
      auto whole = gathered_wire(r.plan, r.workspace);
      whole.count *= static_cast<std::size_t>(whole.ranks);
      return whole;
    });
  }
  //! @}

 private:
  [[nodiscard]] tersum::plan<Codec> plan_of(int rank) const
  {
    return case_.codec.plan(case_.gradient, {.size = case_.world, .rank = rank});
  }

  template <class WireOf>
  [[nodiscard]] auto wires(WireOf const& wire_of) const
  {
    std::vector<decltype(wire_of((*this)[0]))> all;
    for (std::size_t rank = 0; rank < size(); ++rank) { all.push_back(wire_of((*this)[rank])); }
    return all;
  }

  exchange_case<Codec, Element> case_;
  std::deque<rank_memory<Buffer>> memory_;
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

//! @brief What the wires of the ranks hold.
template <class Buffer, class Wire>
[[nodiscard]] std::vector<byte_string> read_wires(std::deque<rank_memory<Buffer>> const& memory,
                                                  std::vector<Wire> const& wires)
{
  std::vector<byte_string> out;
  for (Wire const& each : wires) { out.push_back(memory[out.size()].read(each)); }
  return out;
}

//! @brief Appends one wire of every rank.
template <class Buffer, class Wire>
void record_wires(exchange_trace& trace,
                  std::string_view what,
                  int step,
                  std::deque<rank_memory<Buffer>> const& memory,
                  std::vector<Wire> const& wires)
{
  int rank = 0;
  for (byte_string const& bytes : read_wires(memory, wires)) {
    trace.push_back({what, step, rank++, bytes});
  }
}

inline void require_ok(status const& s)
{
  CAPTURE(s.message);
  REQUIRE(s == status{});
}

//! @brief Puts what no rank would send in the place of what the ranks have sent or received.
template <class Buffer, class Wire>
void disturb(std::deque<rank_memory<Buffer>> const& memory,
             std::vector<Wire> const& wires,
             int step)
{
  std::size_t rank = 0;
  for (byte_string bytes : read_wires(memory, wires)) {
    disturb(bytes, step + 16 * static_cast<int>(rank));
    memory[rank].write(wires[rank], bytes);
    ++rank;
  }
}

//! @brief Gives every rank its own part of gathered wires back: what it has made itself no other rank writes.
template <class Buffer, class Wire>
void restore_own(std::deque<rank_memory<Buffer>> const& memory,
                 std::vector<Wire> const& wires,
                 std::vector<byte_string> const& arrived)
{
  for (std::size_t rank = 0; rank < wires.size(); ++rank) {
    Wire own = wires[rank];
    own.count /= wires.size();
    own.gathered += rank * own.count;
    auto const first = arrived[rank].begin() + static_cast<std::ptrdiff_t>(rank * own.bytes());
    memory[rank].write(own, {first, first + static_cast<std::ptrdiff_t>(own.bytes())});
  }
}

template <class Executor, class Wire>
void reduce_wires(Executor const& exec, reduction_order order, std::vector<Wire> const& wires)
{
  require_ok(loopback_all_reduce(exec, std::span<Wire const>{wires}, order));
}

//! @brief One round of a case.
template <class Buffer, class Codec, class Element, class Executor, class Wire>
void exchange_round(Executor const& exec,
                    exchange_case<Codec, Element> const& c,
                    std::deque<rank_memory<Buffer>> const& memory,
                    int step,
                    std::vector<Wire> const& wires)
{
  if (c.hostile) { disturb(memory, wires, step); }
  reduce_wires(exec, c.order, wires);
  if (c.hostile) { disturb(memory, wires, step); }
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

//! @brief Appends what every rank ends with.
template <class Element, class Buffer>
void record_results(exchange_trace& trace, int step, std::deque<rank_memory<Buffer>> const& memory)
{
  int rank = 0;
  for (rank_memory<Buffer> const& mine : memory) {
    byte_string const values = mine.gradient.read(0, mine.gradient.contents().size());
    byte_string const state  = mine.state.read(0, mine.state.contents().size());
    trace.push_back({"gradient", step, rank, with_one_nan<Element>(values)});
    trace.push_back({"state", step, rank++, state});
  }
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
  exchange_trace trace;
  exchange_ranks<Buffer, Codec, Element> ranks{c, fill};
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    auto const r = ranks[rank];
    require_ok(initialize(exec, r.plan, r.state, c.seed));
  }
  for (int step = 0; step < c.steps; ++step) {
    ranks.write_gradients(step);
    if constexpr (weighs_kept<Codec>) { ranks.write_gains(1.5f / static_cast<float>(step + 1)); }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      auto const r = ranks[rank];
      require_ok(measure(exec, r.plan, r.gradient, r.state, r.workspace));
    }
    if constexpr (agrees<Codec>) {
      auto const agreed = ranks.agreed();
      record_wires(trace, "agreed scalars", step, ranks.memory(), agreed);
      exchange_round(exec, c, ranks.memory(), step, agreed);
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      auto const r = ranks[rank];
      require_ok(encode(exec, r.plan, r.gradient, r.state, r.workspace));
    }
    if constexpr (scattering<Codec>) {
      record_wires(trace, "payload", step, ranks.memory(), ranks.scattered());
      record_wires(trace, "bypass", step, ranks.memory(), ranks.bypass());
      exchange_round(exec, c, ranks.memory(), step, ranks.bypass());
      if (c.hostile) { disturb(ranks.memory(), ranks.scattered(), step); }
      require_ok(detail::loopback_round(exec, ranks, c.order, rounds::scatter_parts{}));
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        auto const r = ranks[rank];
        require_ok(recompress(exec, r.plan, r.gradient, r.state, r.workspace));
      }
    }
    if constexpr (copying<Codec>) {
      record_wires(trace, "bypass", step, ranks.memory(), ranks.bypass());
      exchange_round(exec, c, ranks.memory(), step, ranks.bypass());
    }
    if constexpr (gathering<Codec> || scattering<Codec> || copying<Codec>) {
      require_ok(detail::loopback_round(exec, ranks, c.order, rounds::gather_parts{}));
      record_wires(trace, "gathered", step, ranks.memory(), ranks.gathered());
      if (c.hostile) {
        auto const arrived = read_wires(ranks.memory(), ranks.gathered());
        disturb(ranks.memory(), ranks.gathered(), step);
        if constexpr (copying<Codec>) { restore_own(ranks.memory(), ranks.gathered(), arrived); }
      }
    } else {
      auto const payload = ranks.payload();
      auto const bypass  = ranks.bypass();
      record_wires(trace, "payload", step, ranks.memory(), payload);
      record_wires(trace, "bypass", step, ranks.memory(), bypass);
      exchange_round(exec, c, ranks.memory(), step, payload);
      exchange_round(exec, c, ranks.memory(), step, bypass);
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      auto const r = ranks[rank];
      require_ok(decode(exec, r.plan, r.gradient, r.state, r.workspace));
    }
    record_results<Element>(trace, step, ranks.memory());
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

template <class Codec, class Element>
[[nodiscard]] exchange_trace record_reference(exchange_case<Codec, Element> const& c)
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

}  // namespace tersum::tests
