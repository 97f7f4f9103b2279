// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Branches, barriers, and what lanes do together.

#include "../tile_product.hpp"
#include "operations.hpp"
#include "small_floats.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace tersum::simulator {

namespace {

using values = std::array<std::uint64_t, warp_lanes>;

values copy(std::uint64_t const* lanes)
{
  values result;
  std::copy_n(lanes, warp_lanes, result.begin());
  return result;
}

enum class shuffle_by { bfly, idx, up, down };

// d|p, a, b, c, members
template <shuffle_by How>
void shuffle(warp& w, instruction const& i, lane_set active)
{
  values const from = copy(w.lanes(i.slots[2])), by = copy(w.lanes(i.slots[3])),
               limits = copy(w.lanes(i.slots[4]));
  for_lanes(active, [&](unsigned l) {
    auto const b        = static_cast<unsigned>(by[l] & 31);
    auto const segment  = static_cast<unsigned>(limits[l] >> 8 & 31);
    unsigned const low  = l & segment,
                   high = low | (static_cast<unsigned>(limits[l] & 31) & ~segment);
    unsigned lane       = 0;
    bool inside         = false;
    if constexpr (How == shuffle_by::bfly) { lane = l ^ b, inside = lane <= high; }
    if constexpr (How == shuffle_by::idx) { lane = low | (b & ~segment), inside = lane <= high; }
    if constexpr (How == shuffle_by::up) {
      lane = l - b, inside = static_cast<int>(l) - static_cast<int>(b) >= static_cast<int>(high);
    }
    if constexpr (How == shuffle_by::down) { lane = l + b, inside = lane <= high; }
    if (!inside) { lane = l; }
    if ((active >> lane & 1U) == 0) {
      fail("lane ", l, " shuffles from lane ", lane, ", which does not take part");
    }
    w.lanes(i.slots[0])[l] = from[lane];
    w.lanes(i.slots[1])[l] = inside;
  });
}

// d, a, members
template <auto Function, class T>
void reduce(warp& w, instruction const& i, lane_set active)
{
  std::uint64_t const* const from = w.lanes(i.slots[1]);
  auto total                      = value_of<T>(from[std::countr_zero(active)]);
  for_lanes(active & (active - 1),
            [&](unsigned l) { total = Function(total, value_of<T>(from[l])); });
  for_lanes(active, [&](unsigned l) { w.lanes(i.slots[0])[l] = bits_of<T>(total); });
}

enum class vote_for { all, any, ballot };

template <vote_for What>
void vote(warp& w, instruction const& i, lane_set active)
{
  std::uint64_t const* const from = w.lanes(i.slots[1]);
  lane_set yes                    = 0;
  for_lanes(active, [&](unsigned l) { yes |= static_cast<lane_set>(from[l] & 1) << l; });
  std::uint64_t const result = What == vote_for::ballot ? yes
                               : What == vote_for::any  ? yes != 0
                                                        : yes == active;
  for_lanes(active, [&](unsigned l) { w.lanes(i.slots[0])[l] = result; });
}

// d, a, b, c of tiles 16 x 16 and 16 x 8 of 16 bits; the sums are floats in four registers, or halves in two.
template <bool Bfloat16, bool ToHalf>
void multiply_tiles(warp& w, instruction const& i, lane_set active)
{
  if (active != all_lanes) { fail("a tile needs all lanes of its warp"); }
  constexpr unsigned words = ToHalf ? 2 : 4;
  auto const value_at      = [&](unsigned lane, unsigned word, unsigned place) {
    auto const bits =
      static_cast<std::uint16_t>(w.lanes(i.slots[words + word])[lane] >> (16 * place));
    return Bfloat16 ? bfloat16::value(bits) : half::value(bits);
  };
  std::array<values, words> sums{};
  for (unsigned l = 0; l < warp_lanes; ++l) {
    for (unsigned k = 0; k < 4; ++k) {
      std::uint64_t const c = w.lanes(i.slots[words + 6 + (ToHalf ? k / 2 : k)])[l];
      if constexpr (ToHalf) {
        double const start = half::value(static_cast<std::uint16_t>(c >> (16 * (k % 2))));
        double const sum   = tests::tile_element(l, k, start, value_at);
        sums[k / 2][l] |= std::uint64_t{half::round(static_cast<float>(sum))} << (16 * (k % 2));
      } else {
        double const sum = tests::tile_element(l, k, value_of<float>(c), value_at);
        sums[k][l]       = bits_of(static_cast<float>(sum));
      }
    }
  }
  for (unsigned k = 0; k < words; ++k) {
    std::copy(sums[k].begin(), sums[k].end(), w.lanes(i.slots[k]));
  }
}

// d of four registers, [a], or [a], s: register j of lane l is place l % 4 of the row that lane 8 j + l/4 points to.
template <access How>
void move_matrix(warp& w, instruction const& i, lane_set active)
{
  if (active != all_lanes) { fail("a matrix needs all lanes of its warp"); }
  constexpr bool loads = How == access::read;
  values const base    = copy(w.lanes(i.slots[loads ? 4 : 0]));
  for_lanes(active, [&](unsigned row) {
    std::uint64_t const address = base[row] + static_cast<std::uint64_t>(i.offset);
    std::byte* const at         = w.reach(i, row, address, 16, How);
    for (unsigned k = 0; k < 4; ++k) {
      std::uint64_t& lane = w.lanes(i.slots[(loads ? 0 : 1) + row / 8])[row % 8 * 4 + k];
      std::uint32_t word  = static_cast<std::uint32_t>(lane);
      if (loads) {
        std::memcpy(&word, at + 4 * k, 4);
        lane = word;
      } else {
        std::memcpy(at + 4 * k, &word, 4);
      }
    }
  });
}

void fence(warp& w, instruction const& i, lane_set active) { w.fence(i, active); }

void wait_for_kernel_before(warp& w, instruction const&, lane_set active)
{
  w.wait_for_kernel_before(active);
}

// The next kernel begins when this one has ended, as it may.
void let_next_begin(warp&, instruction const&, lane_set) {}

// Which lane it is is not said: here the last one.
void elect(warp& w, instruction const& i, lane_set active)
{
  auto const elected = 31U - static_cast<unsigned>(std::countl_zero(active));
  for_lanes(active, [&](unsigned l) {
    w.lanes(i.slots[0])[l] = elected;
    w.lanes(i.slots[1])[l] = l == elected;
  });
}

void trap(warp&, instruction const&, lane_set) { fail("the kernel gives up"); }

template <class T>
void add_reductions(operation_table& t, std::string const& type)
{
  auto const add_one = [&](std::string const& name, handler run) {
    t["redux.sync." + name + "." + type] = {.run = run, .form = "dsm", .then = flow::warp_exchange};
  };
  add_one("add",
          &reduce<[](T a, T b) { return static_cast<T>(std::uint32_t(a) + std::uint32_t(b)); }, T>);
  add_one("min", &reduce<[](T a, T b) { return std::min(a, b); }, T>);
  add_one("max", &reduce<[](T a, T b) { return std::max(a, b); }, T>);
}

}  // namespace

void add_warp_operations(operation_table& t)
{
  t["bra"]                              = {.form = "t", .then = flow::branch};
  t["bra.uni"]                          = {.form = "t", .then = flow::branch};
  t["ret"]                              = {.form = "", .then = flow::leave};
  t["exit"]                             = {.form = "", .then = flow::leave};
  t["trap"]                             = {.run = &trap, .form = ""};
  t["griddepcontrol.wait"]              = {.run = &wait_for_kernel_before, .form = ""};
  t["griddepcontrol.launch_dependents"] = {.run = &let_next_begin, .form = ""};
  t["bar.sync"]                         = {.form = "s", .then = flow::block_barrier};
  t["barrier.sync"]                     = t["bar.sync"];
  t["bar.warp.sync"]                    = {.form = "m", .then = flow::warp_barrier};
  for (auto const* const name : {"membar.cta",
                                 "membar.gl",
                                 "membar.sys",
                                 "fence.sc.sys",
                                 "fence.sc.gpu",
                                 "fence.acq_rel.cta",
                                 "fence.acq_rel.gpu",
                                 "fence.acq_rel.sys"}) {
    t[name] = {.run = &fence, .form = ""};
  }
  t["elect.sync"] = {.run = &elect, .form = "pm", .then = flow::warp_exchange};
  auto const exchange =
    [&](std::string const& name, std::string_view form, handler run, std::uint8_t count = 1) {
      t[name] = {.run = run, .form = form, .then = flow::warp_exchange, .count = count};
    };
  exchange("shfl.sync.bfly.b32", "psssm", &shuffle<shuffle_by::bfly>);
  exchange("shfl.sync.idx.b32", "psssm", &shuffle<shuffle_by::idx>);
  exchange("shfl.sync.up.b32", "psssm", &shuffle<shuffle_by::up>);
  exchange("shfl.sync.down.b32", "psssm", &shuffle<shuffle_by::down>);
  exchange("vote.sync.all.pred", "dsm", &vote<vote_for::all>);
  exchange("vote.sync.any.pred", "dsm", &vote<vote_for::any>);
  exchange("vote.sync.ballot.b32", "dsm", &vote<vote_for::ballot>);
  add_reductions<std::uint32_t>(t, "u32");
  add_reductions<std::int32_t>(t, "s32");
  // All lanes of the warp take part: these name no others.
  std::string const tiles = "mma.sync.aligned.m16n8k16.row.col.";
  exchange(tiles + "f32.f16.f16.f32", "DSSS", &multiply_tiles<false, false>, 4);
  exchange(tiles + "f32.bf16.bf16.f32", "DSSS", &multiply_tiles<true, false>, 4);
  exchange(tiles + "f16.f16.f16.f16", "DSSS", &multiply_tiles<false, true>, 2);
  std::string const matrix = "matrix.sync.aligned.m8n8.x4.shared.b16";
  t["ld" + matrix]         = {.run   = &move_matrix<access::read>,
                              .form  = "Da",
                              .then  = flow::warp_together,
                              .where = space::shared,
                              .count = 4,
                              .bytes = 4};
  t["st" + matrix]         = t["ld" + matrix];
  t["st" + matrix].run     = &move_matrix<access::write>;
  t["st" + matrix].form    = "aS";
  for (auto const* const types : {"f32.f16.f16.f32", "f32.bf16.bf16.f32", "f16.f16.f16.f16"}) {
    t[tiles + types].then = flow::warp_together;
  }
}

}  // namespace tersum::simulator
