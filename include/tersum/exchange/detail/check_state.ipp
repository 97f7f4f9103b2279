// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of check_state.hpp.

#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/exchange/detail/exchange_args.hpp>
#include <tersum/execute/detail/arithmetic_probe.hpp>
#include <tersum/lowrank/matrix_record.hpp>

#include <cstring>

namespace tersum::inline v0 {

namespace detail {

[[nodiscard]] constexpr status damaged(std::string_view sentence) noexcept
{
  return {error_code::invalid_argument, sentence};
}

//! The bytes of a state on the host. What reads those of a device has the same `read`.
struct host_bytes {
  std::byte const* begin;

  void read(void* to, std::size_t offset, std::size_t bytes) const noexcept
  {
    std::memcpy(to, begin + offset, bytes);
  }
};

//! Reads the elements of a section of a state, which may lie at any address.
template <class T, class Bytes>
struct state_reader {
  Bytes& state;
  std::size_t offset;

  [[nodiscard]] T operator[](std::uint64_t index) const noexcept
  {
    T out;
    state.read(&out, offset + index * sizeof(T), sizeof(T));
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
         kept.arrived == made.arrived && kept.padding == made.padding && is_finite(kept.ratio) &&
         kept.ratio >= 0;
}

//! Whether the chunks of all records are in the table.
template <class Codec, class Bytes>
[[nodiscard]] bool has_entries(plan<Codec> const& plan,
                               state_reader<chunk_entry, Bytes> const& table) noexcept
{
  constexpr std::uint64_t size = Codec::chunk_size;
  std::uint64_t number         = 0;
  bool found                   = true;
  plan.for_each_record([&](tensor_record const& record) {
    for (std::uint64_t i = 0; found && i < record.chunks; ++i) {
      std::uint64_t const begin = minimum(i * size, record.size);
      chunk_entry const entry   = table[record.first_chunk + i];
      found                     = entry.offset == record.offset + begin &&
              entry.length == minimum(size, record.size - begin) && entry.tensor == number;
    }
    ++number;
  });
  return found;
}

//! The same of matrices, but for the turns, which change from step to step.
template <class Codec, class Bytes>
[[nodiscard]] bool has_entries(plan<Codec> const& plan,
                               state_reader<matrix_record, Bytes> const& table) noexcept
{
  std::uint64_t number = 0;
  bool found           = true;
  plan.for_each_matrix([&](matrix_record const& made) {
    matrix_record kept = table[number++];
    kept.turns         = made.turns;
    found              = found && std::memcmp(&kept, &made, sizeof(kept)) == 0;
  });
  return found;
}

[[nodiscard]] inline bool is_of_plan(shard_record const& kept, shard_record const& made) noexcept
{
  return kept.word == made.word && kept.first == made.first && kept.chunks == made.chunks;
}

//! Whether plan and state fit, before any byte is read.
template <class Codec>
[[nodiscard]] status check_room(plan<Codec> const& plan, std::span<std::byte const> state) noexcept
{
  if (status const s = plan.check(); !s.ok()) { return s; }
  if (state.size() < plan.state_bytes()) {
    return damaged("state is smaller than plan.state_bytes()");
  }
  return state.data() == nullptr ? damaged("state is a null pointer") : status{};
}

//! Whether a seal can be that of a state of the plan.
template <class Codec>
[[nodiscard]] status check_seal(plan<Codec> const& plan, state_seal const& seal) noexcept
{
  if (seal.version != state_version) {
    return damaged("state was sealed by another version of the library: initialize it again");
  }
  return seal.bytes == plan.state_bytes()
           ? status{}
           : damaged("state was sealed with another plan, or was cut before");
}

//! What the hash of a state begins with.
template <class Codec>
[[nodiscard]] std::uint64_t first_hash(plan<Codec> const& plan) noexcept
{
  return mix(state_version, plan.state_fingerprint());
}

[[nodiscard]] constexpr status unlike_seal() noexcept
{
  return damaged("state is not what was sealed: its bytes have changed");
}

//! What `check_state` says of the bytes from `begin` on. It reads each section from its begin to its end.
template <class Codec, class Bytes>
[[nodiscard]] status check_bytes(plan<Codec> const& plan, Bytes& state, std::size_t begin) noexcept
{
  auto const header = state_reader<state_header, Bytes>{state, begin}[0];
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
  state_reader<tensor_record, Bytes> const records{state, begin + plan.offset("records")};
  std::uint64_t number = 0;
  bool found           = true;
  plan.for_each_record([&](tensor_record const& made) {
    found = found && is_of_plan(records[number], made);
    ++number;
  });
  if (!found) { return damaged("state: the record of a tensor is damaged"); }
  state_reader<shard_record, Bytes> const shards{state, begin + plan.offset("shards")};
  number = 0;
  plan.for_each_shard(
    [&](shard_record const& made) { found = found && is_of_plan(shards[number++], made); });
  if (!found) { return damaged("state: the record of a shard is damaged"); }
  using entry = typename Codec::counts_type::entry_type;
  return has_entries(plan, state_reader<entry, Bytes>{state, begin + plan.offset("table")})
           ? status{}
           : damaged("state: an entry of its table is damaged");
}

}  // namespace detail

template <class Codec>
state_seal seal_state(plan<Codec> const& plan, std::span<std::byte const> state) noexcept
{
  std::size_t const bytes  = detail::minimum(plan.state_bytes(), state.size());
  std::uint64_t const hash = detail::hash_bytes(detail::first_hash(plan), state.first(bytes));
  return {.version = state_version, .bytes = bytes, .check = hash};
}

template <class Codec>
status check_state(plan<Codec> const& plan, std::span<std::byte const> state) noexcept
{
  if (status const s = detail::check_room(plan, state); !s.ok()) { return s; }
  detail::host_bytes const bytes{state.data()};
  return detail::check_bytes(plan, bytes, 0);
}

template <class Codec>
status check_state(plan<Codec> const& plan,
                   std::span<std::byte const> state,
                   state_seal const& seal) noexcept
{
  if (status const s = detail::check_seal(plan, seal); !s.ok()) { return s; }
  if (status const s = check_state(plan, state); !s.ok()) { return s; }
  return seal_state(plan, state).check == seal.check ? status{} : detail::unlike_seal();
}

}  // namespace tersum::inline v0
