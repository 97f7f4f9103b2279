// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! How the threads of a block take turns: compiled once, with optimization, as nearly all the time of a kernel is spent here.

#include "../emulator.hpp"

#include <array>
#include <random>
#include <sstream>
#include <utility>

namespace tersum::emulator {

block::block(launch_shape shape, thread_order order, grid_barrier* grid, unsigned before)
  : shape_{shape}, random_{order.seed + before}, warps_{shape.threads / warp_threads,
                                                        order,
                                                        random_},
    lanes_{warp_threads, order, random_}, fibers_{fiber_pool(std::size_t{shape.threads} *
                                                             (before + 1))},
    first_fiber_{shape.threads * before}, grid_{grid},
    threads_(shape.threads), shared_{shape.shared_bytes}
{
}

void block::begin(std::uint32_t rank, thread_body body)
{
  rank_ = rank;
  shared_.poison();
  runnable_ = shape_.threads;
  exited_   = 0;
  waiting_  = 0;
  for (unsigned thread = 0; thread < shape_.threads; ++thread) {
    threads_[thread].doing = activity::runnable;
    own_fiber(thread).start([this, thread, body] { run_thread(thread, body); });
  }
}

bool block::can_advance()
{
  bool waits = false;
  for (auto& thread : threads_) {
    if (thread.doing != activity::wait_grid) { continue; }
    if (thread.waits_for <= grid_->passed()) {
      thread.doing = activity::runnable;
      ++runnable_;
    } else {
      waits = true;
    }
  }
  return runnable_ > 0 || (!waits && !ended());
}

void block::advance()
{
  if (runnable_ == 0) { throw divergence(); }
  for (unsigned const warp : warps_.next()) {
    while (warps_.stays() && run_warp(warp)) {}
  }
}

std::uint32_t block::arrive_grid(unsigned thread)
{
  if (grid_ == nullptr) {
    fail(thread, "waits for other blocks, which run one after the other in this launch");
  }
  wait(thread, activity::sync_block);
  if (thread == 0) { grid_->arrive(); }
  return ++threads_[thread].arrivals;
}

void block::wait_grid(unsigned thread, std::uint32_t arrival)
{
  if (grid_->passed() < arrival) {
    threads_[thread].waits_for = arrival;
    wait(thread, activity::wait_grid);
  }
  wait(thread, activity::sync_block);
}

void block::wait(unsigned thread, activity operation)
{
  threads_[thread].doing = operation;
  --runnable_;
  if (operation == activity::sync_block) {
    ++waiting_;
    release_block();
  } else if (operation != activity::wait_grid) {
    release_warp(thread / warp_threads);
  }
  own_fiber(thread).suspend();
}

template <class T>
T const* block::exchange_through(buffers<T>& slots,
                                 unsigned thread,
                                 activity operation,
                                 T const& value)
{
  // Two buffers in turn: nobody writes one again before all lanes have come to the next exchange, and so have read it.
  bool const buffer            = threads_[thread].next_buffer;
  threads_[thread].next_buffer = !buffer;
  slots[buffer][thread]        = value;
  wait(thread, operation);
  return &slots[buffer][thread / warp_threads * warp_threads];
}

std::uint32_t const* block::exchange(unsigned thread, activity operation, std::uint32_t value)
{
  return exchange_through(slots_, thread, operation, value);
}

tile_operands const* block::exchange(unsigned thread,
                                     activity operation,
                                     tile_operands const& value)
{
  return exchange_through(operand_slots_, thread, operation, value);
}

void block::run_thread(unsigned thread, thread_body body)
{
  try {
    host_context context{*this, thread};
    body(context);
  } catch (...) {
    error_ = std::current_exception();
  }
  threads_[thread].doing = activity::exited;
  --runnable_;
  ++exited_;
  release_block();
}

bool block::run_warp(unsigned warp)
{
  bool ran = false;
  for (unsigned const lane : lanes_.next()) {
    unsigned const thread = warp * warp_threads + lane;
    if (threads_[thread].doing != activity::runnable) { continue; }
    ran = true;
    own_fiber(thread).resume();
    if (error_) { std::rethrow_exception(std::exchange(error_, nullptr)); }
  }
  return ran;
}

void block::release(unsigned first, unsigned count, activity operation)
{
  for (unsigned thread = first; thread < first + count; ++thread) {
    if (threads_[thread].doing != operation) { continue; }
    threads_[thread].doing = activity::runnable;
    ++runnable_;
  }
}

void block::release_block()
{
  if (waiting_ + exited_ < shape_.threads) { return; }
  release(0, shape_.threads, activity::sync_block);
  waiting_ = 0;
}

void block::release_warp(unsigned warp)
{
  unsigned const first     = warp * warp_threads;
  activity const operation = threads_[first].doing;
  for (unsigned thread = first; thread < first + warp_threads; ++thread) {
    if (threads_[thread].doing != operation) { return; }
  }
  release(first, warp_threads, operation);
}

failure block::divergence() const
{
  static constexpr std::array names{"can run",
                                    "exited",
                                    "at sync_block",
                                    "at wait_grid",
                                    "at sync_warp",
                                    "at shuffle_xor",
                                    "at shuffle",
                                    "at warp_sum",
                                    "at warp_max",
                                    "at multiply_tiles",
                                    "at a matrix in shared memory"};
  std::array<unsigned, names.size()> counts{};
  std::array<unsigned, names.size()> firsts{};
  for (unsigned thread = shape_.threads; thread-- > 0;) {
    auto const doing = static_cast<std::size_t>(threads_[thread].doing);
    ++counts[doing];
    firsts[doing] = thread;
  }
  std::ostringstream list;
  for (std::size_t doing = 0; doing < names.size(); ++doing) {
    if (counts[doing] == 0) { continue; }
    list << (list.tellp() > 0 ? ", " : "") << counts[doing] << " " << names[doing]
         << " (first: thread " << firsts[doing] << ")";
  }
  return make_failure("the threads of block ", rank_, " diverged: ", list.str());
}

namespace {

void check_shape(launch_shape const& shape)
{
  if (shape.threads == 0 || shape.threads > block::max_threads ||
      shape.threads % block::warp_threads != 0) {
    throw make_failure("a block needs a multiple of 32 threads, at most 1024, not ", shape.threads);
  }
  if (shape.shared_bytes > max_shared_bytes) {
    throw make_failure(
      "a block has at most 227 KiB of shared memory, not ", shape.shared_bytes, " bytes");
  }
}

}  // namespace

void launch(launch_shape shape, thread_order order, thread_body body)
{
  check_shape(shape);
  block current{shape, order};
  std::mt19937_64 random{order.seed};
  visiting_order ranks{shape.blocks, order, random};
  for (unsigned const rank : ranks.next()) { current.run(rank, body); }
}

void launch_together(launch_shape shape, thread_order order, thread_body body)
{
  check_shape(shape);
  if (std::uint64_t{shape.blocks} * shape.threads > max_resident_threads) {
    throw make_failure(shape.blocks,
                       " blocks of ",
                       shape.threads,
                       " threads are not resident together: at most ",
                       max_resident_threads,
                       " threads are");
  }
  grid_barrier barrier{shape.blocks};
  std::deque<block> blocks;
  for (unsigned rank = 0; rank < shape.blocks; ++rank) {
    blocks.emplace_back(shape, order, &barrier, rank).begin(rank, body);
  }
  std::mt19937_64 random{order.seed};
  visiting_order ranks{shape.blocks, order, random};
  for (std::uint32_t ended = 0; ended < shape.blocks;) {
    bool moved = false;
    for (unsigned const rank : ranks.next()) {
      block& next = blocks[rank];
      // As far ahead of the others as the barrier allows; in a shuffled order only now and then.
      while (!next.ended() && next.can_advance()) {
        moved = true;
        next.advance();
        if (next.ended()) { ++ended; }
        if (!ranks.stays()) { break; }
      }
    }
    if (!moved && ended < shape.blocks) {
      throw make_failure("a deadlock: ",
                         shape.blocks - ended,
                         " blocks wait for the others of ",
                         shape.blocks,
                         ", which have ended");
    }
  }
}

}  // namespace tersum::emulator
