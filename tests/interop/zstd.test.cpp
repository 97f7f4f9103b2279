// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! zstd_transport: the conformance suite of transports around threads, what it saves, and messages that it must refuse.

#include <tersum/interop/zstd.hpp>
#include <tersum/single_process/loopback_transport.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <interop/conformance.hpp>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

using namespace tersum;

namespace {

// Calls body(transport) on so many threads, and adds up what they return.
template <class Body>
int on_all_ranks(int ranks, Body body)
{
  loopback_group group{ranks};
  std::atomic<int> sum = 0;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] { sum += body(loopback_transport{group, rank}); });
    }
  }
  return sum;
}

using bytes = std::vector<std::byte>;

// What rank `from` has: bytes at random, or mostly zeros, or zeros.
enum class content { random, sparse, zeros };
bytes make(std::size_t size, int from, content what)
{
  std::mt19937 random(static_cast<unsigned>(from) + 1);
  bytes out(size);
  for (std::byte& one : out) {
    bool const zero = what == content::zeros || (what == content::sparse && random() % 16 != 0);
    one             = zero ? std::byte{} : static_cast<std::byte>(random() % 256);
  }
  return out;
}

// The bytes that a rank sends to others in an all-to-all and in an all-gather must arrive.
template <class Over>
int exchange_blocks(Over const& over, std::size_t size, content what)
{
  int const n      = over.size();
  int const me     = over.rank();
  auto const ranks = static_cast<std::size_t>(n);
  rank_blocks const blocks{.count = size, .element_bytes = 1, .ranks = n};
  bytes const mine        = make(size, me, what);
  std::size_t const block = blocks.bytes(me);
  bytes received(block * ranks);
  int bad = over.all_to_all(mine.data(), blocks, received.data()).ok() ? 0 : 1;
  for (int from = 0; from < n; ++from) {
    bytes const theirs = make(size, from, what);
    bad += std::equal(received.begin() + static_cast<std::ptrdiff_t>(block) * from,
                      received.begin() + static_cast<std::ptrdiff_t>(block) * (from + 1),
                      theirs.begin() + static_cast<std::ptrdiff_t>(blocks.begin_byte(me)))
             ? 0
             : 1;
  }
  bytes all = mine;
  bad += over.all_gather(all.data(), blocks).ok() ? 0 : 1;
  for (int from = 0; from < n; ++from) {
    bytes const theirs = make(size, from, what);
    for (std::size_t i = 0; i < blocks.bytes(from); ++i) {
      bad += all[blocks.begin_byte(from) + i] == theirs[blocks.begin_byte(from) + i] ? 0 : 1;
    }
  }
  bytes arrived(size);
  bad +=
    over.send_receive((me + 1) % n, mine.data(), size, (me + n - 1) % n, arrived.data(), size).ok()
      ? 0
      : 1;
  bad += arrived == make(size, (me + n - 1) % n, what) ? 0 : 1;
  return bad;
}

// A transport of two ranks whose messages from another rank are what a test says.
struct hostile {
  std::uint64_t length;  // of a message
  bytes message;

  [[nodiscard]] int rank() const { return 0; }
  [[nodiscard]] int size() const { return 2; }
  [[nodiscard]] status check() const { return {}; }
  [[nodiscard]] status exchange_word(int, std::uint64_t, int, std::uint64_t& received) const
  {
    received = length;
    return {};
  }
  [[nodiscard]] status send_receive(
    int, std::byte const*, std::size_t, int, std::byte* received, std::size_t count) const
  {
    if (count == sizeof length) {
      std::memcpy(received, &length, sizeof length);
      return {};
    }
    for (std::size_t i = 0; i < count; ++i) {
      received[i] = i < message.size() ? message[i] : std::byte{};
    }
    return {};
  }
  [[nodiscard]] status all_to_all(std::byte const*, rank_blocks const&, std::byte* received) const
  {
    std::memcpy(received + sizeof length, &length, sizeof length);
    return {};
  }
  [[nodiscard]] status all_gather(std::byte* data, rank_blocks const&) const
  {
    std::memcpy(data + sizeof length, &length, sizeof length);
    return {};
  }
};

}  // namespace

TEST_CASE("[zstd] a transport in Zstandard carries every preset")
{
  for (int const ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    CHECK(on_all_ranks(ranks, [&](loopback_transport const& plain) {
            zstd_transport const over{plain};
            return tests::check_presets(tests::forget_type(over), ranks != 2);
          }) == 0);
  }
}

TEST_CASE("[zstd] ranks with unlike plans are all told so")
{
  CHECK(on_all_ranks(3, [](loopback_transport const& plain) {
          zstd_transport const over{plain};
          return tests::check_agreement(tests::forget_type(over));
        }) == 0);
}

TEST_CASE("[zstd] blocks of every size arrive, whether they shrink or not")
{
  for (int const ranks : {1, 2, 3, 4}) {
    for (std::size_t const size : {0, 1, 3, 63, 64, 65, 255, 256, 1021, 70'001}) {
      for (content const what : {content::random, content::sparse, content::zeros}) {
        CAPTURE(ranks);
        CAPTURE(size);
        CHECK(on_all_ranks(ranks, [&](loopback_transport const& plain) {
                zstd_transport const over{plain, size % 2 == 0 ? 1 : 9};
                return exchange_blocks(over, size, what);
              }) == 0);
      }
    }
  }
}

TEST_CASE("[zstd] what is sparse is sent in less, what is random in no more than its lengths")
{
  constexpr std::size_t size = 90'000;
  for (content const what : {content::random, content::sparse, content::zeros}) {
    int const bad = on_all_ranks(3, [&](loopback_transport const& plain) {
      zstd_transport const over{plain};
      int wrong = exchange_blocks(over, size, what);
      // Two blocks of a third to others, twice, and all of it once; a length with each.
      constexpr std::uint64_t given = 4 * (size / 3) + size;
      constexpr std::uint64_t told  = 5 * 8;
      wrong += over.bytes_given() == given ? 0 : 1;
      if (what == content::random) { wrong += over.bytes_sent() == given + told ? 0 : 1; }
      // A sixteenth of the bytes are not zero: .34 bits for where they are, and half a bit for what, are .84 of 8. It may
      // take twice that.
      if (what == content::sparse) { wrong += over.bytes_sent() < given / 5 ? 0 : 1; }
      if (what == content::zeros) { wrong += over.bytes_sent() < given / 500 ? 0 : 1; }
      return wrong;
    });
    CHECK(bad == 0);
  }
}

TEST_CASE("[zstd] messages of other ranks that are too long, or nothing of Zstandard's, are errors")
{
  bytes const plain = make(4096, 0, content::zeros);
  bytes packed(ZSTD_compressBound(plain.size()));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 1));
  bytes longer(ZSTD_compressBound(2 * plain.size()));
  bytes const twice(2 * plain.size());
  longer.resize(ZSTD_compress(longer.data(), longer.size(), twice.data(), twice.size(), 1));
  bytes shorter(ZSTD_compressBound(100));
  shorter.resize(ZSTD_compress(shorter.data(), shorter.size(), plain.data(), 100, 1));
  struct attempt {
    std::uint64_t length;
    bytes message;
    bool good;
  };
  for (auto const& [length, message, good] : {attempt{packed.size(), packed, true},
                                              attempt{plain.size(), plain, true},
                                              attempt{plain.size() + 1, plain, false},
                                              attempt{~std::uint64_t{0}, plain, false},
                                              attempt{0, {}, false},
                                              attempt{packed.size() - 1, packed, false},
                                              attempt{longer.size(), longer, false},
                                              attempt{shorter.size(), shorter, false},
                                              attempt{300, make(300, 1, content::random), false}}) {
    CAPTURE(length);
    hostile const others{length, message};
    zstd_transport const over{others};
    bytes to(2 * plain.size());
    rank_blocks const blocks{.count = 2 * plain.size(), .element_bytes = 1, .ranks = 2};
    for (status const& s : {over.send_receive(1, plain.data(), plain.size(), 1, to.data(), 4096),
                            over.all_to_all(twice.data(), blocks, to.data()),
                            over.all_gather(to.data(), blocks)}) {
      CHECK(s.code == (good ? error_code::ok : error_code::transport_failed));
      CHECK(s.message.empty() == good);
    }
  }
}

TEST_CASE("[zstd] a level that Zstandard does not know is named")
{
  loopback_group group{1};
  loopback_transport const plain{group, 0};
  CHECK(zstd_transport{plain, ZSTD_maxCLevel()}.check().ok());
  status const s = zstd_transport{plain, ZSTD_maxCLevel() + 1}.check();
  CHECK(s.code == error_code::invalid_argument);
  CHECK(s.message.find("level") != std::string_view::npos);
}
