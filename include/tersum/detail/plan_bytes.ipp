// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Definitions of plan.hpp: the bytes of rounds, workspace and state, and where they lie.

#include <tersum/baseline/group_absmax.hpp>
#include <tersum/chunk/detail/width_costs.hpp>
#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/range/chunk_step.hpp>
#include <tersum/range/rms_range.hpp>

namespace tersum::inline v0 {

template <class Codec>
constexpr std::uint64_t plan<Codec>::agreed_scalars() const noexcept
{
  if constexpr (!Codec::agrees) {
    return 0;
  } else if constexpr (!detail::has_steps<Codec>) {
    return travels() ? chunks_ : 0;
  } else if constexpr (Codec::per_tensor) {
    return tensors_;
  } else if constexpr (Codec::tracks && !detail::norms_travel<Codec>) {
    return chunks_ + tensors_;
  } else {
    return travels() ? chunks_ : 0;
  }
}

template <class Codec>
constexpr std::uint64_t plan<Codec>::agreed_bytes() const noexcept
{
  return agreed_size(agreed_scalars());
}

template <class Codec>
constexpr std::uint64_t plan<Codec>::payload_bytes() const noexcept
{
  if constexpr (scattering<Codec>) {
    return part_bytes() * static_cast<std::uint64_t>(detail::maximum(world_.size, 1));
  } else if constexpr (requantizing<Codec>) {
    return tiles() * sizeof(typename Codec::payload_op::element);
  } else if constexpr (Codec::selects) {
    return static_cast<std::uint64_t>(capacity_) * detail::selection_unit<Codec>() *
           sizeof(std::uint32_t);
  } else if constexpr (Codec::casts) {
    return compressed_ * sizeof(typename Codec::quantizer_type::element);
  } else {
    return chunks_ * (Codec::chunk_size / 8 * Codec::reducer_type::lane_bits);
  }
}

template <class Codec>
constexpr std::uint64_t plan<Codec>::tiles() const noexcept requires(requantizing<Codec>)
{
  using op = typename Codec::payload_op;
  if constexpr (Codec::selects) {
    std::uint64_t const each = op::element::room - op::shape::size.lost;
    return capacity_ == 0 ? 0 : (capacity_ + op::shape::between + each - 1) / each;
  } else {
    return (chunks_ + op::element::chunks - 1) / op::element::chunks;
  }
}

template <class Codec>
constexpr std::uint64_t plan<Codec>::part_bytes() const noexcept requires(scattering<Codec>)
{
  auto const ranks    = static_cast<std::uint64_t>(detail::maximum(world_.size, 1));
  std::uint64_t words = 0;
  if constexpr (Codec::selects) {
    // Of parts dealt widest first none exceeds the mean by more than the widest chunk.
    if (capacity_ > 0) { words = (capacity_ + widest_words() * (ranks - 1) + ranks - 1) / ranks; }
  } else {
    constexpr std::uint64_t chunk_words =
      detail::code_words<typename Codec::quantizer_type>(Codec::chunk_size) + 1;
    words = owned_chunks() * chunk_words;
  }
  return detail::round_up(words * sizeof(std::uint32_t), alignment);
}

template <class Codec>
constexpr std::uint64_t plan<Codec>::owned_chunks() const noexcept requires(scattering<Codec>)
{
  auto const ranks = static_cast<std::uint64_t>(detail::maximum(world_.size, 1));
  return (chunks_ + ranks - 1) / ranks;
}

template <class Codec>
constexpr std::uint64_t plan<Codec>::chunk_words() noexcept requires(scattering<Codec>)
{
  if constexpr (Codec::selects) { return widest_words(); }
  return detail::code_words<typename Codec::quantizer_type>(Codec::chunk_size);
}

template <class Codec>
constexpr std::uint64_t plan<Codec>::bypass_bytes() const noexcept
{
  return bypassed_ * sizeof(float);
}

template <class Codec>
constexpr std::uint64_t plan<Codec>::wire_bytes() const noexcept
{
  return agreed_bytes() + payload_bytes() + bypass_bytes();
}

template <class Codec>
constexpr bool plan<Codec>::travels() const noexcept
{
  return !Codec::selects || capacity_ > 0;
}

template <class Codec>
constexpr double plan<Codec>::bits_per_coordinate() const noexcept
{
  return detail::bits_over(wire_bytes(), coordinates());
}

template <class Codec>
constexpr std::size_t plan<Codec>::workspace_bytes() const noexcept
{
  return agreed_offset() + agreed_room();
}

template <class Codec>
constexpr std::size_t plan<Codec>::state_bytes() const noexcept
{
  return residual_offset() + (Codec::feeds_back ? coordinates() * sizeof(float) : 0);
}

template <class Codec>
constexpr std::size_t plan<Codec>::rotated_offset() const noexcept
{
  return detail::has_steps<Codec> ? chunks_ * sizeof(chunk_step) : 0;  // the steps come first
}

template <class Codec>
constexpr std::size_t plan<Codec>::selection_offset() const noexcept
{
  return rotated_offset() + (Codec::rotates_all ? chunks_ * Codec::chunk_size * sizeof(float) : 0);
}

template <class Codec>
constexpr std::size_t plan<Codec>::places_offset() const noexcept
{
  return selection_offset() + (Codec::selects ? sizeof(detail::selection_scratch) : 0);
}

template <class Codec>
constexpr std::size_t plan<Codec>::payload_offset() const noexcept
{
  if constexpr (Codec::casts && !Codec::selects) { return bypass_bytes(); }
  return places_offset() + (Codec::selects ? detail::round_up(chunks_ * 4, 16) : 0);
}

template <class Codec>
constexpr std::size_t plan<Codec>::gathered_offset() const noexcept
  requires(detail::has_parts<Codec>)
{
  return payload_offset() + (Codec::feeds_back ? payload_bytes() : 0);
}

template <class Codec>
constexpr std::size_t plan<Codec>::received_offset() const noexcept requires(scattering<Codec>)
{
  return payload_offset() + (Codec::feeds_back ? 2 : 1) * payload_bytes();
}

template <class Codec>
constexpr std::size_t plan<Codec>::bypass_offset() const noexcept
{
  if constexpr (scattering<Codec>) { return received_offset() + payload_bytes(); }
  if constexpr (requantizing<Codec>) { return gathered_offset() + payload_bytes(); }
  return Codec::casts && !Codec::selects ? 0 : payload_offset() + payload_bytes();
}

template <class Codec>
constexpr std::size_t plan<Codec>::agreed_offset() const noexcept
{
  return Codec::casts && !Codec::selects ? payload_offset() + payload_bytes()
                                         : bypass_offset() + bypass_bytes();
}

template <class Codec>
constexpr std::size_t plan<Codec>::records_offset() const noexcept
{
  return sizeof(state_header);
}

template <class Codec>
constexpr std::size_t plan<Codec>::table_offset() const noexcept
{
  return records_offset() + tensors_ * sizeof(tensor_record);
}

template <class Codec>
constexpr std::size_t plan<Codec>::owner_residual_offset() const noexcept
{
  return table_offset() + chunks_ * sizeof(chunk_entry);
}

template <class Codec>
constexpr std::size_t plan<Codec>::residual_offset() const noexcept
{
  if constexpr (scattering<Codec>) {
    if (Codec::owner_feeds_back) {
      return owner_residual_offset() + owned_chunks() * Codec::chunk_size * sizeof(float);
    }
  }
  return owner_residual_offset();
}

template <class Codec>
constexpr std::uint64_t plan<Codec>::agreed_size(std::uint64_t scalars) noexcept
{
  if constexpr (!Codec::agrees) { return 0; }
  return detail::round_up(scalars * sizeof(typename Codec::norm_scalar),
                          sizeof(typename Codec::agreed_op::element));
}

template <class Codec>
constexpr std::size_t plan<Codec>::agreed_room() const noexcept
{
  return Codec::selects ? agreed_size(chunks_) : agreed_bytes();
}

}  // namespace tersum::inline v0
