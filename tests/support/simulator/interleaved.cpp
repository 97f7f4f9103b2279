// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Warps of several kernels that take turns.

#include "fault.hpp"
#include "interleaved.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tersum::simulator {

namespace {

thread_local interleaved_ranks::member* this_member = nullptr;

// What the driver gives a cooperative launch: two words, of which blocks count in the second.
class grid_workspace {
 public:
  explicit grid_workspace(bool wanted)
  {
    if (!wanted) { return; }
    data_ = global_memory::get().allocate(bytes, memory_kind::managed);
    std::memset(data_, 0, bytes);
  }
  grid_workspace(grid_workspace const&)            = delete;
  grid_workspace& operator=(grid_workspace const&) = delete;
  ~grid_workspace()
  {
    if (data_ != nullptr) { global_memory::get().free(data_); }
  }

  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }

 private:
  static constexpr std::size_t bytes = 8;
  void* data_                        = nullptr;
};

}  // namespace

interleaved_ranks::interleaved_ranks(int ranks, taking_turns order)
  : ranks_(static_cast<std::size_t>(ranks)), order_{order}, chance_{order.seed}
{
}

interleaved_ranks::member::member(interleaved_ranks& on, int rank) : on_{on}, rank_{rank}
{
  this_member = this;
}

interleaved_ranks::member::~member()
{
  this_member = nullptr;
  std::lock_guard const lock{on_.guard_};
  on_.ranks_[static_cast<std::size_t>(rank_)].gone = true;
  on_.changed_.notify_all();
}

interleaved_ranks::member* interleaved_ranks::member::of_this_thread() { return this_member; }

// Whether nobody may still launch what others wait for.
bool interleaved_ranks::complete() const
{
  return std::all_of(ranks_.begin(), ranks_.end(), [](rank const& r) {
    return r.gone || (r.resident != nullptr && !r.resident->done);
  });
}

void interleaved_ranks::give_up(std::string const& why)
{
  failed_ = why;
  for (rank& r : ranks_) { r.resident = nullptr; }
  changed_.notify_all();
  fail(why);
}

bool interleaved_ranks::find_next(place& next)
{
  std::vector<place> able;
  std::size_t count = 0, first_after = 0;
  std::vector<std::size_t> numbers;
  for (rank const& r : ranks_) {
    if (r.resident == nullptr) { continue; }
    for (std::size_t b = 0; b < r.resident->blocks.size(); ++b) {
      auto const& block = r.resident->blocks[b];
      for (std::size_t w = 0; w < block.warps(); ++w, ++count) {
        if (!block.can_run(w)) { continue; }
        if (count <= last_) { first_after = able.size() + 1; }
        able.push_back({r.resident, b, w});
        numbers.push_back(count);
      }
    }
  }
  if (able.empty()) { return false; }
  std::size_t chosen = 0;
  switch (order_.next) {
    case taking_turns::by::turn: chosen = first_after % able.size(); break;
    case taking_turns::by::first: break;
    case taking_turns::by::last: chosen = able.size() - 1; break;
    case taking_turns::by::chance: chosen = chance_() % able.size(); break;
  }
  next  = able[chosen];
  last_ = numbers[chosen];
  return true;
}

void interleaved_ranks::run_until_one_ends()
{
  for (place next{};;) {
    if (!find_next(next)) {
      std::string text = "a deadlock: all wait for memory that nobody changes:";
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (ranks_[r].resident == nullptr) { continue; }
        for (auto const& block : ranks_[r].resident->blocks) {
          if (auto const where = block.waits_at(); !where.empty()) {
            text += sentence(" rank ", r, ", ", where, ";");
            break;
          }
        }
      }
      give_up(text);
    }
    bool const by_chance = order_.next == taking_turns::by::chance;
    auto& block          = next.in->blocks[next.block];
    try {
      block.run(next.warp, by_chance ? 1 + chance_() % order_.most : order_.most);
    } catch (fault const& f) {
      give_up(f.what());
    }
    auto const& all = next.in->blocks;
    if (!block.finished() ||
        !std::all_of(all.begin(), all.end(), [](auto const& b) { return b.finished(); })) {
      continue;
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].resident != next.in) { continue; }
      std::vector<std::uint32_t> warps;
      for (auto const& b : all) {
        auto const its = b.numbers();
        warps.insert(warps.end(), its.begin(), its.end());
      }
      happened_.end_kernel(static_cast<int>(r), warps);
    }
    next.in->done = true;
    changed_.notify_all();
    return;
  }
}

launch_counts interleaved_ranks::member::run(program const& kernel,
                                             launch_shape const& shape,
                                             std::vector<std::byte> const& parameters,
                                             bool counts_traffic)
{
  grid_workspace const workspace{shape.together};
  launch_shape own_shape   = shape;
  own_shape.grid_workspace = workspace.address();
  traffic_counter traffic;
  std::unique_lock lock{on_.guard_};
  rank& own = on_.ranks_[static_cast<std::size_t>(rank_)];
  grid mine;
  std::uint32_t const blocks = shape.grid[0] * shape.grid[1] * shape.grid[2];
  for (std::uint32_t b = 0; b < blocks; ++b) {
    mine.blocks.emplace_back(
      kernel, own_shape, parameters, b, rank_, on_.happened_, counts_traffic ? &traffic : nullptr);
  }
  own.resident = &mine;
  on_.changed_.notify_all();
  // Whichever thread finds all of them here runs the warps of all.
  while (!mine.done && on_.failed_.empty()) {
    if (on_.complete()) {
      on_.run_until_one_ends();
    } else if (on_.changed_.wait_for(lock, on_.patience) == std::cv_status::timeout &&
               !on_.complete() && !mine.done && on_.failed_.empty()) {
      on_.give_up("a rank neither launches a kernel nor goes, while others wait for it");
    }
  }
  own.resident = nullptr;
  if (!mine.done) { fail("a kernel of another rank failed: ", on_.failed_); }
  launch_counts all;
  all.loads  = traffic.loads;
  all.stores = traffic.stores;
  all.shared = traffic.shared;
  for (auto const& b : mine.blocks) {
    auto const one = b.counts();
    all.instructions += one.instructions;
    all.barriers += one.barriers;
  }
  return all;
}

}  // namespace tersum::simulator
