// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How threads of a warp part, meet and wait for each other.

#include "warp.hpp"

#include <algorithm>
#include <cstring>

namespace tersum::simulator {

namespace {

// A few names for `lane_set`s in messages.
std::string describe(lane_set lanes)
{
  std::ostringstream out;
  out << "lanes 0x" << std::hex << lanes;
  return out.str();
}

constexpr std::uint64_t bulk_unit = 16;  // bytes

}  // namespace

warp::warp(launch_state& home, std::uint32_t index, std::uint32_t threads)
  : home_{home}, index_{index}, threads_{threads == warp_lanes ? all_lanes
                                                               : (lane_set{1} << threads) - 1},
    registers_(std::size_t{home.kernel.slots} * warp_lanes),
    local_(home.kernel.local_bytes * warp_lanes), local_written_(local_.size())
{
  for (auto const& [slot, value] : home.kernel.constants) {
    std::fill_n(lanes(slot), warp_lanes, value);
  }
}

void warp::begin()
{
  groups_.assign(1, {0, threads_, false});
  living_  = threads_;
  waited_  = 0;
  barrier_ = -1;
  turn_    = ++home_.turns;
  left_    = ~std::uint64_t{0};
  std::fill(local_written_.begin(), local_written_.end(), std::uint8_t{0});
  copies_.clear();
}

std::string warp::place() const
{
  std::string const thread =
    lane_ < 0 ? sentence("warp ", index_)
              : sentence("thread ", index_ * warp_lanes + static_cast<unsigned>(lane_));
  return sentence(thread, " at PTX line ", current_->source->line, ", ", current_->source->text);
}

// Keeps the order; those who meet at a place go on together.
void warp::put(group added)
{
  auto at = std::lower_bound(groups_.begin(),
                             groups_.end(),
                             added.at,
                             [](group const& g, std::uint32_t to) { return g.at < to; });
  if (at != groups_.end() && at->at == added.at) {
    at->lanes |= added.lanes;
    at->waits = false;
  } else {
    groups_.insert(at, added);
  }
}

// A launch that overlaps the kernel before promises that each thread waits for it, before it touches memory that others see.
void warp::check_waited(lane_set lanes, char const* what)
{
  lane_set const early = home_.overlaps ? lanes & ~waited_ : 0;
  if (early == 0) { return; }
  lane_ = std::countr_zero(early);
  fail(what, " before it waits for the kernel before, which the launch overlaps");
}

// Whoever waited for them need not any more.
void warp::leave(lane_set lanes)
{
  check_waited(lanes, "ends");
  living_ &= ~lanes;
  for (auto& g : groups_) { g.waits = false; }
}

// Whether all lanes that an instruction is for are at it.
bool warp::take_part(instruction const& i, lane_set active)
{
  lane_set needed = living_;
  if (i.what->then != flow::block_barrier && i.what->then != flow::warp_together) {
    auto const* const members = lanes(i.slots[i.members]);
    auto const first          = static_cast<unsigned>(std::countr_zero(active));
    auto const named          = static_cast<lane_set>(members[first]);
    for_lanes(active, [&](unsigned l) {
      if (static_cast<lane_set>(members[l]) != named) {
        fail("lanes that meet name different lanes to meet");
      }
    });
    if ((active & ~named) != 0) { fail(describe(active & ~named), " do not name themselves"); }
    needed &= named;
  }
  return (needed & ~active) == 0;
}

std::string warp::deadlock() const
{
  std::string text = "a deadlock:";
  for (auto const& g : groups_) {
    auto const& s = *home_.kernel.code[g.at].source;
    text += sentence(" ", describe(g.lanes), " wait at PTX line ", s.line, " (", s.text, ");");
  }
  return text + " others of the warp never come";
}

void warp::run()
{
  auto const& code = home_.kernel.code;
  while (living_ != 0 && barrier_ < 0 && left_ != 0) {
    auto const first = next_group();
    if (first == groups_.end()) { fail(deadlock()); }
    group g          = *first;
    auto const after = groups_.erase(first);
    // Those who are behind go first, so that threads meet where their ways meet.
    std::uint32_t const limit = after == groups_.end() ? ~std::uint32_t{0} : after->at;
    while (g.at < limit && g.lanes != 0 && barrier_ < 0 && !g.waits && left_ != 0) {
      if (g.at >= code.size()) { fail("runs past the end of the kernel"); }
      step(g);
      if (g.at < limit && !groups_.empty() && groups_.front().at <= g.at) { break; }
    }
    if (g.lanes != 0) { put(g); }
  }
}

// One instruction.
void warp::step(group& g)
{
  instruction const& i = home_.kernel.code[g.at];
  current_             = &i;
  lane_                = -1;
  touched_.clear();
  lane_set active = g.lanes;
  if (i.guard != 0) {
    lane_set chosen         = 0;
    auto const* const guard = lanes(i.guard);
    for (unsigned l = 0; l < warp_lanes; ++l) {
      chosen |= static_cast<lane_set>((guard[l] & 1) != (i.negated ? 1U : 0U)) << l;
    }
    active &= chosen;
  }
  switch (i.what->then) {
    case flow::on:
      if (active != 0) { i.run(*this, i, active); }
      break;
    case flow::branch:
      if (active == g.lanes) {
        ++home_.counts.instructions;
        --left_;
        g.at = i.target;
        return;
      }
      if (active != 0) {
        put({i.target, active, false});
        g.lanes &= ~active;
      }
      break;
    case flow::leave:
      finish_copies(active);
      leave(active);
      g.lanes &= ~active;
      break;
    default:
      if (active == 0) { break; }
      if (!take_part(i, active)) {
        g.waits = true;
        return;  // it comes back to this instruction
      }
      if (i.run != nullptr) {
        i.run(*this, i, active);
      } else {
        turn_ = ++home_.turns;
        if (home_.order != nullptr) { home_.order->warp_barrier(number); }
      }
      if (i.what->then == flow::block_barrier) {
        barrier_ = static_cast<std::int64_t>(
          lanes(i.slots[0])[static_cast<unsigned>(std::countr_zero(active))]);
      }
  }
  if (home_.traffic != nullptr) { home_.traffic->end_statement(); }
  ++home_.counts.instructions;
  ++g.at;
  --left_;
  if (!touched_.empty()) {
    looked_at_place_ = looked_in_vain(i) ? g.at : 0;
    left_            = 0;
  }
}

// Those who are behind go first; but when they wait for others, these may be ahead of them in the same warp.
std::vector<warp::group>::iterator warp::next_group()
{
  auto const goes = [](group const& g) { return !g.waits; };
  if (looked_at_place_ != 0) {
    auto const ahead = std::find_if(groups_.begin(), groups_.end(), [&](group const& g) {
      return goes(g) && g.at > looked_at_place_;
    });
    looked_at_place_ = 0;
    if (ahead != groups_.end()) { return ahead; }
  }
  return std::find_if(groups_.begin(), groups_.end(), goes);
}

void warp::run_piece(std::uint64_t instructions)
{
  left_ = piece_ = instructions;
  touched_.clear();
  run();
  if (touched_.empty()) { since_look_ += piece_ - left_; }
}

bool warp::waits() const
{
  constexpr unsigned enough = 64;
  return in_vain_ >= enough && changes_ == home_.order->changes();
}

void warp::fence(instruction const& i, lane_set active)
{
  if (home_.order != nullptr) { home_.order->fence(number, active, i.scope); }
}

// What may be a look at something that others change: a strong read, or an update.
void warp::touch(
  instruction const& i, std::uint64_t address, std::byte const* at, std::size_t bytes, access how)
{
  if (how == access::write) {
    home_.order->change();
  } else if (i.order != memory_order::weak) {
    std::uint64_t value = 0;
    std::memcpy(&value, at, std::min(bytes, sizeof(value)));
    touched_.push_back({at, std::min(bytes, sizeof(value)), value});
    found_ = (found_ ^ address) * 0x9e3779b97f4a7c15U;
    found_ = (found_ ^ value ^ found_ >> 29) * 0xbf58476d1ce4e5b9U;
  }
}

// Whether an instruction that looked has changed nothing, and found what it found before.
bool warp::looked_in_vain(instruction const& i)
{
  bool changed = false;
  for (auto const& word : touched_) {
    changed = changed || std::memcmp(word.at, &word.value, word.bytes) != 0;
  }
  if (changed) { home_.order->change(); }
  std::uint64_t& before = found_before_[i.number];
  // Whoever has gone through so many instructions since the last look was not waiting.
  constexpr std::uint64_t longest_wait = 4096;
  bool const busy                      = since_look_ + (piece_ - left_) > longest_wait;
  since_look_                          = 0;
  bool const news = changed || busy || before != found_ || changes_ != home_.order->changes();
  before          = found_;
  found_          = 0;
  changes_        = home_.order->changes();
  in_vain_        = news ? 0 : in_vain_ + 1;
  return !news;
}

access_time warp::now(unsigned lane) const
{
  return {home_.epoch, turn_, static_cast<std::uint16_t>(index_ * warp_lanes + lane)};
}

void warp::show_shared(lane_set active)
{
  for_lanes(active, [&](unsigned l) { home_.shared.show(now(l)); });
}

void warp::copy_out(unsigned lane, std::uint64_t to, std::uint64_t from, std::uint64_t bytes)
{
  lane_ = static_cast<int>(lane);
  if (to % bulk_unit != 0 || from % bulk_unit != 0 || bytes % bulk_unit != 0) {
    fail("copies ",
         bytes,
         " bytes from ",
         from,
         " to ",
         to,
         ", which are not all multiples of ",
         bulk_unit);
  }
  if (bytes == 0 || !home_.shared.holds(from, bytes)) {
    fail("copies ",
         bytes,
         " bytes of shared memory at ",
         static_cast<std::int64_t>(from - shared_memory::first),
         "; the block has ",
         home_.shared.size());
  }
  home_.shared.begin_copy(from, bytes, now(lane));
  if (copies_.empty()) { copies_.resize(warp_lanes); }
  copies_[lane].open.push_back({current_, to, from, bytes});
}

void warp::commit_copies(lane_set active)
{
  if (copies_.empty()) { copies_.resize(warp_lanes); }
  for_lanes(active, [&](unsigned l) {
    copies_[l].groups.push_back(std::move(copies_[l].open));
    copies_[l].open.clear();
  });
}

void warp::end_copies(unsigned lane, std::uint64_t left)
{
  lane_ = static_cast<int>(lane);
  if (copies_.empty()) { return; }
  auto& [open, groups, read] = copies_[lane];
  while (groups.size() > left) {
    for (bulk_copy& copy : groups.front()) {
      std::byte const* const row = home_.shared.data(copy.from);
      copy.row.assign(row, row + copy.bytes);
      home_.shared.end_copy(copy.from, copy.bytes, now(lane));
      read.push_back(std::move(copy));
    }
    groups.erase(groups.begin());
  }
}

void warp::finish_copies(lane_set lanes)
{
  if (copies_.empty()) { return; }
  for_lanes(lanes, [&](unsigned l) {
    lane_                      = static_cast<int>(l);
    auto& [open, groups, read] = copies_[l];
    bool const reads =
      std::any_of(groups.begin(), groups.end(), [](auto const& group) { return !group.empty(); });
    if (!open.empty() || reads) { fail("ends while its copies may still read shared memory"); }
    for (bulk_copy const& copy : read) {
      for (std::uint64_t at = 0; at < copy.bytes; at += bulk_unit) {
        std::memcpy(reach(*copy.issued, l, copy.to + at, bulk_unit, access::write),
                    copy.row.data() + at,
                    bulk_unit);
        // As many bytes as a warp stores in a request.
        bool const request = (at + bulk_unit) % (warp_lanes * bulk_unit) == 0;
        if (home_.traffic != nullptr && request) { home_.traffic->end_statement(); }
      }
      if (home_.traffic != nullptr) { home_.traffic->end_statement(); }
    }
    read.clear();
  });
}

std::byte* warp::reach(
  instruction const& i, unsigned lane, std::uint64_t address, std::size_t bytes, access how)
{
  lane_      = static_cast<int>(lane);
  auto where = i.what->where;
  if (address % bytes != 0) {
    fail("accesses ",
         bytes,
         " bytes at an address that is ",
         address % bytes,
         " past a multiple of them");
  }
  if (where == space::generic) {
    where = space{static_cast<std::uint8_t>(address >> 56 == 0 ? 1 : (address >> 56) + 1)};
    address &= (std::uint64_t{1} << 56) - 1;
  }
  switch (where) {
    case space::shared: {
      if (!home_.shared.holds(address, bytes)) {
        fail("accesses ",
             bytes,
             " bytes of shared memory at ",
             static_cast<std::int64_t>(address - shared_memory::first),
             "; the block has ",
             home_.shared.size());
      }
      if (how == access::read) {
        home_.shared.read(address, bytes, now(lane));
      } else {
        home_.shared.write(address, bytes, now(lane), how == access::update);
      }
      if (home_.order != nullptr) { touch(i, address, home_.shared.data(address), bytes, how); }
      if (home_.traffic != nullptr) { home_.traffic->reach_shared(lane, address, bytes); }
      return home_.shared.data(address);
    }
    case space::local: {
      std::size_t const size = home_.kernel.local_bytes;
      if (bytes > size || address > size - bytes) {
        fail("accesses memory outside its own local memory");
      }
      std::size_t const at = lane * size + address;
      if (how == access::write) {
        std::memset(local_written_.data() + at, 1, bytes);
      } else if (std::memchr(local_written_.data() + at, 0, bytes) != nullptr) {
        fail("reads local memory that it has not written");
      }
      return local_.data() + at;
    }
    case space::param:
      if (bytes > home_.parameters.size() || address > home_.parameters.size() - bytes ||
          how != access::read) {
        fail("accesses memory outside the parameters");
      }
      return const_cast<std::byte*>(home_.parameters.data()) + address;
    default: break;
  }
  check_waited(lane_set{1} << lane, "accesses global memory");
  auto& memory = global_memory::get();
  address      = memory.behind_mapping(address);
  if (home_.generation != memory.generation()) {
    home_.generation = memory.generation();
    home_.found.assign(home_.kernel.code.size(), nullptr);
  }
  allocation const*& in = home_.found[i.number];
  if (in == nullptr || !in->holds(address, bytes)) {
    in = memory.find(address);
    if (in == nullptr) {
      fail("accesses global memory at 0x", std::hex, address, ", which is no allocation");
    }
    if (!in->holds(address, bytes)) {
      fail("accesses ",
           bytes,
           " bytes at ",
           address - in->begin(),
           " of an allocation of ",
           in->size());
    }
  }
  if (home_.order != nullptr) {
    home_.order->reach(number, lane, i, *in, address, bytes, how);
    touch(i, address, reinterpret_cast<std::byte const*>(address), bytes, how);
  }
  if (how == access::write) {
    in->mark_written(address, bytes);
  } else if (!in->written(address, bytes)) {
    fail("reads global memory that nobody has written, at byte ",
         address - in->begin(),
         " of an allocation of ",
         in->size());
  }
  if (home_.traffic != nullptr) {
    home_.traffic->reach_global(address, bytes, how == access::read);
  }
  return reinterpret_cast<std::byte*>(address);
}

}  // namespace tersum::simulator
