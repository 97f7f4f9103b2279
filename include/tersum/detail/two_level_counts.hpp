// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What plans of `two_level_codec` are made of: a plan for each of its exchanges.

#pragma once

#include <tersum/detail/bits.hpp>
#include <tersum/detail/plan_checks.hpp>
#include <tersum/detail/sections.hpp>
#include <tersum/layout.hpp>
#include <tersum/plan.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0::detail {

//! @brief A plan for each of the three exchanges. The state of the last one comes first: its header learns of all values that
//! are not finite, so that it is the header of the whole.
template <class Codec>
class two_level_counts : public plan_counts<Codec> {
  using scatter_type = typename Codec::scatter_type;
  using between_type = typename Codec::between_type;
  using gather_type  = typename Codec::gather_type;

 public:
  constexpr two_level_counts(Codec const& codec,
                             layout const& gradient,
                             world const& ranks,
                             int ranks_per_host)
    : plan_counts<Codec>(codec, gradient, ranks), ranks_per_host_(ranks_per_host),
      scatter_(this->codec_.scatter.plan(gradient, within())),
      between_(this->codec_.between.plan(gradient.part(begin(), end()), hosts())),
      gather_(this->codec_.gather.plan(gradient, within()))
  {
    this->tensors_     = between_.tensors();
    this->chunks_      = between_.chunks();
    this->compressed_  = between_.compressed();
    this->bypassed_    = between_.bypassed();
    this->fingerprint_ = mix(mix(gather_.state_fingerprint(), scatter_.state_fingerprint()),
                             between_.state_fingerprint());
  }

  [[nodiscard]] constexpr status check() const noexcept
  {
    if (status const s = check_world(this->world_); !s.ok()) { return s; }
    if (!is_divided()) {
      return {error_code::invalid_argument,
              "ranks_per_host must be at least 1 and divide world.size"};
    }
    if (status const s = scatter_.check(); !s.ok()) { return s; }
    if (status const s = gather_.check(); !s.ok()) { return s; }
    return between_.check();
  }

  //! @name Ranks
  //! Rank r is number r % ranks_per_host of host r / ranks_per_host.
  //! @{
  [[nodiscard]] constexpr world within() const noexcept
  {
    if (!is_divided()) { return {}; }
    return {.size = ranks_per_host_, .rank = this->world_.rank % ranks_per_host_};
  }
  //! The ranks of the same number on all hosts.
  [[nodiscard]] constexpr world hosts() const noexcept
  {
    if (!is_divided()) { return {}; }
    return {.size = this->world_.size / ranks_per_host_,
            .rank = this->world_.rank / ranks_per_host_};
  }
  //! @}

  //! @name The three exchanges
  //! @{

  //! Gradients to the host's mean of this rank's shard.
  [[nodiscard]] constexpr plan<scatter_type> const& scatter() const noexcept { return scatter_; }
  //! The hosts' means of the shard to that of all ranks.
  [[nodiscard]] constexpr plan<between_type> const& between() const noexcept { return between_; }
  //! The means of the shards to all ranks of the host.
  [[nodiscard]] constexpr plan<gather_type> const& gather() const noexcept { return gather_; }
  //! @}

  //! @name Rounds
  //! Those between hosts, of which `wire_bytes()` and `bits_per_coordinate()` count, too.
  //! @{
  [[nodiscard]] constexpr std::uint64_t agreed_scalars() const noexcept
  {
    return between_.agreed_scalars();
  }
  [[nodiscard]] constexpr std::uint64_t agreed_bytes() const noexcept
  {
    return between_.agreed_bytes();
  }
  [[nodiscard]] constexpr std::uint64_t payload_bytes() const noexcept
  {
    return between_.payload_bytes();
  }
  [[nodiscard]] constexpr bool travels() const noexcept { return between_.travels(); }
  [[nodiscard]] constexpr bool all_bypass() const noexcept { return between_.all_bypass(); }
  //! What a rank gives to the collectives within its host.
  [[nodiscard]] constexpr std::uint64_t bytes_within() const noexcept
  {
    return scatter_.wire_bytes() + gather_.wire_bytes();
  }
  //! @}

  //! The mean of the shard, in float, and memory that the exchanges use one after the other.
  [[nodiscard]] constexpr auto workspace_sections() const noexcept
  {
    auto const inner = maximum(maximum(scatter_.workspace_bytes(), gather_.workspace_bytes()),
                               between_.workspace_bytes());
    // What ranks of a host share begins at the same place on all of them, whose shards may differ in size.
    return section_list{holds<std::byte>(section::inner, inner, 16),
                        holds<float>(section::shard, shard_size(), 16)};
  }
  [[nodiscard]] constexpr auto state_sections() const noexcept
  {
    return section_list{holds<std::byte>(section::header, gather_.state_bytes(), 16),
                        holds<std::byte>(section::scatter_state, scatter_.state_bytes(), 16),
                        holds<std::byte>(section::between_state, between_.state_bytes(), 16)};
  }

  //! @name Memory of the parts
  //! @{
  [[nodiscard]] constexpr std::size_t state_offset(section name) const noexcept
  {
    return state_sections().offset(name);
  }
  [[nodiscard]] constexpr std::span<std::byte> gather_state(
    std::span<std::byte> state) const noexcept
  {
    return state.first(gather_.state_bytes());
  }
  [[nodiscard]] constexpr std::span<std::byte> scatter_state(
    std::span<std::byte> state) const noexcept
  {
    return state.subspan(state_offset(section::scatter_state), scatter_.state_bytes());
  }
  [[nodiscard]] constexpr std::span<std::byte> between_state(
    std::span<std::byte> state) const noexcept
  {
    return state.subspan(state_offset(section::between_state), between_.state_bytes());
  }
  [[nodiscard]] std::span<float> shard(std::span<std::byte> workspace) const noexcept
  {
    std::byte* const at = workspace.data() + workspace_sections().offset(section::shard);
    return {reinterpret_cast<float*>(at), shard_size()};
  }
  //! That of each of the three.
  [[nodiscard]] constexpr std::span<std::byte> inner_workspace(
    std::span<std::byte> workspace) const noexcept
  {
    return workspace.subspan(workspace_sections().offset(section::inner));
  }
  //! @}

 private:
  [[nodiscard]] constexpr bool is_divided() const noexcept
  {
    return check_world(this->world_).ok() && ranks_per_host_ > 0 &&
           this->world_.size % ranks_per_host_ == 0;
  }
  [[nodiscard]] constexpr std::uint64_t begin() const noexcept
  {
    return scatter_.shard_begin(within().rank);
  }
  [[nodiscard]] constexpr std::uint64_t end() const noexcept
  {
    return scatter_.shard_begin(within().rank + 1);
  }
  [[nodiscard]] constexpr std::size_t shard_size() const noexcept { return end() - begin(); }

  int ranks_per_host_;
  plan<scatter_type> scatter_;
  plan<between_type> between_;
  plan<gather_type> gather_;
};

}  // namespace tersum::inline v0::detail
