// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Workers of a parameter server that were late, have lost messages or were restarted, by a clock of the test's own.

#include "support/codecs.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/feedback/decayed_feedback.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum_server/loopback_messages.hpp>
#include <tersum_server/parameter_server.hpp>
#include <tersum_server/parameter_worker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <tuple>
#include <vector>

using namespace tersum;
using namespace std::chrono_literals;

namespace {

using clan       = tests::rotated_codes<256, lloyd_max<1>, publish, decayed_feedback>;
using time_point = std::chrono::steady_clock::time_point;

// The time of the clock of all tests here, which one thread at a time reads and sets.
std::atomic<time_point> present_time{};
[[nodiscard]] time_point now() { return present_time; }

// Ranks in threads, one of which runs at a time: the next one with a message or at its time. If there is none, the clock goes on to the
// first of their times. So a run does not depend on the machine, and waiting takes no time.
class turns {
 public:
  explicit turns(loopback_post& post) : post_(&post), ranks_(static_cast<std::size_t>(post.ranks()))
  {
    present_time = time_point{};
  }

  void begin(int rank)
  {
    std::unique_lock lock{mutex_};
    changes_.wait(lock, [&] { return turn_ == rank; });
  }
  void end(int rank)
  {
    std::scoped_lock const lock{mutex_};
    ranks_[static_cast<std::size_t>(rank)].is_over = true;
    pass(rank);
  }
  // Until so much later, or until there is a message, if it hears those.
  void wait(int rank, std::chrono::microseconds time, bool hears)
  {
    std::unique_lock lock{mutex_};
    auto& mine = ranks_[static_cast<std::size_t>(rank)];
    mine.wakes = now() + time;
    mine.hears = hears;
    pass(rank);
    changes_.wait(lock, [&] { return turn_ == rank; });
  }

 private:
  struct waiting {
    time_point wakes{};
    bool hears = false, is_over = false;
  };

  void pass(int from)
  {
    for (bool found = false; !found;) {
      auto first = time_point::max();
      for (int i = 1; i <= post_->ranks() && !found; ++i) {
        int const rank      = (from + i) % post_->ranks();
        waiting const& each = ranks_[static_cast<std::size_t>(rank)];
        if (each.is_over) { continue; }
        found = each.wakes <= now() || (each.hears && post_->queue(rank).waiting() > 0);
        if (found) { turn_ = rank; }
        first = std::min(first, each.wakes);
      }
      if (first == time_point::max()) { break; }  // all are over
      if (!found) { present_time = first; }
    }
    changes_.notify_all();
  }

  loopback_post* post_;
  std::mutex mutex_;
  std::condition_variable changes_;
  std::vector<waiting> ranks_;
  int turn_ = 0;
};

// Messages of a rank that waits by the clock of the test.
class timed_messages {
 public:
  timed_messages(loopback_post& post, turns& all, int rank)
    : over_(post, rank), post_(&post), all_(&all)
  {
  }

  [[nodiscard]] int rank() const noexcept { return over_.rank(); }
  [[nodiscard]] int size() const noexcept { return over_.size(); }
  [[nodiscard]] status check() const noexcept { return over_.check(); }
  [[nodiscard]] status send(int to, std::span<std::byte const> message) const
  {
    return over_.send(to, message);
  }
  [[nodiscard]] status receive(std::span<std::byte> memory,
                               std::chrono::microseconds patience,
                               incoming& what) const
  {
    // So little patience has who looks for its threads' work meanwhile: that takes no time of the clock, and comes before messages.
    if (patience < 1ms) {
      std::this_thread::sleep_for(50us);
      what = {};
      return {};
    }
    if (post_->queue(rank()).waiting() == 0) { all_->wait(rank(), patience, true); }
    return over_.receive(memory, 0us, what);
  }

 private:
  loopback_messages over_;
  loopback_post* post_;
  turns* all_;
};
static_assert(message_transport<timed_messages>);

constexpr int workers = 3;

// What became of an exchange of a worker: how many pieces are in their means, and whether it failed.
struct exchanged {
  std::uint64_t in_mean;
  bool ok;
};
struct outcome {
  std::vector<exchanged> exchanges[workers];
  std::uint64_t last_step[workers];
  std::vector<push_counts> pushes;
};

// An exchange of each worker takes 10 ms of computing. Worker 1 stops for 2.6 s before one of them, worker 2 is made anew before another.
[[nodiscard]] outcome run(loopback_post::judge fate,
                          int steps,
                          int stopped_before,
                          int restarted_before)
{
  std::vector<std::uint64_t> const sizes{300, 7, 600};
  served_plan<clan> const plan{
    {}, {}, sizes, {.workers = workers, .seed = 5, .compress_from = 256, .most_coordinates = 512}};
  loopback_post post{workers + 1, std::move(fate)};
  turns all{post};
  outcome out{};
  status served;
  {
    std::vector<std::jthread> ranks;
    ranks.emplace_back([&] {
      all.begin(0);
      timed_messages over{post, all, 0};
      parameter_server<clan> serving{plan, {.now = now}};
      served = serving.serve(over);
      for (int k = 0; k < workers; ++k) { out.pushes.push_back(serving.pushes(k)); }
      all.end(0);
    });
    for (int k = 0; k < workers; ++k) {
      ranks.emplace_back([&, k] {
        all.begin(k + 1);
        timed_messages over{post, all, k + 1};
        using worker    = parameter_worker<clan, clan, timed_messages>;
        auto const anew = [&] {
          return std::make_unique<worker>(plan, over, worker_options{.number = k, .now = now});
        };
        auto working = anew();
        auto& mine   = out.exchanges[k];
        for (int step = 0; step < steps; ++step) {
          all.wait(k + 1, k == 1 && step == stopped_before ? 2600ms : 10ms, false);
          if (k == 2 && step == restarted_before) { working = anew(); }
          std::vector<std::vector<float>> in;
          for (std::uint64_t const size : sizes) {
            in.push_back(
              tests::normal_gradients(1, size, static_cast<unsigned>(step * workers + k))[0]);
          }
          std::vector<std::span<float>> const gradients(in.begin(), in.end());
          auto const before = working->counts();
          bool const ok     = working->exchange(gradients).ok();
          auto const after  = working->counts();
          mine.push_back(
            {after.answered - after.left_out - (before.answered - before.left_out), ok});
        }
        out.last_step[k] = working->step();
        CHECK(working->leave() == status{});
        all.end(k + 1);
      });
    }
  }
  CHECK(served == status{});
  return out;
}

}  // namespace

TEST_CASE("[server] a worker that stopped and one that was restarted take part in the next step")
{
  constexpr std::uint64_t pieces = 4;
  int const steps = 12, stopped = 3, restarted = 8;
  auto const out = run({}, steps, stopped, restarted);
  for (int k = 0; k < workers; ++k) {
    for (int step = 0; step < steps; ++step) {
      exchanged const each = out.exchanges[k][static_cast<std::size_t>(step)];
      // Two deadlines of 1 s pass while worker 1 stops, so that its mean is gone; worker 2 begins with step 0.
      bool const is_out = (k == 1 && step == stopped) || (k == 2 && step == restarted);
      CAPTURE(k);
      CAPTURE(step);
      CHECK(each.ok == !is_out);
      CHECK(each.in_mean == (is_out ? 0 : pieces));
    }
  }
  // Worker 1 has missed two steps more. Worker 2 is told step 8, which waits for it, after an exchange in vain.
  CHECK(out.last_step[0] == steps);
  CHECK(out.last_step[1] == steps + 1);
  CHECK(out.last_step[2] == steps - 1);
}

TEST_CASE("[server] with a tenth of all messages lost nobody is out for more than two steps")
{
  for (std::uint64_t const seed : {1u, 2u, 3u}) {
    // Whether a message is lost depends on what it is and how often it was sent, not on when.
    std::map<std::tuple<int, int, message_kind, std::uint32_t, std::uint64_t>, std::uint64_t> sent;
    auto const fate = [&](int from, int to, std::span<std::byte const> message) {
      message_header h;
      CHECK(read_header(message, h) == status{});
      std::uint64_t hash = seed;
      for (std::uint64_t const part : {static_cast<std::uint64_t>(from * 16 + to),
                                       static_cast<std::uint64_t>(h.kind),
                                       std::uint64_t{h.piece},
                                       h.step,
                                       sent[{from, to, h.kind, h.piece, h.step}]++}) {
        hash = detail::mix(hash, part);
      }
      bool const lost = (hash >> 40) % 10 == 0 && h.kind != message_kind::leave;
      return lost ? delivery::never : delivery::now;
    };
    int const steps = 40, stopped = 10, restarted = 25;
    auto const out = run(fate, steps, stopped, restarted);
    CAPTURE(seed);
    for (int k = 0; k < workers; ++k) {
      CAPTURE(k);
      int out_for = 0, longest = 0;
      for (exchanged const& each : out.exchanges[k]) {
        out_for = each.in_mean > 0 ? 0 : out_for + 1;
        longest = std::max(longest, out_for);
      }
      CHECK(longest <= 2);
      // Of 160 pushes a tenth is lost, and another one is late by what else was.
      CHECK(out.pushes[static_cast<std::size_t>(k)].counted > 120);
    }
  }
}
