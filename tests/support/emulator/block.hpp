// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A thread block: its threads as fibers, its barriers, its shared memory. Blocks run one after the other, or together.

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
#include <random>
#include <type_traits>
#include <vector>

namespace tersum::emulator {

//! The shape of a launch, as between `<<<` and `>>>`.
struct launch_shape {
  std::uint32_t blocks     = 1;
  unsigned threads         = 32;  //!< A multiple of 32, at most 1024.
  std::size_t shared_bytes = 0;
};

class host_context;

//! A reference to a kernel body, which is callable with a `host_context&`.
class thread_body {
 public:
  template <class Body>
  thread_body(Body const& body) : body_{&body}, call_{&call<Body>}
  {
  }

  void operator()(host_context& context) const { call_(body_, context); }

 private:
  template <class Body>
  static void call(void const* body, host_context& context)
  {
    (*static_cast<Body const*>(body))(context);
  }

  void const* body_;
  void (*call_)(void const*, host_context&);
};

//! What a thread of the block is doing; from `sync_block` on, it waits for other threads.
enum class activity : unsigned char {
  runnable,
  exited,
  sync_block,
  wait_grid,
  sync_warp,
  shuffle_xor,
  shuffle,
  warp_sum,
  warp_max,
  multiply_tiles,
  move_matrix,
};

//! The words that a lane brings to `multiply_tiles`: its parts of the two factors.
using tile_operands = std::array<std::uint32_t, 6>;

//! @brief Counts the blocks that have come to the barrier of the grid, again and again.
class grid_barrier {
 public:
  explicit grid_barrier(std::uint32_t blocks) : blocks_{blocks} {}

  void arrive()
  {
    if (++arrived_ == blocks_) {
      arrived_ = 0;
      ++passed_;
    }
  }

  //! How many times all blocks have come.
  [[nodiscard]] std::uint32_t passed() const { return passed_; }

 private:
  std::uint32_t blocks_;
  std::uint32_t arrived_ = 0;
  std::uint32_t passed_  = 0;
};

//! @brief Runs the threads of a block and lets them wait for each other.
//!
//! A warp operation waits for the 32 lanes of the warp and for no other thread; `sync_block` waits
//! for every thread of the block that has not exited. When nobody can go on, `run` throws.
class block {
 public:
  static constexpr unsigned warp_threads = 32;
  static constexpr unsigned max_threads  = 1024;

  //! @param grid  Of blocks that run together: this one's fibers are those behind the ones of `before` others.
  block(launch_shape shape, thread_order order, grid_barrier* grid = nullptr, unsigned before = 0);

  //! @brief Runs `body` for every thread of the block `rank`.
  //! @throws failure if the block cannot go on; and whatever `body` throws.
  void run(std::uint32_t rank, thread_body body)
  {
    begin(rank, body);
    while (!ended()) { advance(); }
  }

  //! @name The same in pieces
  //! @{
  void begin(std::uint32_t rank, thread_body body);
  [[nodiscard]] bool ended() const { return exited_ == shape_.threads; }

  //! Whether a thread can go on, or none waits for the grid.
  [[nodiscard]] bool can_advance();

  //! Lets its warps run once.
  void advance();
  //! @}

  [[nodiscard]] launch_shape const& shape() const { return shape_; }
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] void* shared() const { return shared_.data(); }

  //! Waits, on behalf of `thread`, until every thread concerned does the same operation.
  void wait(unsigned thread, activity operation);

  //! @name The barrier of the grid
  //! @{
  //! Of all threads of the block. Returns how often this block has come, on behalf of each of them.
  [[nodiscard]] std::uint32_t arrive_grid(unsigned thread);
  //! Waits until all blocks have come so often.
  void wait_grid(unsigned thread, std::uint32_t arrival);
  //! @}

  //! @brief Gives `value` to the other lanes of the warp and returns those of all 32, until the thread's next warp operation.
  [[nodiscard]] std::uint32_t const* exchange(unsigned thread,
                                              activity operation,
                                              std::uint32_t value);

  //! @brief The same with the operands of a product of tiles.
  [[nodiscard]] tile_operands const* exchange(unsigned thread,
                                              activity operation,
                                              tile_operands const& value);

  //! @brief Ends the whole block: `run` throws "thread t of block b", then the parts. Works below noexcept functions as well.
  template <class... Parts>
  [[noreturn]] void fail(unsigned thread, Parts... parts)
  {
    // What is alive on this stack when it is abandoned would leak.
    static_assert((std::is_trivially_destructible_v<Parts> && ...));
    error_ =
      std::make_exception_ptr(make_failure("thread ", thread, " of block ", rank_, " ", parts...));
    own_fiber(thread).suspend();
    std::terminate();  // not reached: nobody resumes this fiber
  }

 private:
  struct thread_state {
    activity doing          = activity::runnable;
    bool next_buffer        = false;
    std::uint32_t arrivals  = 0;  // at the barrier of the grid
    std::uint32_t waits_for = 0;
  };
  template <class T>
  using buffers = std::array<std::array<T, max_threads>, 2>;

  template <class T>
  [[nodiscard]] T const* exchange_through(buffers<T>& slots,
                                          unsigned thread,
                                          activity operation,
                                          T const& value);

  [[nodiscard]] fiber& own_fiber(unsigned thread) { return fibers_[first_fiber_ + thread]; }

  void run_thread(unsigned thread, thread_body body);

  //! Lets every lane run that may; returns whether there was one.
  bool run_warp(unsigned warp);

  void release(unsigned first, unsigned count, activity operation);

  void release_block();

  void release_warp(unsigned warp);

  [[nodiscard]] failure divergence() const;

  launch_shape shape_;
  std::mt19937_64 random_;
  visiting_order warps_;
  visiting_order lanes_;
  std::deque<fiber>& fibers_;
  unsigned first_fiber_;
  grid_barrier* grid_;
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
