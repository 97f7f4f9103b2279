// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Registers whose values are never needed at the same time share a slot: PTX has thousands, which no cache holds.

#include "program.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace tersum::simulator {

namespace {

using slot_set = std::vector<bool>;

// Statements from `begin` on that run one after the other, before `end`.
struct block {
  std::size_t begin, end;
  slot_set used{}, written{}, live_in{}, live_out{};  // used: before it is written
};

template <class Use>
void each_source(instruction const& i, Use const& use)
{
  for (unsigned k = i.destinations; k < i.operands; ++k) { use(i.slots[k]); }
  if (i.guard != 0) { use(i.guard); }
}

std::vector<block> blocks_of(program const& p)
{
  std::set<std::size_t> begins{0};
  for (auto const& i : p.code) {
    if (i.what->then == flow::branch) {
      begins.insert(i.target);
      begins.insert(i.number + std::size_t{1});
    }
  }
  begins.insert(p.code.size());
  std::vector<block> result;
  for (auto at = begins.begin(); *at != p.code.size(); ++at) {
    block b{.begin = *at, .end = *std::next(at)};
    b.used = b.written = b.live_in = b.live_out = slot_set(p.slots);
    for (std::size_t k = b.begin; k < b.end; ++k) {
      auto const& i = p.code[k];
      each_source(i, [&](std::uint32_t s) { b.used[s] = b.used[s] || !b.written[s]; });
      for (unsigned d = 0; d < i.destinations; ++d) {
        if (i.guard == 0) { b.written[i.slots[d]] = true; }
      }
    }
    result.push_back(std::move(b));
  }
  return result;
}

void find_live(program const& p, std::vector<block>& blocks)
{
  std::map<std::size_t, std::size_t> at;  // a block by its beginning
  for (std::size_t b = 0; b < blocks.size(); ++b) { at[blocks[b].begin] = b; }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t b = blocks.size(); b-- > 0;) {
      auto& one         = blocks[b];
      auto const& last  = p.code[one.end - 1];
      auto const follow = [&](std::size_t place) {
        auto const next = at.find(place);
        if (next == at.end()) { return; }
        auto const& needed = blocks[next->second].live_in;
        for (std::size_t s = 0; s < needed.size(); ++s) {
          if (!needed[s] || one.live_out[s]) { continue; }
          one.live_out[s] = true;
          changed         = true;
        }
      };
      follow(one.end);
      if (last.what->then == flow::branch) { follow(last.target); }
      for (std::size_t s = 0; s < p.slots; ++s) {
        one.live_in[s] = one.used[s] || (one.live_out[s] && !one.written[s]);
      }
    }
  }
}

struct interval {
  std::size_t begin = ~std::size_t{0}, end = 0;
  std::uint32_t slot = 0;
  void cover(std::size_t at)
  {
    begin = std::min(begin, at);
    end   = std::max(end, at);
  }
};

}  // namespace

void share_slots(program& p)
{
  auto blocks = blocks_of(p);
  find_live(p, blocks);
  std::vector<interval> intervals(p.slots);
  for (std::uint32_t s = 0; s < p.slots; ++s) { intervals[s].slot = s; }
  for (auto const& b : blocks) {
    for (std::uint32_t s = 0; s < p.slots; ++s) {
      if (b.live_in[s]) { intervals[s].cover(b.begin); }
      if (b.live_out[s]) { intervals[s].cover(b.end); }
    }
    for (std::size_t k = b.begin; k < b.end; ++k) {
      auto const& i = p.code[k];
      each_source(i, [&](std::uint32_t s) { intervals[s].cover(k); });
      for (unsigned d = 0; d < i.destinations; ++d) { intervals[i.slots[d]].cover(k); }
    }
  }

  // What the launch writes stays where it is; constants come next.
  std::vector<std::uint32_t> place(p.slots, 0);
  std::uint32_t next = slot_of(special::count);
  for (std::uint32_t s = 0; s < next; ++s) { place[s] = s; }
  for (auto& [slot, value] : p.constants) {
    place[slot] = next;
    slot        = next++;
  }
  std::sort(intervals.begin(), intervals.end(), [](interval const& a, interval const& b) {
    return a.begin < b.begin;
  });
  std::multimap<std::size_t, std::uint32_t> busy;  // slots by the end of what they hold
  std::vector<std::uint32_t> free;
  for (auto const& v : intervals) {
    if (v.begin > v.end || v.slot == 0 || place[v.slot] != 0) { continue; }
    while (!busy.empty() && busy.begin()->first < v.begin) {
      free.push_back(busy.begin()->second);
      busy.erase(busy.begin());
    }
    if (free.empty()) { free.push_back(next++); }
    place[v.slot] = free.back();
    free.pop_back();
    busy.emplace(v.end, place[v.slot]);
  }
  for (auto& i : p.code) {
    for (unsigned k = 0; k < i.operands; ++k) { i.slots[k] = place[i.slots[k]]; }
    i.guard = place[i.guard];
  }
  p.slots = next;
}

}  // namespace tersum::simulator
