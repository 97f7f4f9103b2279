// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A function with a stack of its own, which can stop in the middle and be resumed.

#pragma once

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define TERSUM_EMULATOR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TERSUM_EMULATOR_ASAN 1
#endif
#endif

#if defined(TERSUM_EMULATOR_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tersum::emulator {

//! @brief A resumable function. One that is never resumed again is simply abandoned: nothing on its
//! stack is destroyed, and the next `start` reuses the stack.
//!
//! A stack is entered by setcontext, and changed by _longjmp, which asks the system for nothing. A function that ends leaves
//! its stack to the next one. AddressSanitizer takes a longjmp for the end of frames; under it, all changes are swapcontext's.
class fiber {
 public:
  fiber()
  {
    void* const memory = ::mmap(nullptr,
                                guard_bytes + stack_bytes,
                                PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                -1,
                                0);
    if (memory == MAP_FAILED) { throw std::bad_alloc{}; }
    mapping_ = static_cast<std::byte*>(memory);
    // The guard stays inaccessible, so that an overflow of the stack faults.
    if (::mprotect(stack(), stack_bytes, PROT_READ | PROT_WRITE) != 0) {
      ::munmap(mapping_, guard_bytes + stack_bytes);
      throw std::bad_alloc{};
    }
  }
  fiber(fiber const&)            = delete;
  fiber& operator=(fiber const&) = delete;
  ~fiber() { ::munmap(mapping_, guard_bytes + stack_bytes); }

  //! Makes the next `resume` call `function`, which must not throw.
  void start(std::function<void()> function)
  {
    function_ = std::move(function);
#if defined(TERSUM_EMULATOR_ASAN)
    __asan_unpoison_memory_region(stack(), stack_bytes);
    fake_stack_ = nullptr;
#else
    if (std::exchange(ended_, false)) { return; }
    entered_ = false;
#endif
    ::getcontext(&inside_);
    inside_.uc_link          = nullptr;
    inside_.uc_stack.ss_sp   = stack();
    inside_.uc_stack.ss_size = stack_bytes;
    ::makecontext(&inside_, &fiber::enter, 0);
    // ASan's swapcontext forgets the red zones of the stack that it finds here; only makecontext needs it.
    inside_.uc_stack = {};
  }

  //! Runs the function until it suspends or ends. Called from outside any fiber.
  void resume()
  {
    running_ = this;
#if defined(TERSUM_EMULATOR_ASAN)
    void* outer_fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&outer_fake_stack, stack(), stack_bytes);
    ::swapcontext(&outside_, &inside_);
    __sanitizer_finish_switch_fiber(outer_fake_stack, nullptr, nullptr);
#else
    if (_setjmp(outside_) != 0) { return; }
    if (std::exchange(entered_, true)) { _longjmp(stopped_, 1); }
    ::setcontext(&inside_);
#endif
  }

  //! Returns to the caller of `resume`. Called from inside this fiber.
  void suspend()
  {
#if defined(TERSUM_EMULATOR_ASAN)
    __sanitizer_start_switch_fiber(&fake_stack_, outer_stack_, outer_stack_bytes_);
    ::swapcontext(&inside_, &outside_);
    arrive();
#else
    if (_setjmp(stopped_) == 0) { _longjmp(outside_, 1); }
#endif
  }

 private:
  // Frames are large in unoptimized, sanitized builds. Only the pages that are touched exist.
  static constexpr std::size_t stack_bytes = 256 * 1024;
  static constexpr std::size_t guard_bytes = 64 * 1024;

  [[nodiscard]] std::byte* stack() const { return mapping_ + guard_bytes; }

  static void enter()
  {
    fiber& self = *running_;
#if defined(TERSUM_EMULATOR_ASAN)
    self.arrive();
    self.function_();
    __sanitizer_start_switch_fiber(nullptr, self.outer_stack_, self.outer_stack_bytes_);
    ::swapcontext(&self.inside_, &self.outside_);
#else
    // Whoever comes back after the end brings the next function.
    for (;;) {
      self.function_();
      self.ended_ = true;
      self.suspend();
    }
#endif
  }

#if defined(TERSUM_EMULATOR_ASAN)
  void arrive()
  {
    __sanitizer_finish_switch_fiber(fake_stack_, &outer_stack_, &outer_stack_bytes_);
  }
#endif

  static inline thread_local fiber* running_ = nullptr;

  std::byte* mapping_ = nullptr;
  std::function<void()> function_;
  ucontext_t inside_{};
#if !defined(TERSUM_EMULATOR_ASAN)
  bool entered_ = false;
  bool ended_   = false;  // and waits in `enter`
  jmp_buf stopped_{};
  jmp_buf outside_{};
#else
  ucontext_t outside_{};
  void* fake_stack_ = nullptr;
  void const* outer_stack_ = nullptr;
  std::size_t outer_stack_bytes_ = 0;
#endif
};

//! The fibers of one thread. A thread that ends leaves them to one that begins, so that stacks are made once.
class fibers_of_thread {
 public:
  fibers_of_thread()
  {
    std::scoped_lock const lock{of_all().mutex};
    auto& left = of_all().left;
    if (left.empty()) { left.emplace_back(); }
    own_.splice(own_.begin(), left, left.begin());
  }
  fibers_of_thread(fibers_of_thread const&)            = delete;
  fibers_of_thread& operator=(fibers_of_thread const&) = delete;
  ~fibers_of_thread()
  {
    std::scoped_lock const lock{of_all().mutex};
    of_all().left.splice(of_all().left.begin(), own_);
  }

  [[nodiscard]] std::deque<fiber>& at_least(std::size_t count)
  {
    auto& fibers = own_.front();
    while (fibers.size() < count) { fibers.emplace_back(); }
    return fibers;
  }

 private:
  struct shared {
    std::mutex mutex;
    std::list<std::deque<fiber>> left;
  };

  // It outlives all threads.
  [[nodiscard]] static shared& of_all()
  {
    static auto* const out = new shared;
    return *out;
  }

  std::list<std::deque<fiber>> own_;  // one element
};

//! At least `count` fibers, which are the calling thread's as long as it lives.
[[nodiscard]] inline std::deque<fiber>& fiber_pool(std::size_t count)
{
  static thread_local fibers_of_thread fibers;
  return fibers.at_least(count);
}

}  // namespace tersum::emulator
