// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A codec whose type is known at run time only: what stands behind a `tersum_codec`.

#pragma once

#include "tersum_c.h"

#include <tersum/exchange/check_state.hpp>
#include <tersum/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace shared_library {

//! @brief The caller's memory in one exchange.
struct arrays {
  void* gradient = nullptr;
  std::span<std::byte> state{};
  std::span<std::byte> workspace{};
};

//! @brief Where a part lies in the workspace, in bytes.
struct part_place {
  std::size_t offset = 0;
  std::size_t bytes  = 0;
};

//! @brief A plan and its exchange. Does not change after it was made.
class any_codec {
 public:
  any_codec()                            = default;
  any_codec(any_codec const&)            = delete;
  any_codec& operator=(any_codec const&) = delete;
  virtual ~any_codec()                   = default;

  //! As tersum_c.h describes those of the same names.
  //! @{
  [[nodiscard]] virtual tersum::status check() const                        = 0;
  [[nodiscard]] virtual std::size_t state_bytes() const                     = 0;
  [[nodiscard]] virtual std::size_t workspace_bytes() const                 = 0;
  [[nodiscard]] virtual std::size_t residual_offset() const                 = 0;
  [[nodiscard]] virtual double bits_per_coordinate() const                  = 0;
  [[nodiscard]] virtual bool travels() const                                = 0;
  [[nodiscard]] virtual std::uint64_t fingerprint(std::uint64_t seed) const = 0;
  [[nodiscard]] virtual std::uint64_t state_fingerprint() const             = 0;
  [[nodiscard]] virtual std::size_t step_count() const                      = 0;
  [[nodiscard]] virtual tersum_step step(std::size_t index) const           = 0;
  //! Of the elements of a round.
  [[nodiscard]] virtual std::size_t alignment(std::size_t index) const = 0;
  //! Of the gradient: all coordinates, or those of the part that is exchanged.
  [[nodiscard]] virtual std::uint64_t coordinates() const                  = 0;
  [[nodiscard]] virtual std::uint64_t shard_begin() const                  = 0;
  [[nodiscard]] virtual std::uint64_t shard_size() const                   = 0;
  [[nodiscard]] virtual part_place part(std::size_t index, int rank) const = 0;
  [[nodiscard]] virtual tersum::status initialize(std::span<std::byte> state,
                                                  std::uint64_t seed,
                                                  void* stream) const      = 0;
  [[nodiscard]] virtual tersum::status run(std::size_t index,
                                           arrays const& memory,
                                           void* stream) const             = 0;
  [[nodiscard]] virtual tersum::status add(std::size_t index,
                                           std::span<std::byte> workspace,
                                           void* to,
                                           void const* a,
                                           void const* b,
                                           std::size_t first,
                                           std::size_t count,
                                           void* stream) const             = 0;
  //! A state in the memory of the executor. `seal` may be null.
  [[nodiscard]] virtual tersum::status check_state(std::span<std::byte const> state,
                                                   tersum::state_seal const* seal,
                                                   void* stream) const = 0;
  [[nodiscard]] virtual tersum::status seal_state(std::span<std::byte const> state,
                                                  tersum::state_seal& seal,
                                                  void* stream) const  = 0;
  //! A state on the host, whatever the executor is, at any alignment.
  [[nodiscard]] virtual tersum::status check_copy(std::span<std::byte const> state) const = 0;
  //! Copies between the memory of the executor and the host's, and waits for it.
  [[nodiscard]] virtual tersum::status copy(std::byte* to,
                                            std::byte const* from,
                                            std::size_t bytes,
                                            void* stream) const = 0;
  //! @}
};

//! @brief A codec, or the status that says why there is none.
struct made_codec {
  std::unique_ptr<any_codec> codec{};
  tersum::status status{};
};

//! What a group answers to a name that it does not have.
inline constexpr std::string_view no_such_preset =
  "options.preset is not the name of a preset: tersum_preset_name lists them";

//! @name Presets by name
//! In groups, which are compiled apart, for each device. Options are complete and not null.
//! @{
using make_codec = made_codec(tersum_options const&);
make_codec make_summed, make_choosing, make_low_rank, make_two_shot, make_sharded;
make_codec make_summed_on_cuda, make_choosing_on_cuda, make_low_rank_on_cuda, make_two_shot_on_cuda,
  make_sharded_on_cuda;
//! @}

}  // namespace shared_library
