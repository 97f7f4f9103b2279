// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! From the accesses of lanes to sectors and wavefronts.

#include "traffic.hpp"

#include <algorithm>
#include <bit>

namespace tersum::simulator {

namespace {

constexpr std::uint64_t sector_bytes = 32, word_bytes = 4;
constexpr unsigned banks = 32;

}  // namespace

// An access is aligned to its size, so that it lies in one sector.
void traffic_counter::reach_global(std::uint64_t address, std::size_t bytes, bool reads)
{
  reads_                     = reads;
  std::uint64_t const sector = address / sector_bytes;
  auto const used =
    static_cast<std::uint32_t>(((std::uint64_t{1} << bytes) - 1) << address % sector_bytes);
  auto const known = std::find_if(
    sectors_.rbegin(), sectors_.rend(), [&](used_sector const& s) { return s.number == sector; });
  if (known == sectors_.rend()) {
    sectors_.push_back({sector, used});
  } else {
    known->bytes |= used;
  }
}

void traffic_counter::end_global()
{
  access_counts& to = reads_ ? loads : stores;
  ++to.requests;
  to.sectors += sectors_.size();
  for (auto const& [number, used] : sectors_) {
    to.bytes += static_cast<unsigned>(std::popcount(used));
    auto& before              = touched_[number / 64];
    std::uint64_t& bits       = reads_ ? before.read : before.written;
    std::uint64_t const added = std::uint64_t{1} << number % 64;
    to.distinct_sectors += (bits & added) == 0 ? 1U : 0U;
    bits |= added;
  }
  sectors_.clear();
}

void traffic_counter::reach_shared(unsigned lane, std::uint64_t address, std::size_t bytes)
{
  auto const lanes_at_once = static_cast<unsigned>(bytes <= word_bytes ? 32 : 128 / bytes);
  for (std::uint64_t at = 0; at < bytes; at += word_bytes) {
    words_.push_back({lane / lanes_at_once, (address + at) / word_bytes});
  }
}

// Lanes that want the same word are served together; those that want other words of its bank wait.
void traffic_counter::end_shared()
{
  auto const key = [](shared_word const& w) { return std::pair{w.group, w.number}; };
  std::sort(
    words_.begin(), words_.end(), [&](auto const& a, auto const& b) { return key(a) < key(b); });
  auto const same = [&](auto const& a, auto const& b) { return key(a) == key(b); };
  words_.erase(std::unique(words_.begin(), words_.end(), same), words_.end());
  ++shared.requests;
  for (auto word = words_.begin(); word != words_.end();) {
    std::array<unsigned, banks> wanted{};
    unsigned const group = word->group;
    for (; word != words_.end() && word->group == group; ++word) { ++wanted[word->number % banks]; }
    unsigned const most = *std::max_element(wanted.begin(), wanted.end());
    shared.wavefronts += most;
    shared.conflicts += most - 1;
  }
  words_.clear();
}

}  // namespace tersum::simulator
