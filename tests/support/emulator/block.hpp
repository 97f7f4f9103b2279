// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One thread block at a time: its threads as fibers, its barriers, its shared memory.

#pragma once

#include "failure.hpp"
#include "fiber.hpp"
#include "shared_memory.hpp"
#include "thread_order.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <random>
#include <sstream>
#include <type_traits>
#include <utility>
#include <vector>

namespace tersum::emulator {

//! The shape of a launch, as between `<<<` and `>>>`.
struct launch_shape {
  std::uint32_t blocks     = 1;
  unsigned threads         = 32;  //!< A multiple of 32, at most 1024.
  std::size_t shared_bytes = 0;
};

//! What a thread of the block is doing; from `sync_block` on, it waits for other threads.
enum class activity : unsigned char {
  runnable,
  exited,
  sync_block,
  sync_warp,
  shuffle_xor,
  shuffle,
  warp_sum,
  warp_max,
  multiply_tiles,
};

//! The words that a lane brings to `multiply_tiles`: its parts of the two factors.
using tile_operands = std::array<std::uint32_t, 6>;

//! @brief Runs the threads of a block and lets them wait for each other.
//!
//! A warp operation waits for the 32 lanes of the warp and for no other thread; `sync_block` waits
//! for every thread of the block that has not exited. When nobody can go on, `run` throws.
class block {
 public:
  static constexpr unsigned warp_threads = 32;
  static constexpr unsigned max_threads  = 1024;

  block(launch_shape shape, thread_order order)
    : shape_{shape}, random_{order.seed}, warps_{shape.threads / warp_threads, order, random_},
      lanes_{warp_threads, order, random_}, fibers_{fiber_pool(shape.threads)},
      threads_(shape.threads), shared_{shape.shared_bytes}
  {
  }

  //! @brief Runs `body(thread)` for every thread of the block `rank`.
  //! @throws failure if the block cannot go on; and whatever `body` throws.
  void run(std::uint32_t rank, std::function<void(unsigned)> const& body)
  {
    rank_ = rank;
    shared_.poison();
    runnable_ = shape_.threads;
    exited_   = 0;
    waiting_  = 0;
    for (unsigned thread = 0; thread < shape_.threads; ++thread) {
      threads_[thread].doing = activity::runnable;
      fibers_[thread].start([this, thread, &body] { run_thread(thread, body); });
    }
    while (exited_ < shape_.threads) {
      if (runnable_ == 0) { throw divergence(); }
      for (unsigned const warp : warps_.next()) {
        while (warps_.stays() && run_warp(warp)) {}
      }
    }
  }

  [[nodiscard]] launch_shape const& shape() const { return shape_; }
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] void* shared() const { return shared_.data(); }

  //! Waits, on behalf of `thread`, until every thread concerned does the same operation.
  void wait(unsigned thread, activity operation)
  {
    threads_[thread].doing = operation;
    --runnable_;
    if (operation == activity::sync_block) {
      ++waiting_;
      release_block();
    } else {
      release_warp(thread / warp_threads);
    }
    fibers_[thread].suspend();
  }

  //! @brief Gives `value` to the other lanes of the warp and returns the values of all 32, which
  //! hold until the thread's next warp operation.
  [[nodiscard]] std::uint32_t const* exchange(unsigned thread,
                                              activity operation,
                                              std::uint32_t value)
  {
    return exchange_through(slots_, thread, operation, value);
  }

  //! @brief The same with the operands of a product of tiles.
  [[nodiscard]] tile_operands const* exchange(unsigned thread,
                                              activity operation,
                                              tile_operands const& value)
  {
    return exchange_through(operand_slots_, thread, operation, value);
  }

  //! @brief Ends the whole block: `run` throws a failure that says "thread t of block b", then the
  //! parts. Works below noexcept functions as well.
  template <class... Parts>
  [[noreturn]] void fail(unsigned thread, Parts... parts)
  {
    // What is alive on this stack when it is abandoned would leak.
    static_assert((std::is_trivially_destructible_v<Parts> && ...));
    error_ =
      std::make_exception_ptr(make_failure("thread ", thread, " of block ", rank_, " ", parts...));
    fibers_[thread].suspend();
    std::terminate();  // not reached: nobody resumes this fiber
  }

 private:
  struct thread_state {
    activity doing   = activity::runnable;
    bool next_buffer = false;
  };
  template <class T>
  using buffers = std::array<std::array<T, max_threads>, 2>;

  template <class T>
  [[nodiscard]] T const* exchange_through(buffers<T>& slots,
                                          unsigned thread,
                                          activity operation,
                                          T const& value)
  {
    // Two buffers in turn: nobody writes one again before all lanes have come to the next
    // exchange, and so have read it.
    bool const buffer            = threads_[thread].next_buffer;
    threads_[thread].next_buffer = !buffer;
    slots[buffer][thread]        = value;
    wait(thread, operation);
    return &slots[buffer][thread / warp_threads * warp_threads];
  }

  void run_thread(unsigned thread, std::function<void(unsigned)> const& body)
  {
    try {
      body(thread);
    } catch (...) {
      error_ = std::current_exception();
    }
    threads_[thread].doing = activity::exited;
    --runnable_;
    ++exited_;
    release_block();
  }

  //! Lets every lane run that may; returns whether there was one.
  bool run_warp(unsigned warp)
  {
    bool ran = false;
    for (unsigned const lane : lanes_.next()) {
      unsigned const thread = warp * warp_threads + lane;
      if (threads_[thread].doing != activity::runnable) { continue; }
      ran = true;
      fibers_[thread].resume();
      if (error_) { std::rethrow_exception(std::exchange(error_, nullptr)); }
    }
    return ran;
  }

  void release(unsigned first, unsigned count, activity operation)
  {
    for (unsigned thread = first; thread < first + count; ++thread) {
      if (threads_[thread].doing != operation) { continue; }
      threads_[thread].doing = activity::runnable;
      ++runnable_;
    }
  }

  void release_block()
  {
    if (waiting_ + exited_ < shape_.threads) { return; }
    release(0, shape_.threads, activity::sync_block);
    waiting_ = 0;
  }

  void release_warp(unsigned warp)
  {
    unsigned const first     = warp * warp_threads;
    activity const operation = threads_[first].doing;
    for (unsigned thread = first; thread < first + warp_threads; ++thread) {
      if (threads_[thread].doing != operation) { return; }
    }
    release(first, warp_threads, operation);
  }

  [[nodiscard]] failure divergence() const
  {
    static constexpr std::array names{"can run",
                                      "exited",
                                      "at sync_block",
                                      "at sync_warp",
                                      "at shuffle_xor",
                                      "at shuffle",
                                      "at warp_sum",
                                      "at warp_max",
                                      "at multiply_tiles"};
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

  launch_shape shape_;
  std::mt19937_64 random_;
  visiting_order warps_;
  visiting_order lanes_;
  std::deque<fiber>& fibers_;
  std::vector<thread_state> threads_;
  buffers<std::uint32_t> slots_{};
  buffers<tile_operands> operand_slots_{};
  shared_memory shared_;
  std::uint32_t rank_ = 0;
  unsigned runnable_  = 0;
  unsigned exited_    = 0;
  unsigned waiting_   = 0;  // at sync_block
  std::exception_ptr error_;
};

}  // namespace tersum::emulator
