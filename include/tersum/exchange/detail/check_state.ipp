// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of check_state.hpp.

#include <tersum/codec_kinds.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/lowrank/low_rank_codec.hpp>
#include <tersum/lowrank/matrix_record.hpp>
#include <tersum/random/sign_bits.hpp>

#include <cstring>

namespace tersum::inline v0 {

namespace detail {

[[nodiscard]] constexpr status damaged(std::string_view sentence) noexcept
{
  return {error_code::invalid_argument, sentence};
}

//! Reads the elements of a section of a state, which may lie at any address.
template <class T>
struct state_reader {
  std::span<std::byte const> state;
  std::size_t offset;

  [[nodiscard]] T operator[](std::uint64_t index) const noexcept
  {
    T out;
    std::memcpy(&out, state.data() + offset + index * sizeof(T), sizeof(T));
    return out;
  }
};

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

//! Whether a record is that of the plan, but for what changes from step to step.
[[nodiscard]] inline bool is_of_plan(tensor_record const& kept, tensor_record const& made) noexcept
{
  return kept.offset == made.offset && kept.size == made.size &&
         kept.first_chunk == made.first_chunk && kept.chunks == made.chunks &&
         kept.bypass == made.bypass && float_bits(kept.weight) == float_bits(made.weight) &&
         kept.padding == made.padding && is_finite(kept.ratio) && kept.ratio >= 0;
}

//! Whether the chunks of a record are in the table.
template <class Codec>
[[nodiscard]] bool has_chunks(state_reader<chunk_entry> const& table,
                              tensor_record const& record,
                              std::uint64_t number) noexcept
{
  constexpr std::uint64_t size = Codec::chunk_size;
  for (std::uint64_t i = 0; i < record.chunks; ++i) {
    std::uint64_t const begin = minimum(i * size, record.size);
    chunk_entry const entry   = table[record.first_chunk + i];
    if (entry.offset != record.offset + begin ||
        entry.length != minimum(size, record.size - begin) || entry.tensor != number) {
      return false;
    }
  }
  return true;
}

[[nodiscard]] inline bool is_of_plan(matrix_record kept, matrix_record const& made) noexcept
{
  kept.turns = made.turns;
  return std::memcmp(&kept, &made, sizeof(kept)) == 0;
}

}  // namespace detail

template <class Codec>
state_seal seal_state(plan<Codec> const& plan, std::span<std::byte const> state) noexcept
{
  std::size_t const bytes = detail::minimum(plan.state_bytes(), state.size());
  std::uint64_t hash      = detail::mix(state_version, plan.state_fingerprint());
  hash                    = detail::hash_bytes(hash, state.first(bytes));
  return {.version = state_version, .bytes = bytes, .check = hash};
}

template <class Codec>
status check_state(plan<Codec> const& plan, std::span<std::byte const> state) noexcept
{
  using detail::damaged;
  if (status const s = plan.check(); !s.ok()) { return s; }
  if (state.size() < plan.state_bytes()) {
    return damaged("state is smaller than plan.state_bytes()");
  }
  if (state.data() == nullptr) { return damaged("state is a null pointer"); }
  if constexpr (nesting<Codec>) {
    if (status const s = check_state(plan.factors(), state.first(plan.factors().state_bytes()));
        !s.ok()) {
      return s;
    }
    for (int turn = 0; turn < 2; ++turn) {
      auto const inner =
        state.subspan(plan.inner_state_offset(turn), plan.inner(turn).state_bytes());
      if (status const s = check_state(plan.inner(turn), inner); !s.ok()) { return s; }
    }
    return {};
  } else {
    auto const header = detail::state_reader<state_header>{state, 0}[0];
    if (header.layout != plan.state_fingerprint() || header.tensors != plan.tensors() ||
        header.chunks != plan.chunks() || header.coordinates != plan.coordinates()) {
      return damaged("state is of another plan or another version, or its header is damaged");
    }
    std::uint64_t const key = is_low_rank<Codec> ? 0 : sign_key(header.step, header.seed);
    if (header.non_finite_step > header.step || header.sign_key != key) {
      return damaged("state: its header is damaged");
    }
    detail::state_reader<tensor_record> const records{state, plan.records_offset()};
    std::uint64_t number = 0;
    bool recorded = true, listed = true;
    plan.for_each_record([&](tensor_record const& made) {
      recorded = recorded && detail::is_of_plan(records[number], made);
      if constexpr (!is_low_rank<Codec>) {
        detail::state_reader<chunk_entry> const table{state, plan.table_offset()};
        listed = listed && detail::has_chunks<Codec>(table, made, number);
      }
      ++number;
    });
    if (!recorded) { return damaged("state: the record of a tensor is damaged"); }
    if constexpr (is_low_rank<Codec>) {
      detail::state_reader<matrix_record> const matrices{state, plan.table_offset()};
      std::uint64_t matrix = 0;
      plan.for_each_matrix([&](matrix_record const& made) {
        listed = listed && detail::is_of_plan(matrices[matrix], made);
        ++matrix;
      });
    }
    return listed ? status{} : damaged("state: an entry of its table is damaged");
  }
}

template <class Codec>
status check_state(plan<Codec> const& plan,
                   std::span<std::byte const> state,
                   state_seal const& seal) noexcept
{
  if (seal.version != state_version) {
    return detail::damaged(
      "state was sealed by another version of the library: initialize it again");
  }
  if (seal.bytes != plan.state_bytes()) {
    return detail::damaged("state was sealed with another plan, or was cut before");
  }
  if (status const s = check_state(plan, state); !s.ok()) { return s; }
  return seal_state(plan, state).check == seal.check
           ? status{}
           : detail::damaged("state is not what was sealed: its bytes have changed");
}

}  // namespace tersum::inline v0
