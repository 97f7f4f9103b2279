// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Threads that do jobs.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tersum::inline v0::detail {

//! @brief Does jobs on threads of its own, in no order. Each job has a number, and is told once it is done.
class job_threads {
 public:
  explicit job_threads(int threads)
  {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { work(); });
    }
  }
  job_threads(job_threads const&)            = delete;
  job_threads& operator=(job_threads const&) = delete;
  //! All jobs are done first.
  ~job_threads()
  {
    {
      std::scoped_lock const lock{mutex_};
      ends_ = true;
    }
    some_.notify_all();
  }

  void start(std::size_t number, std::function<void()> job)
  {
    {
      std::scoped_lock const lock{mutex_};
      waiting_.emplace_back(number, std::move(job));
      ++under_way_;
    }
    some_.notify_one();
  }

  //! The numbers of jobs that have been done since it was asked last.
  [[nodiscard]] std::vector<std::size_t> done()
  {
    std::scoped_lock const lock{mutex_};
    return std::exchange(done_, {});
  }

  //! Waits until no job is waiting or being done.
  void finish()
  {
    std::unique_lock lock{mutex_};
    idle_.wait(lock, [this] { return under_way_ == 0; });
  }

  //! Waits until a job is done of which done() has not told, or none is under way.
  void wait_for_one()
  {
    std::unique_lock lock{mutex_};
    idle_.wait(lock, [this] { return under_way_ == 0 || !done_.empty(); });
  }

 private:
  void work()
  {
    std::unique_lock lock{mutex_};
    while (true) {
      some_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
      if (waiting_.empty()) { return; }
      auto const job = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      job.second();
      lock.lock();
      done_.push_back(job.first);
      --under_way_;
      idle_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable some_, idle_;
  std::deque<std::pair<std::size_t, std::function<void()>>> waiting_;
  std::vector<std::size_t> done_;
  std::size_t under_way_ = 0;
  bool ends_             = false;
  std::vector<std::jthread> threads_;  // the last member: they end before the rest does
};

}  // namespace tersum::inline v0::detail
