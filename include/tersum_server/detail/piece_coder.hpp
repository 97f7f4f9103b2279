// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One piece of a gradient, encoded or decoded alone, with memory of its own.

#pragma once

#include <tersum/exchange/all_gather_values.hpp>
#include <tersum/exchange/wires.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/plan.hpp>
#include <tersum/random/philox.hpp>
#include <tersum/state.hpp>
#include <tersum/status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace tersum::inline v0::detail {

//! @brief Plan, state and workspace of a codec whose one rank has all values. A piece that is not compressed travels as floats.
//!
//! Steps are those of messages: a lost message must not turn the signs of the next one. All ranks rotate alike, but each rounds by random
//! numbers of its own.
template <class Codec>
class piece_coder {
 public:
  //! @param own  Whose random numbers: a number for each rank.
  piece_coder(plan<Codec> const& plan, bool compressed, std::uint64_t seed, std::uint64_t own)
    : plan_(plan), compressed_(compressed), seed_(seed)
  {
    if (!compressed) { return; }
    state_.resize(plan.state_bytes());
    workspace_.resize(plan.workspace_bytes());
    made_ = initialize(cpu_executor{}, plan_, state_, seed + own * 0x9e3779b97f4a7c15ull);
  }

  //! Values to a payload, which has room for it.
  [[nodiscard]] status encode(std::uint64_t step,
                              float gain,
                              std::span<float> values,
                              std::span<std::byte> payload)
  {
    if (!compressed_) {
      std::memcpy(payload.data(), values.data(), values.size_bytes());
      return {};
    }
    if (!made_.ok()) { return made_; }
    set_step(step);
    if constexpr (weighs_kept<Codec>) { feedback_gain(plan_, state_)[0] = gain; }
    status const s = encode_shard(cpu_executor{}, plan_, values, values, state_, workspace_);
    std::copy(codes().begin(), codes().end(), payload.begin());
    return s;
  }

  //! A payload to values.
  [[nodiscard]] status decode(std::uint64_t step,
                              std::span<std::byte const> payload,
                              std::span<float> values)
  {
    if (!compressed_) {
      std::memcpy(values.data(), payload.data(), values.size_bytes());
      return {};
    }
    if (!made_.ok()) { return made_; }
    set_step(step);
    std::copy(payload.begin(), payload.end(), codes().begin());
    return decode_values(cpu_executor{}, plan_, values, state_, workspace_);
  }

  //! What feedback keeps.
  [[nodiscard]] std::span<residual_element<Codec>> kept() requires(feeds_back<Codec>)
  {
    return residuals_of(plan_, state_);
  }

 private:
  [[nodiscard]] std::span<std::byte> codes()
  {
    return {workspace_.data() + plan_.offset("gathered"), plan_.payload_bytes()};
  }

  void set_step(std::uint64_t step)
  {
    state_header header;
    std::memcpy(&header, state_.data(), sizeof header);
    header.step     = step;
    header.sign_key = sign_key(step, seed_);
    std::memcpy(state_.data(), &header, sizeof header);
  }

  plan<Codec> plan_;
  bool compressed_;
  std::uint64_t seed_;
  std::vector<std::byte> state_, workspace_;
  status made_;
};

}  // namespace tersum::inline v0::detail
