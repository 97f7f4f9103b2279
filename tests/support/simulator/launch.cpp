// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Blocks, one after the other; the warps of a block, from barrier to barrier.

#include "launch.hpp"
#include "warp.hpp"

#include <algorithm>
#include <deque>

namespace tersum::simulator {

namespace {

class grid_run {
 public:
  grid_run(program const& kernel,
           launch_shape const& shape,
           std::vector<std::byte> const& parameters)
    : shape_{shape}, state_{kernel,
                            parameters,
                            shared_memory{kernel.static_shared + shape.dynamic_shared,
                                          kernel.shared_granule}}
  {
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
        set(one, special::warpid, l, begin / warp_lanes);
      }
      set_all(one, special::ntid_x, shape.block);
      set_all(one, special::nctaid_x, shape.grid);
    }
  }

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

  void run_block(extent const& at)
  {
    state_.shared.begin_block(++state_.epoch);
    for (auto& w : warps_) {
      w.begin();
      set_all(w, special::ctaid_x, at);
    }
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

}  // namespace

launch_counts run_kernel(program const& kernel,
                         launch_shape const& shape,
                         std::vector<std::byte> const& parameters,
                         bool counts_traffic)
{
  return grid_run{kernel, shape, parameters}.run(counts_traffic);
}

}  // namespace tersum::simulator
