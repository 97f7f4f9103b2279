// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! States that are saved and loaded: what to keep beside their bytes, and whether to believe them.
//!
//!     state_seal const seal = seal_state(plan, state);                         before saving both
//!     if (status const s = check_state(plan, state, seal); !s.ok()) { ... }    after loading both
//!
//! All of it reads memory of the host, at any alignment. For states on a device there is `exchange/check_device_state.cuh`; bytes
//! from a file may as well be checked on the host and copied to the device afterwards.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/execute/detail/arithmetic_probe.hpp>
#include <tersum/lowrank/matrix_record.hpp>
#include <tersum/plan.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace tersum::inline v0 {

//! @brief What is kept beside the bytes of a saved state: plain data.
struct state_seal {
  std::uint64_t version;  //!< `state_version` of the library that sealed it.
  std::uint64_t bytes;    //!< `plan::state_bytes()`.
  std::uint64_t
    check;  //!< A hash of plan, version and all bytes: header, records, table and what feedback keeps.
};

namespace detail {

[[nodiscard]] constexpr status damaged(std::string_view sentence) noexcept
{
  return {error_code::invalid_argument, sentence};
}

//! A hash of bytes. It has one value for each value of one word, the others given, so that one flipped bit changes it.
[[nodiscard]] inline std::uint64_t hash_bytes(std::uint64_t hash,
                                              std::span<std::byte const> bytes) noexcept
{
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, minimum(sizeof(word), bytes.size() - at));
    hash = mix(hash, word);
  }
  return hash;
}

//! The bytes of a state on the host. What reads those of a device has the same members.
struct host_bytes {
  std::span<std::byte const> all;

  void read(void* to, std::size_t offset, std::size_t bytes) const noexcept
  {
    std::memcpy(to, all.data() + offset, bytes);
  }
  [[nodiscard]] std::uint64_t hash_from(std::uint64_t hash) const noexcept
  {
    return hash_bytes(hash, all);
  }
};

//! @name What changes from step to step
//! Each takes it over from an element of a state to the one that the plan makes, and says whether it is possible.
//! @{
template <class T>
[[nodiscard]] constexpr bool take_changes(T&, T const&) noexcept
{
  return true;
}
[[nodiscard]] constexpr bool take_changes(matrix_record& made, matrix_record const& kept) noexcept
{
  made.turns = kept.turns;
  return true;
}
[[nodiscard]] constexpr bool take_changes(tensor_record& made, tensor_record const& kept) noexcept
{
  made.ratio     = kept.ratio;
  made.saturated = kept.saturated;
  return is_finite(kept.ratio) && kept.ratio >= 0;
}
//! @}

//! @brief Compares a section of a state, from its begin to its end, with what the plan makes. It may lie at any address.
template <class Bytes>
struct section_check {
  Bytes& state;
  std::size_t offset;
  bool holds = true;

  template <class T>
  void operator()(T made) noexcept
  {
    if (!holds) { return; }
    T kept;
    state.read(&kept, offset, sizeof(T));
    offset += sizeof(T);
    holds = take_changes(made, kept) && std::memcmp(&kept, &made, sizeof(T)) == 0;
  }
};

//! Whether plan, seal and state fit, before any byte is read.
template <class Codec>
[[nodiscard]] status check_room(plan<Codec> const& plan,
                                std::span<std::byte const> state,
                                std::optional<state_seal> const& seal = {}) noexcept
{
  if (seal && seal->version != state_version) {
    return damaged("state was sealed by another version of the library: initialize it again");
  }
  if (seal && seal->bytes != plan.state_bytes()) {
    return damaged("state was sealed with another plan, or was cut before");
  }
  if (status const s = plan.check(); !s.ok()) { return s; }
  if (state.size() < plan.state_bytes()) {
    return damaged("state is smaller than plan.state_bytes()");
  }
  return state.data() == nullptr ? damaged("state is a null pointer") : status{};
}

//! The hash of a seal.
template <class Codec, class Bytes>
[[nodiscard]] std::uint64_t hash_of(plan<Codec> const& plan, Bytes& state) noexcept
{
  return state.hash_from(mix(state_version, plan.state_fingerprint()));
}

//! What `check_state` says of the bytes. It reads each section from its begin to its end.
template <class Codec, class Bytes>
[[nodiscard]] status check_bytes(plan<Codec> const& plan,
                                 Bytes& state,
                                 std::optional<state_seal> const& seal) noexcept
{
  state_header header;
  state.read(&header, 0, sizeof(header));
  if (header.layout == layout_of_inexact_kernels) {
    return {
      error_code::unsupported,
      "kernels of this program do not compute as IEEE 754 says, so that ranks would disagree: compile it without "
      "-use_fast_math, -ftz=true, -prec-div=false and -prec-sqrt=false"};
  }
  if (header.layout != plan.state_fingerprint()) {
    return header.version() != state_version
             ? damaged("state is of another version of the library, or its header is damaged")
             : damaged("state is of another plan, or its header is damaged");
  }
  if (header.tensors != plan.tensors() || header.chunks != plan.chunks() ||
      header.coordinates != plan.coordinates() || header.non_finite_step > header.step ||
      header.sign_key != key_of_signs<Codec>(header.step, header.seed)) {
    return damaged("state: its header is damaged");
  }
  section_check<Bytes> records{state, plan.offset("records")};
  section_check<Bytes> shards{state, plan.offset("shards")};
  section_check<Bytes> table{state, plan.offset("table")};
  plan.for_each_record([&](tensor_record const& made) { records(made); });
  if (!records.holds) { return damaged("state: the record of a tensor is damaged"); }
  plan.for_each_shard([&](shard_record const& made) { shards(made); });
  if (!shards.holds) { return damaged("state: the record of a shard is damaged"); }
  if constexpr (in_chunks<Codec>) {
    std::uint32_t number = 0;
    plan.for_each_record([&](tensor_record const& record) {
      for (std::uint64_t i = 0; i < record.chunks; ++i) {
        table(entry_of<Codec>(record, i, number));
      }
      ++number;
    });
  } else {
    plan.for_each_matrix([&](matrix_record const& made) { table(made); });
  }
  if (!table.holds) { return damaged("state: an entry of its table is damaged"); }
  return !seal || hash_of(plan, state) == seal->check
           ? status{}
           : damaged("state is not what was sealed: its bytes have changed");
}

}  // namespace detail

//! @brief The seal of a state. One pass over its bytes.
//! @param plan   The plan of the state.
//! @param state  plan.state_bytes() bytes of the host, as `initialize` or the last exchange left them; fewer are not valid.
template <class Codec>
[[nodiscard]] state_seal seal_state(plan<Codec> const& plan,
                                    std::span<std::byte const> state) noexcept
{
  std::size_t const bytes = detail::minimum(plan.state_bytes(), state.size());
  detail::host_bytes const all{state.first(bytes)};
  return {.version = state_version, .bytes = bytes, .check = detail::hash_of(plan, all)};
}

//! @brief Whether a state can be used with a plan: whether header, records and table say what `initialize` makes of the plan, and
//! what changes from step to step is possible. An exchange with such a state touches no other memory than its own.
//!
//! *Errors*: a state that is smaller than the plan's, of another version, of another plan, or damaged; the sentence says in which
//! part. Bits of seed and step are found by the key that follows from both (factors have none); not those of ratios, of counts, of
//! the residual and of `non_finite_step`, which only a seal finds. With a seal also bytes, a plan or a version other than those
//! that were sealed: one flipped bit, wherever it is, is always found.
//! @param plan   The plan of the state.
//! @param state  plan.state_bytes() bytes of the host.
//! @param seal   What was kept beside the bytes, if they were sealed.
template <class Codec>
[[nodiscard]] status check_state(plan<Codec> const& plan,
                                 std::span<std::byte const> state,
                                 std::optional<state_seal> const& seal = {}) noexcept
{
  if (status const s = detail::check_room(plan, state, seal); !s.ok()) { return s; }
  detail::host_bytes const bytes{state.first(plan.state_bytes())};
  return detail::check_bytes(plan, bytes, seal);
}

}  // namespace tersum::inline v0
