// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! All ranks of an exchange in one process, for examples that try codecs without a transport.

#pragma once

#include "aligned_bytes.hpp"

#include <tersum/single_process/loopback.hpp>
#include <tersum/tersum.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace support {

//! The plans and the memory of as many ranks as there are gradients.
template <class Codec>
class loopback_ranks {
 public:
  loopback_ranks(Codec const& codec, tersum::layout const& layout, int count)
  {
    for (int rank = 0; rank < count && outcome_.ok(); ++rank) {
      plans_.push_back(codec.plan(layout, {.size = count, .rank = rank}));
      states_.emplace_back(plans_.back().state_bytes());
      workspaces_.emplace_back(plans_.back().workspace_bytes());
      outcome_ = initialize(exec_, plans_.back(), states_.back(), 42);
    }
  }

  //! One exchange: each rank's gradient becomes the mean. An error of `initialize` comes back here.
  tersum::status average(std::vector<std::vector<float>>& gradients)
  {
    std::vector<tersum::loopback_rank<Codec, float>> ranks;
    for (std::size_t rank = 0; rank < plans_.size(); ++rank) {
      ranks.push_back({plans_[rank], gradients[rank], states_[rank], workspaces_[rank]});
    }
    if (!outcome_.ok()) { return outcome_; }
    return loopback_exchange(exec_, ranks);
  }

  double bits_per_coordinate() const { return plans_[0].bits_per_coordinate(); }

 private:
  tersum::cpu_executor exec_{.threads = 1};
  tersum::status outcome_;
  std::vector<tersum::plan<Codec>> plans_;
  std::vector<aligned_bytes> states_, workspaces_;
};

}  // namespace support
