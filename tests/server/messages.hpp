// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What every kind of messages must do: carry them whole and in order, and a parameter server with workers that leave.

#pragma once

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/quantize/cast.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum_server/parameter_server.hpp>
#include <tersum_server/parameter_worker.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace tersum::tests {

//! All ranks call it. Returns how much is wrong on this one.
template <message_transport Messages>
[[nodiscard]] int check_messages(Messages& over)
{
  using namespace std::chrono_literals;
  int failures      = 0;
  auto const expect = [&](bool good, char const* what) {
    if (good) { return; }
    ++failures;
    std::printf("messages, rank %d of %d: %s\n", over.rank(), over.size(), what);
  };
  int const me = over.rank(), ranks = over.size();
  // Of 0 bytes, of some, of more than goes out at once, of more than there is memory for; each says who sent it and which it is.
  std::size_t const lengths[]{0, 1, 1000, 3000000, 3000001, 5};
  for (int to = 0; to < ranks; ++to) {
    if (to == me) { continue; }
    for (std::size_t const bytes : lengths) {
      std::vector<std::byte> const message(bytes,
                                           static_cast<std::byte>(me + static_cast<int>(bytes)));
      expect(over.send(to, message).ok(), "a message was not sent");
    }
  }
  std::vector<std::byte> memory(3000000);
  std::vector<std::size_t> next(static_cast<std::size_t>(ranks));
  for (std::size_t left = static_cast<std::size_t>(ranks - 1) * std::size(lengths); left > 0;
       --left) {
    incoming what;
    bool const good = over.receive(memory, 60s, what).ok() && what.from >= 0 && what.from != me;
    expect(good, "a message did not come");
    if (!good) { return failures; }
    auto& which = next[static_cast<std::size_t>(what.from)];
    expect(what.bytes == lengths[which], "a message has another length, or came out of order");
    if (what.bytes > 0 && what.bytes <= memory.size()) {
      auto const want = static_cast<std::byte>(what.from + static_cast<int>(what.bytes));
      expect(memory[0] == want && memory[what.bytes - 1] == want, "a message holds something else");
    }
    ++which;
  }
  std::vector<std::byte> const none;
  expect(!over.send(ranks, none).ok(), "there is no such rank");
  expect(!over.send(-1, none).ok(), "there is no rank below 0");
  if (ranks == 1) {
    incoming what;
    expect(over.receive(memory, 1ms, what).ok() && what.from == -1, "nothing can come");
    return failures;
  }

  // A server; the last worker leaves after three of six steps. Values are such that means are exact.
  using halves      = codec<fixed_chunks<256>, no_rotation, cast<half>, publish>;
  int const workers = ranks - 1;
  std::vector<std::uint64_t> const sizes{700, 5};
  served_plan<halves> const plan{
    {}, {}, sizes, {.workers = workers, .seed = 1, .compress_from = 256, .most_coordinates = 512}};
  if (me == 0) {
    parameter_server<halves> server{plan, {.deadline = 60s, .threads = 2}};
    expect(server.serve(over).ok(), "the server failed");
    expect(server.counts().refused == 0, "the server refused a message");
    bool const alone = workers == 1;
    expect(server.counts().steps == (alone ? 9u : 18u), "the server made another number of means");
    for (int k = 0; k < workers; ++k) {
      expect(server.pushes(k).counted == (k == workers - 1 ? 9u : 18u), "pushes were not counted");
      expect(server.pushes(k).missing == 0, "pushes were missing");
    }
    return failures;
  }
  parameter_worker worker{plan, over, {.number = me - 1, .patience = 60s, .threads = 2}};
  for (int step = 0; step < (me == workers ? 3 : 6); ++step) {
    int const others = step < 3 ? workers : workers - 1;
    // Of each worker the sum of all numbers to `others`, plus as much as it is away from their mean.
    std::vector<std::vector<float>> held;
    for (std::uint64_t const size : sizes) {
      held.emplace_back(size, static_cast<float>(2 * me - others - 1 + 16 * (step + 1)));
    }
    std::vector<std::span<float>> const all(held.begin(), held.end());
    expect(worker.exchange(all).ok(), "an exchange failed");
    for (auto const& tensor : held) {
      for (float const v : tensor) {
        if (v == static_cast<float>(16 * (step + 1))) { continue; }
        expect(false, "a mean is another");
        break;
      }
    }
    expect(worker.counted(0) == static_cast<std::uint32_t>(others), "a mean is of other workers");
  }
  expect(worker.leave().ok(), "a worker cannot leave");
  return failures;
}

}  // namespace tersum::tests
