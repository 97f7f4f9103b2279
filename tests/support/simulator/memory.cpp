// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What is allocated, and what is written.

#include "fault.hpp"
#include "memory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>

namespace tersum::simulator {

namespace {

constexpr std::align_val_t alignment{256};

constexpr unsigned warp_of(unsigned thread) { return thread / 32; }

constexpr std::size_t most_threads = 1024;  // of a block

}  // namespace

allocation::allocation(std::size_t bytes, memory_kind kind)
  : data_{static_cast<std::byte*>(::operator new(bytes, alignment))}, bytes_{bytes}, kind_{kind}
{
  if (kind == memory_kind::device) {
    std::memset(data_.get(), 0xCD, bytes);
    written_ = std::make_unique<std::uint8_t[]>(bytes);
  }
}

void allocation::release::operator()(std::byte* p) const { ::operator delete(p, alignment); }

void allocation::mark_written(std::uint64_t address, std::size_t bytes) const
{
  if (written_) { std::memset(written_.get() + (address - begin()), 1, bytes); }
}

void allocation::mark_written_by_host(std::uint64_t address, std::size_t bytes) const
{
  mark_written(address, bytes);
  std::lock_guard const lock{access_notes::guard};
  if (notes_) { notes_->forget(address - begin(), bytes); }
}

global_memory& global_memory::get()
{
  static global_memory* const one = new global_memory;  // outlives what frees at exit
  return *one;
}

void* global_memory::allocate(std::size_t bytes, memory_kind kind)
{
  try {
    allocation made{bytes, kind};
    std::uint64_t const at = made.begin();
    std::lock_guard const lock{guard_};
    allocations_.emplace(at, std::move(made));
    return reinterpret_cast<void*>(at);
  } catch (std::bad_alloc const&) {
    return nullptr;
  }
}

bool global_memory::free(void const* address)
{
  std::lock_guard const lock{guard_};
  ++generation_;
  return allocations_.erase(reinterpret_cast<std::uint64_t>(address)) == 1;
}

allocation const* global_memory::find(std::uint64_t address) const
{
  std::shared_lock const lock{guard_};
  auto const after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) { return nullptr; }
  allocation const& before = std::prev(after)->second;
  return before.holds(address, 1) ? &before : nullptr;
}

std::uint64_t global_memory::reserve(std::size_t places)
{
  std::lock_guard const lock{guard_};
  std::uint64_t const first = next_mapping_;
  next_mapping_ += places + 1;  // what lies behind the last one is nothing
  return first << 32;
}

void global_memory::map(std::uint64_t place, void* memory)
{
  std::lock_guard const lock{guard_};
  mapped_[place >> 32] = reinterpret_cast<std::uint64_t>(memory);
}

void global_memory::unmap(std::uint64_t place)
{
  std::lock_guard const lock{guard_};
  mapped_.erase(place >> 32);
}

std::uint64_t global_memory::behind_mapping(std::uint64_t address) const
{
  if (address < mapped_window) { return address; }
  std::shared_lock const lock{guard_};
  auto const found = mapped_.find(address >> 32);
  if (found == mapped_.end()) {
    fail("accesses global memory at 0x", std::hex, address, ", where nothing is mapped");
  }
  return found->second + (address & 0xffffffff);
}

shared_memory::shared_memory(std::size_t bytes, unsigned granule, bool copied)
  : data_(bytes, std::byte{0xCD}),
    records_((bytes + granule - 1) / granule), shift_{static_cast<unsigned>(
                                                 std::countr_zero(granule))},
    hidden_(copied ? most_threads : 0)
{
}

void shared_memory::read(std::uint64_t address, std::size_t bytes, access_time when)
{
  std::uint64_t const begin = (address - first) >> shift_;
  std::uint64_t const end   = (address - first + bytes - 1) >> shift_;
  for (std::uint64_t i = begin; i <= end; ++i) {
    record& r = records_[i];
    if (r.write_epoch < first_epoch_) { fail("reads shared memory that nobody has written"); }
    bool const same_warp = warp_of(r.writer) == warp_of(when.thread);
    if (r.write_epoch == when.epoch && r.writer != when.thread &&
        (!same_warp || r.write_turn == when.turn)) {
      fail("reads shared memory that thread ",
           r.writer,
           " wrote with no barrier between: a race",
           same_warp ? " within the warp" : "");
    }
    if (r.read_epoch != when.epoch) {
      r.read_epoch = when.epoch;
      r.read_turn  = when.turn;
      r.reader     = when.thread;
      r.lanes_read = r.warps_read = false;
    } else if (warp_of(r.reader) != warp_of(when.thread)) {
      r.warps_read = true;
    } else if (r.read_turn != when.turn) {
      r.read_turn  = when.turn;
      r.reader     = when.thread;
      r.lanes_read = false;
    } else if (r.reader != when.thread) {
      r.lanes_read = true;
    }
  }
}

void shared_memory::write(std::uint64_t address, std::size_t bytes, access_time when, bool update)
{
  std::uint64_t const begin = (address - first) >> shift_;
  std::uint64_t const end   = (address - first + bytes - 1) >> shift_;
  for (copy const& c : copies_) {
    if (address < c.address + c.bytes && c.address < address + bytes) {
      fail("writes shared memory that a copy of thread ", c.thread, " still reads");
    }
  }
  for (std::uint64_t i = begin; i <= end; ++i) {
    record& r = records_[i];
    r.shown   = false;
    if (!hidden_.empty()) { hidden_[when.thread].push_back(static_cast<std::uint32_t>(i)); }
    if (update && r.write_epoch < first_epoch_) {
      fail("updates shared memory that nobody has written");
    }
    if (r.write_epoch == when.epoch && r.writer != when.thread && !(update && r.updated) &&
        (warp_of(r.writer) != warp_of(when.thread) || r.write_turn == when.turn)) {
      fail("writes shared memory that thread ", r.writer, " wrote with no barrier between: a race");
    }
    if (r.read_epoch == when.epoch &&
        (r.warps_read || warp_of(r.reader) != warp_of(when.thread) ||
         (r.read_turn == when.turn && (r.lanes_read || r.reader != when.thread)))) {
      fail("writes shared memory that thread ", r.reader, " read with no barrier between: a race");
    }
    if (update && r.write_epoch == when.epoch && !r.updated) {
      continue;
    }  // still for others to see
    r.write_epoch = when.epoch;
    r.write_turn  = when.turn;
    r.writer      = when.thread;
    r.updated     = update;
  }
}

void shared_memory::show(access_time when)
{
  if (hidden_.empty()) { return; }
  for (std::uint32_t const i : hidden_[when.thread]) {
    record& r = records_[i];
    if (r.writer != when.thread) { continue; }
    r.shown      = true;
    r.show_epoch = when.epoch;
    r.show_turn  = when.turn;
  }
  hidden_[when.thread].clear();
}

void shared_memory::begin_copy(std::uint64_t address, std::size_t bytes, access_time when)
{
  read(address, bytes, when);
  std::uint64_t const begin = (address - first) >> shift_;
  std::uint64_t const end   = (address - first + bytes - 1) >> shift_;
  for (std::uint64_t i = begin; i <= end; ++i) {
    record const& r = records_[i];
    if (!r.shown) {
      fail("copies shared memory that thread ",
           r.writer,
           " wrote with no fence of the proxy behind it");
    }
    bool const same_warp = warp_of(r.writer) == warp_of(when.thread);
    if (r.show_epoch == when.epoch && r.writer != when.thread &&
        (!same_warp || r.show_turn == when.turn)) {
      fail("copies shared memory, with no barrier behind the fence of thread ", r.writer);
    }
  }
  copies_.push_back({address, bytes, when.thread});
}

void shared_memory::end_copy(std::uint64_t address, std::size_t bytes, access_time when)
{
  auto const at = std::find_if(copies_.begin(), copies_.end(), [&](copy const& c) {
    return c.address == address && c.bytes == bytes && c.thread == when.thread;
  });
  copies_.erase(at);
  read(address, bytes, when);
}

}  // namespace tersum::simulator
