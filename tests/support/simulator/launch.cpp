// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Blocks, one after the other or one beside the other; the warps of a block, from barrier to barrier or in pieces.

#include "interleaved.hpp"
#include "launch.hpp"
#include "warp.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>

namespace tersum::simulator {

class grid_run {
 public:
  grid_run(program const& kernel,
           launch_shape const& shape,
           std::vector<std::byte> const& parameters)
    : shape_{shape}, state_{kernel,
                            parameters,
                            shared_memory{kernel.static_shared + shape.dynamic_shared,
                                          kernel.shared_granule,
                                          kernel.copies_shared}}
  {
    state_.overlaps             = shape.overlaps;
    std::uint32_t const threads = shape.block[0] * shape.block[1] * shape.block[2];
    for (std::uint32_t begin = 0; begin < threads; begin += warp_lanes) {
      auto& one = warps_.emplace_back(
        state_, begin / warp_lanes, std::min(threads - begin, std::uint32_t{warp_lanes}));
      for (unsigned l = 0; l < warp_lanes; ++l) {
        std::uint32_t const thread = begin + l;
        set(one, special::tid_x, l, thread % shape.block[0]);
        set(one, special::tid_y, l, thread / shape.block[0] % shape.block[1]);
        set(one, special::tid_z, l, thread / (shape.block[0] * shape.block[1]));
        set(one, special::laneid, l, l);
        std::uint32_t const self = 1u << l, below = self - 1;
        set(one, special::lanemask_eq, l, self);
        set(one, special::lanemask_lt, l, below);
        set(one, special::lanemask_le, l, self | below);
        set(one, special::lanemask_gt, l, ~(self | below));
        set(one, special::lanemask_ge, l, ~below);
        set(one, special::warpid, l, begin / warp_lanes);
      }
      set_all(one, special::ntid_x, shape.block);
      set_all(one, special::nctaid_x, shape.grid);
      for (unsigned l = 0; l < warp_lanes; ++l) {
        set(one, special::envreg1, l, static_cast<std::uint32_t>(shape.grid_workspace >> 32));
        set(one, special::envreg2, l, static_cast<std::uint32_t>(shape.grid_workspace));
      }
    }
  }

  //! Blocks one after the other.
  launch_counts run(bool counts_traffic)
  {
    traffic_counter traffic;
    if (counts_traffic) { state_.traffic = &traffic; }
    extent at{};
    for (at[2] = 0; at[2] < shape_.grid[2]; ++at[2]) {
      for (at[1] = 0; at[1] < shape_.grid[1]; ++at[1]) {
        for (at[0] = 0; at[0] < shape_.grid[0]; ++at[0]) { run_block(at); }
      }
    }
    launch_counts result = state_.counts;
    result.loads         = traffic.loads;
    result.stores        = traffic.stores;
    result.shared        = traffic.shared;
    return result;
  }

 private:
  friend class resident_block;

  static void set(warp& of, special which, unsigned lane, std::uint32_t value)
  {
    of.lanes(slot_of(which))[lane] = value;
  }

  static void set_all(warp& of, special first, extent const& values)
  {
    for (std::uint32_t k = 0; k < 3; ++k) {
      std::fill_n(of.lanes(slot_of(first) + k), warp_lanes, values[k]);
    }
  }

  void begin_block(extent const& at)
  {
    state_.shared.begin_block(++state_.epoch);
    for (auto& w : warps_) {
      w.begin();
      set_all(w, special::ctaid_x, at);
    }
  }

  void run_block(extent const& at)
  {
    begin_block(at);
    // Every other epoch in the opposite order: what depends on it shows.
    for (bool forward = true; !finished(); forward = !forward, ++state_.epoch) {
      for (std::size_t i = 0; i < warps_.size(); ++i) {
        warp& next = warps_[forward ? i : warps_.size() - 1 - i];
        try {
          if (!next.done()) { next.run(); }
        } catch (fault const& f) {
          fail(f.what(), "; ", next.place(), ", ", place(at));
        }
      }
      pass_barrier(at);
    }
  }

  [[nodiscard]] bool finished() const
  {
    return std::all_of(warps_.begin(), warps_.end(), [](warp const& w) { return w.done(); });
  }

  [[nodiscard]] std::string place(extent const& at) const
  {
    return sentence(
      "block (", at[0], ", ", at[1], ", ", at[2], ") of the kernel ", state_.kernel.name);
  }

  // All that have not left stand at a barrier, which must be the same.
  void pass_barrier(extent const& at)
  {
    std::int64_t number = -1;
    for (auto& w : warps_) {
      if (w.done()) { continue; }
      if (number >= 0 && w.barrier() != number) {
        fail("a deadlock: warps wait at barriers ", number, " and ", w.barrier(), "; ", place(at));
      }
      number = w.barrier();
    }
    for (auto& w : warps_) { w.pass_barrier(); }
    if (number >= 0) { ++state_.counts.barriers; }
  }

  launch_shape shape_;
  launch_state state_;
  std::deque<warp> warps_;
};

resident_block::resident_block(program const& kernel,
                               launch_shape const& shape,
                               std::vector<std::byte> const& parameters,
                               std::uint32_t number,
                               int rank,
                               happens_before& order,
                               traffic_counter* traffic)
  : run_{std::make_unique<grid_run>(kernel, shape, parameters)}, at_{number % shape.grid[0],
                                                                     number / shape.grid[0] %
                                                                       shape.grid[1],
                                                                     number / shape.grid[0] /
                                                                       shape.grid[1]}
{
  run_->state_.order   = &order;
  run_->state_.traffic = traffic;
  run_->begin_block(at_);
  auto const count = static_cast<std::uint32_t>(run_->warps_.size());
  for (std::uint32_t w = 0; w < count; ++w) {
    run_->warps_[w].number = order.begin(rank, number * count + w, number, w);
  }
}

resident_block::resident_block(resident_block&&) noexcept = default;
resident_block::~resident_block()                         = default;

std::size_t resident_block::warps() const { return run_->warps_.size(); }
bool resident_block::finished() const { return run_->finished(); }
launch_counts resident_block::counts() const { return run_->state_.counts; }

bool resident_block::can_run(std::size_t warp) const
{
  auto const& one = run_->warps_[warp];
  return !one.done() && one.barrier() < 0 && !one.waits();
}

void resident_block::run(std::size_t warp, std::uint64_t instructions)
{
  auto& warps = run_->warps_;
  try {
    warps[warp].run_piece(instructions);
  } catch (fault const& f) {
    fail(f.what(), "; ", warps[warp].place(), ", ", run_->place(at_));
  }
  if (finished() || !std::all_of(warps.begin(), warps.end(), [](auto const& w) {
        return w.done() || w.barrier() >= 0;
      })) {
    return;
  }
  run_->pass_barrier(at_);
  ++run_->state_.epoch;
  run_->state_.order->block_barrier(numbers());
  run_->state_.order->change();
}

std::vector<std::uint32_t> resident_block::numbers() const
{
  std::vector<std::uint32_t> result;
  for (auto const& w : run_->warps_) { result.push_back(w.number); }
  return result;
}

std::string resident_block::waits_at() const
{
  for (auto const& w : run_->warps_) {
    if (!w.done() && w.barrier() < 0 && w.waits()) {
      return sentence(w.place(), ", ", run_->place(at_));
    }
  }
  return {};
}

namespace {

// Whether the environment asks for the blocks of this launch to be resident together, so that races between them show.
bool looks_for_races(launch_shape const& shape)
{
  char const* const most = std::getenv("TERSUM_SIMULATED_TOGETHER");
  if (most == nullptr) { return false; }
  std::uint64_t const blocks = std::uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
  return blocks > 1 && blocks <= std::strtoull(most, nullptr, 10);
}

}  // namespace

launch_counts run_kernel(program const& kernel,
                         launch_shape const& shape,
                         std::vector<std::byte> const& parameters,
                         bool counts_traffic)
{
  if (auto* const rank = interleaved_ranks::member::of_this_thread()) {
    return rank->run(kernel, shape, parameters, counts_traffic);
  }
  if (shape.together || looks_for_races(shape)) {
    interleaved_ranks alone{1};
    return interleaved_ranks::member{alone, 0}.run(kernel, shape, parameters, counts_traffic);
  }
  return grid_run{kernel, shape, parameters}.run(counts_traffic);
}

}  // namespace tersum::simulator
