// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Vector clocks of warps.

#include "fault.hpp"
#include "happens_before.hpp"
#include "warp.hpp"

#include <algorithm>
#include <atomic>

namespace tersum::simulator {

struct happens_before::notes final : access_notes {
  notes(std::uint64_t by, std::size_t bytes) : identity{by}, words((bytes + 3) / 4) {}

  void forget(std::uint64_t byte, std::size_t bytes) override
  {
    std::fill(words.begin() + static_cast<std::ptrdiff_t>(byte / 4),
              words.begin() + static_cast<std::ptrdiff_t>((byte + bytes + 3) / 4),
              word{});
  }

  std::uint64_t identity;
  std::vector<word> words;
};

happens_before::happens_before()
{
  static std::atomic<std::uint64_t> last{0};
  identity_ = ++last;
}

void happens_before::join(knowledge& to, knowledge const& from)
{
  if (to.size() < from.size()) { to.resize(from.size()); }
  for (std::size_t k = 0; k < from.size(); ++k) {
    if (from[k].turn > to[k].turn) {
      to[k] = from[k];
    } else if (from[k].turn == to[k].turn) {
      to[k].lanes |= from[k].lanes;
      to[k].time = std::max(to[k].time, from[k].time);
    }
  }
}

std::uint32_t happens_before::begin(int rank,
                                    std::uint32_t index,
                                    std::uint32_t block,
                                    std::uint32_t warp_of_block)
{
  if (index == 0) { ++launches_[rank]; }
  std::uint64_t const key = std::uint64_t(static_cast<unsigned>(rank)) << 32 | index;
  auto const [at, is_new] = numbers_.emplace(key, static_cast<std::uint32_t>(agents_.size()));
  if (is_new) { agents_.emplace_back(); }
  agent& one               = agents_[at->second];
  std::uint32_t const turn = one.turn + 1;
  one                      = {.rank    = rank,
                              .block   = block,
                              .launch  = launches_[rank],
                              .warp    = warp_of_block,
                              .turn    = turn,
                              .settled = of_rank_[rank]};
  return at->second;
}

void happens_before::end_kernel(int rank, std::vector<std::uint32_t> const& warps)
{
  block_barrier(warps);
  if (!warps.empty()) { of_rank_[rank] = agents_[warps[0]].settled; }
}

void happens_before::warp_barrier(std::uint32_t warp)
{
  agent& one = agents_[warp];
  ++one.turn;
  if (one.acquired_lanes != 0) {
    join(one.settled, one.acquired);
    one.acquired_lanes = 0;
    one.acquired.clear();
  }
}

void happens_before::block_barrier(std::vector<std::uint32_t> const& warps)
{
  knowledge all(agents_.size());
  for (auto const w : warps) {
    warp_barrier(w);
    join(all, agents_[w].settled);
  }
  for (auto const w : warps) { all[w] = {agents_[w].turn, 0, 0}; }
  for (auto const w : warps) { agents_[w].settled = all; }
}

happens_before::knowledge happens_before::all_of(std::uint32_t warp, lane_set lanes) const
{
  agent const& one = agents_[warp];
  knowledge result = one.settled;
  if ((one.acquired_lanes & lanes) != 0) { join(result, one.acquired); }
  if (result.size() <= warp) { result.resize(warp + std::size_t{1}); }
  result[warp] = {one.turn, lanes, time_};
  return result;
}

void happens_before::fence(std::uint32_t warp, lane_set lanes, memory_scope scope)
{
  agent& one = agents_[warp];
  if ((one.observed_lanes & lanes) != 0) {
    join(one.acquired, one.observed);
    one.acquired_lanes |= one.observed_lanes & lanes;
  }
  one.fenced = all_of(warp, lanes);
  one.fenced_lanes |= lanes;
  one.fence_scope = scope;
  ++time_;
}

bool happens_before::includes(agent const& of, memory_scope scope, agent const& other) const
{
  if (of.rank != other.rank) { return scope == memory_scope::system; }
  return (of.block == other.block && of.launch == other.launch) || scope != memory_scope::block;
}

bool happens_before::knows(agent const& who, unsigned lane, mark const& what) const
{
  auto const in = [&](knowledge const& k) {
    if (k.size() <= what.warp) { return false; }
    known const& of = k[what.warp];
    return what.turn < of.turn ||
           (what.turn == of.turn && (of.lanes >> what.lane & 1) != 0 && what.time <= of.time);
  };
  return in(who.settled) || ((who.acquired_lanes >> lane & 1) != 0 && in(who.acquired));
}

// Whether two strong accesses may meet each other.
bool happens_before::meet(std::uint32_t warp, instruction const& i, mark const& other) const
{
  return i.order != memory_order::weak && other.strong &&
         includes(agents_[warp], i.scope, agents_[other.warp]) &&
         includes(agents_[other.warp], other.scope, agents_[warp]);
}

std::string happens_before::describe(std::uint32_t warp) const
{
  agent const& one = agents_[warp];
  return sentence("warp ", one.warp, " of block ", one.block, " of rank ", one.rank);
}

void happens_before::check(std::uint32_t warp,
                           instruction const& i,
                           mark const& now,
                           mark const& other,
                           char const* does,
                           char const* did) const
{
  if (other.turn == 0 || other.warp == warp || (other.bytes & now.bytes) == 0 ||
      meet(warp, i, other) || knows(agents_[warp], now.lane, other)) {
    return;
  }
  fail(does,
       " global memory that ",
       describe(other.warp),
       " ",
       did,
       ", and nothing orders the two: a race; it is ",
       describe(warp));
}

// Two warps are remembered; of more that read a word, the last ones.
void happens_before::note_read(word& at, mark const& one) const
{
  for (mark& r : at.reads) {
    if (r.turn == 0 || agents_[r.warp].rank == agents_[one.warp].rank) {
      r = one;
      return;
    }
  }
  at.reads[at.next_read++ % at.reads.size()] = one;
}

void happens_before::acquire(std::uint32_t warp,
                             unsigned lane,
                             instruction const& i,
                             std::uint64_t address)
{
  auto const found = releases_.find(address);
  if (found == releases_.end()) { return; }
  agent& one                = agents_[warp];
  bool const acquires       = i.order == memory_order::acquire || i.order == memory_order::acq_rel;
  auto const& [number, all] = found->second;
  taken& before             = one.so_far[address];
  if (before.list != number) { before = {.list = number}; }
  auto& done = acquires ? before.acquired : before.observed;
  for (; done.count < all.size(); ++done.count) {
    release const& r = all[done.count];
    if (!includes(one, i.scope, agents_[r.by]) || !includes(agents_[r.by], r.scope, one)) {
      continue;
    }
    join(acquires ? one.acquired : one.observed, r.what);
    done.any = true;
  }
  if (done.any) { (acquires ? one.acquired_lanes : one.observed_lanes) |= lane_set{1} << lane; }
}

void happens_before::publish(std::uint32_t warp,
                             unsigned lane,
                             instruction const& i,
                             word& at,
                             std::uint64_t address,
                             bool update)
{
  agent const& one     = agents_[warp];
  lane_set const alone = lane_set{1} << lane;
  bool const releases  = i.order == memory_order::release || i.order == memory_order::acq_rel;
  bool const fenced    = i.order != memory_order::weak && (one.fenced_lanes & alone) != 0;
  if (!update && at.released) {  // what was released with the old value is gone with it
    releases_.erase(address);
    at.released = false;
  }
  if (!releases && !fenced) { return; }
  auto& [number, all] = releases_[address];
  if (all.empty()) { number = ++lists_; }
  all.push_back({warp,
                 releases ? i.scope : std::min(i.scope, one.fence_scope),
                 releases ? all_of(warp, alone) : one.fenced});
  at.released = true;
  ++time_;
}

void happens_before::reach(std::uint32_t warp,
                           unsigned lane,
                           instruction const& i,
                           allocation const& in,
                           std::uint64_t address,
                           std::size_t bytes,
                           access how)
{
  std::lock_guard const lock{access_notes::guard};
  auto* shadow = static_cast<notes*>(in.notes().get());
  if (shadow == nullptr || shadow->identity != identity_) {
    in.notes() = std::make_unique<notes>(identity_, in.size());
    shadow     = static_cast<notes*>(in.notes().get());
  }
  std::uint64_t const begin = address - in.begin(), end = begin + bytes;
  bool const strong = i.order != memory_order::weak;
  for (std::uint64_t k = begin / 4; k * 4 < end; ++k) {
    word& at                 = shadow->words[k];
    std::uint64_t const from = std::max(begin, 4 * k) - 4 * k,
                        to   = std::min(end - 4 * k, std::uint64_t{4});
    mark const now{.warp   = warp,
                   .turn   = agents_[warp].turn,
                   .time   = time_,
                   .lane   = static_cast<std::uint8_t>(lane),
                   .bytes  = static_cast<std::uint8_t>((1U << to) - (1U << from)),
                   .strong = strong,
                   .scope  = i.scope};
    std::uint64_t const place = in.begin() + 4 * k;
    if (how != access::write && strong && at.released) { acquire(warp, lane, i, place); }
    if (how == access::read) {
      check(warp, i, now, at.write, "reads", "wrote");
      note_read(at, now);
      continue;
    }
    check(warp, i, now, at.write, "writes", "wrote");
    for (mark const& r : at.reads) { check(warp, i, now, r, "writes", "read"); }
    at.write = now;
    publish(warp, lane, i, at, place, how == access::update);
  }
}

}  // namespace tersum::simulator
