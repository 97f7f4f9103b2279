// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The emulator on kernel bodies whose result is obvious, and on bodies with a known mistake.

#include "emulator.hpp"

#include <tersum/types.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace emulator = tersum::emulator;
using emulator::host_context;
using emulator::launch;

using words = std::vector<std::uint32_t>;

constexpr std::uint32_t poison = 0xFFFFFFFFU;

// The sentence with which a launch of one block fails; empty if it does not.
template <class Body>
std::string failure_of(emulator::launch_shape shape, emulator::thread_order order, Body const& body)
{
  try {
    launch(shape, order, body);
  } catch (emulator::failure const& error) {
    return error.what();
  }
  return {};
}

bool contains(std::string const& text, std::string const& part)
{
  return text.find(part) != std::string::npos;
}

// Reverses the words 0 .. threads - 1 through shared memory; `barrier` is what stands between the stores and the loads.
template <class Barrier>
words reversed_through_shared(unsigned threads,
                              emulator::thread_order order,
                              Barrier const& barrier)
{
  words out(threads);
  launch({.threads = threads, .shared_bytes = threads * sizeof(std::uint32_t)},
         order,
         [&](host_context& ctx) {
           auto* const shared = static_cast<std::uint32_t*>(ctx.shared());
           ctx.store(shared + ctx.thread_rank(), std::uint32_t{ctx.thread_rank()});
           barrier(ctx);
           out[ctx.thread_rank()] = ctx.load(shared + threads - 1 - ctx.thread_rank());
         });
  return out;
}

words descending(unsigned count)
{
  words result(count);
  std::iota(result.rbegin(), result.rend(), 0U);
  return result;
}

TEST_CASE("[emulator] the order of blocks and threads is the one asked for")
{
  auto const trace = [](emulator::thread_order order) {
    words ranks;
    launch({.blocks = 4, .threads = 64}, order, [&](host_context& ctx) {
      ranks.push_back(ctx.block_rank() * 64 + ctx.thread_rank());
    });
    return ranks;
  };
  words ascending(4 * 64);
  std::iota(ascending.begin(), ascending.end(), 0U);

  CHECK(trace(emulator::forward) == ascending);
  CHECK(trace(emulator::reverse) == descending(4 * 64));
  CHECK(trace(emulator::shuffled(1)) == trace(emulator::shuffled(1)));
  CHECK(trace(emulator::shuffled(1)) != trace(emulator::shuffled(2)));
  CHECK(trace(emulator::shuffled(1)) != ascending);
}

// A tile of 16-bit elements in the words of a warp: element i of a lane stands at the PTX manual's row and column.
template <class Place>
words fragments(std::vector<float> const& tile, unsigned columns, unsigned elements, Place place)
{
  words result(32 * elements / 2, 0);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < elements; ++i) {
      auto const [row, column] = place(lane / 4, lane % 4, i);
      auto const bits = tersum::from_float<tersum::half>(tile[row * columns + column]).bits;
      result[lane * elements / 2 + i / 2] |= static_cast<std::uint32_t>(bits) << 16 * (i % 2);
    }
  }
  return result;
}

TEST_CASE("[emulator] multiply_tiles adds the product of tiles laid out as PTX says")
{
  // Integers, so that the order of the sum is without effect.
  std::vector<float> a(16 * 16), b(16 * 8), c(16 * 8), want(16 * 8);
  for (unsigned i = 0; i < a.size(); ++i) { a[i] = static_cast<float>(i * 7 % 31) - 15.0F; }
  for (unsigned i = 0; i < b.size(); ++i) { b[i] = static_cast<float>(i * 11 % 29) - 14.0F; }
  for (unsigned i = 0; i < c.size(); ++i) { c[i] = static_cast<float>(i); }
  for (unsigned row = 0; row < 16; ++row) {
    for (unsigned column = 0; column < 8; ++column) {
      float& sum = want[row * 8 + column];
      sum        = c[row * 8 + column];
      for (unsigned k = 0; k < 16; ++k) { sum += a[row * 16 + k] * b[k * 8 + column]; }
    }
  }
  using place         = std::pair<unsigned, unsigned>;
  words const a_words = fragments(a, 16, 8, [](unsigned group, unsigned t, unsigned i) {
    return place{i < 2 || (i >= 4 && i < 6) ? group : group + 8, t * 2 + i % 2 + (i < 4 ? 0 : 8)};
  });
  words const b_words = fragments(b, 8, 4, [](unsigned group, unsigned t, unsigned i) {
    return place{t * 2 + i % 2 + (i < 2 ? 0 : 8), group};
  });
  for (auto const order : emulator::thread_orders) {
    CAPTURE(order);
    std::vector<float> got(16 * 8);
    launch({.threads = 64}, order, [&](host_context& ctx) {
      unsigned const lane = ctx.thread_rank() % 32;
      unsigned const row  = lane / 4;
      unsigned const left = lane % 4 * 2;
      float sum[4]        = {c[row * 8 + left],
                             c[row * 8 + left + 1],
                             c[(row + 8) * 8 + left],
                             c[(row + 8) * 8 + left + 1]};
      std::uint32_t factor[4];
      for (unsigned i = 0; i < 4; ++i) {
        // The second warp, which multiplies zeros, must not disturb the first.
        factor[i] = ctx.thread_rank() < 32 ? a_words[lane * 4 + i] : 0;
      }
      ctx.multiply_tiles(sum, factor, b_words[lane * 2], b_words[lane * 2 + 1]);
      if (ctx.thread_rank() >= 32) { return; }
      got[row * 8 + left]           = sum[0];
      got[row * 8 + left + 1]       = sum[1];
      got[(row + 8) * 8 + left]     = sum[2];
      got[(row + 8) * 8 + left + 1] = sum[3];
    });
    CHECK(got == want);
  }
}

TEST_CASE(
  "[emulator] multiply_tiles_to_half gives the product rounded to half, two of a row in a word")
{
  // Row r of a is r + 1 in column 0 and 2^-12 in column 15; row 0 of b is its column, row 15 is one: sums round to 11 bits.
  words a_words(32 * 4), b_words(32 * 2);
  auto const bits = [](float value) {
    return std::uint32_t{tersum::from_float<tersum::half>(value).bits};
  };
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned const row = lane / 4;
    if (lane % 4 == 0) {
      a_words[lane * 4]     = bits(static_cast<float>(row + 1));
      a_words[lane * 4 + 1] = bits(static_cast<float>(row + 9));
      b_words[lane * 2]     = bits(static_cast<float>(row));
    }
    if (lane % 4 == 3) {
      a_words[lane * 4 + 2] = a_words[lane * 4 + 3] = bits(0x1p-12F) << 16;
      b_words[lane * 2 + 1]                         = bits(1.0F) << 16;
    }
  }
  launch({.threads = 32}, emulator::thread_orders[0], [&](host_context& ctx) {
    unsigned const lane           = ctx.thread_rank();
    std::uint32_t const* const at = a_words.data() + lane * 4;
    std::uint32_t const factor[4]{at[0], at[1], at[2], at[3]};
    std::uint32_t got[2];
    ctx.multiply_tiles_to_half(got, factor, b_words[lane * 2], b_words[lane * 2 + 1]);
    for (unsigned i = 0; i < 4; ++i) {
      unsigned const row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      float const exact = static_cast<float>((row + 1) * column) + 0x1p-12F;
      CHECK((got[i / 2] >> 16 * (i % 2) & 0xffffU) == bits(exact));
    }
  });
}

TEST_CASE("[emulator] a missing block barrier shows as a difference between orders")
{
  auto const sync_block = [](host_context& ctx) { ctx.sync_block(); };
  auto const sync_warp  = [](host_context& ctx) { ctx.sync_warp(); };
  auto const nothing    = [](host_context&) {};
  for (auto const order : emulator::thread_orders) {
    CAPTURE(order);
    CHECK(reversed_through_shared(128, order, sync_block) == descending(128));
    CHECK(reversed_through_shared(32, order, sync_warp) == descending(32));
  }
  // The warp that runs first reads what nobody has written yet.
  words const forward = reversed_through_shared(128, emulator::forward, sync_warp);
  words const reverse = reversed_through_shared(128, emulator::reverse, sync_warp);
  CHECK(forward != reverse);
  CHECK(forward[0] == poison);
  CHECK(reverse[127] == poison);
  CHECK(reversed_through_shared(32, emulator::forward, nothing) !=
        reversed_through_shared(32, emulator::reverse, nothing));
  // So does a shuffled order.
  CHECK(reversed_through_shared(128, emulator::shuffled(1), sync_warp) != descending(128));
}

TEST_CASE("[emulator] sync_block waits for the threads that have not exited")
{
  for (auto const order : emulator::thread_orders) {
    CAPTURE(order);
    words out(128, 0);
    launch(
      {.threads = 128, .shared_bytes = 128 * sizeof(std::uint32_t)}, order, [&](host_context& ctx) {
        unsigned const thread = ctx.thread_rank();
        if (thread % 2 == 1) { return; }
        auto* const shared = static_cast<std::uint32_t*>(ctx.shared());
        ctx.store(shared + thread, std::uint32_t{thread});
        ctx.sync_block();
        out[thread] = ctx.load(shared + (thread ^ 64U));
      });
    for (unsigned thread = 0; thread < 128; ++thread) {
      CHECK(out[thread] == (thread % 2 == 1 ? 0 : thread ^ 64U));
    }
  }
}

// Each block leaves words for the next one, three times, and reads what the one before has left: words of its rank and the round.
template <class Barrier>
words handed_around(emulator::thread_order order, Barrier const& barrier)
{
  constexpr std::uint32_t blocks = 5, threads = 64;
  words left(blocks * threads, 0), got(blocks * threads, 0);
  emulator::launch_together({.blocks = blocks, .threads = threads}, order, [&](host_context& ctx) {
    std::uint32_t const own    = ctx.block_rank() * threads + ctx.thread_rank();
    std::uint32_t const before = (own + (blocks - 1) * threads + 1) % (blocks * threads);
    for (std::uint32_t round = 1; round <= 3; ++round) {
      ctx.store(&left[own], own * 10 + round);
      barrier(ctx);
      got[own] += ctx.load(&left[before]);
      barrier(ctx);
    }
  });
  return got;
}

TEST_CASE("[emulator] blocks that run together wait for each other at the barrier of the grid")
{
  words want(320);
  for (std::uint32_t i = 0; i < 320; ++i) { want[i] = (i + 257) % 320 * 30 + 6; }
  auto const at_once  = [](host_context& ctx) { ctx.wait_grid(ctx.arrive_grid()); };
  auto const of_block = [](host_context& ctx) { ctx.sync_block(); };
  for (auto const order : emulator::thread_orders) {
    CAPTURE(order);
    CHECK(handed_around(order, at_once) == want);
  }
  CHECK(handed_around(emulator::forward, of_block) != want);
  CHECK(handed_around(emulator::reverse, of_block) != want);
  CHECK(handed_around(emulator::shuffled(1), of_block) != want);
}

TEST_CASE("[emulator] blocks that do not come to the barrier of the grid are reported")
{
  auto const failure_of_together = [](emulator::launch_shape shape, auto const& body) {
    try {
      emulator::launch_together(shape, emulator::shuffled(1), body);
      return std::string{};
    } catch (emulator::failure const& f) {
      return std::string{f.what()};
    }
  };
  CHECK(failure_of_together({.blocks = 4, .threads = 64}, [](host_context& ctx) {
          if (ctx.block_rank() == 2) { return; }
          ctx.wait_grid(ctx.arrive_grid());
        }) == "emulator: a deadlock: 3 blocks wait for the others of 4, which have ended");
  CHECK(contains(failure_of_together({.blocks = 2, .threads = 64},
                                     [](host_context& ctx) {
                                       if (ctx.thread_rank() != 5) {
                                         ctx.wait_grid(ctx.arrive_grid());
                                       } else {
                                         ctx.sync_warp();
                                       }
                                     }),
                 "diverged"));
  CHECK(contains(failure_of_together({.blocks = 9, .threads = 1024}, [](host_context&) {}),
                 "9 blocks of 1024 threads are not resident together"));
  CHECK(failure_of({.blocks = 2},
                   emulator::forward,
                   [](host_context& ctx) { static_cast<void>(ctx.arrive_grid()); }) ==
        "emulator: thread 0 of block 0 waits for other blocks, which run one after the other "
        "in this launch");
}

TEST_CASE("[emulator] threads that diverge are reported, and the next launch works")
{
  std::string const diverged = "emulator: the threads of block 0 diverged: ";
  for (auto const order : emulator::thread_orders) {
    CAPTURE(order);
    CHECK(failure_of({.threads = 64}, order, [](host_context& ctx) {
            if (ctx.thread_rank() != 37) { ctx.sync_warp(); }
          }) == diverged + "33 exited (first: thread 0), 31 at sync_warp (first: thread 32)");
    CHECK(
      failure_of({.threads = 64}, order, [](host_context& ctx) {
        ctx.thread_rank() < 48 ? ctx.sync_block() : ctx.sync_warp();
      }) == diverged + "48 at sync_block (first: thread 0), 16 at sync_warp (first: thread 48)");
    CHECK(failure_of({.threads = 32}, order, [](host_context& ctx) {
            static_cast<void>(ctx.thread_rank() == 9 ? ctx.warp_max(1) : ctx.warp_sum(1));
          }) == diverged + "31 at warp_sum (first: thread 0), 1 at warp_max (first: thread 9)");
    CHECK(failure_of({.threads = 32}, order, [](host_context& ctx) {
            if (ctx.thread_rank() < 16) { static_cast<void>(ctx.shuffle_xor(1.0F, 1)); }
          }) == diverged + "16 exited (first: thread 16), 16 at shuffle_xor (first: thread 0)");
    CHECK(reversed_through_shared(64, order, [](host_context& ctx) { ctx.sync_block(); }) ==
          descending(64));
  }
}

TEST_CASE("[emulator] a misaligned access fails, also below a noexcept function")
{
  alignas(16) std::array<std::uint32_t, 8> memory{1, 2, 3, 4, 5, 6, 7, 8};
  auto const* const bytes = reinterpret_cast<std::byte const*>(memory.data());
  auto const load_at      = [&]<class T>(std::size_t offset, T) {
    return failure_of({}, emulator::reverse, [&](host_context& ctx) noexcept {
      static_cast<void>(ctx.load(reinterpret_cast<T const*>(bytes + offset)));
    });
  };
  CHECK(
    load_at(4, tersum::word4{}) ==
    "emulator: thread 31 of block 0 loads 16 bytes at an address that is 4 past a multiple of 16");
  CHECK(contains(load_at(8, tersum::word4{}), "8 past a multiple of 16"));
  CHECK(contains(load_at(4, std::uint64_t{}), "4 past a multiple of 8"));
  CHECK(contains(load_at(2, float{}), "2 past a multiple of 4"));
  CHECK(contains(load_at(1, tersum::half{}), "1 past a multiple of 2"));
  CHECK(load_at(16, tersum::word4{}).empty());
  CHECK(load_at(8, std::uint64_t{}).empty());
  CHECK(load_at(2, tersum::half{}).empty());
  CHECK(load_at(1, std::uint8_t{}).empty());

  CHECK(contains(failure_of({},
                            emulator::forward,
                            [&](host_context& ctx) {
                              auto* const address =
                                reinterpret_cast<tersum::word4*>(memory.data() + 1);
                              ctx.store(address, tersum::word4{});
                            }),
                 "thread 0 of block 0 stores 16 bytes"));
  CHECK(contains(failure_of({},
                            emulator::forward,
                            [&](host_context& ctx) {
                              ctx.atomic_add(reinterpret_cast<std::uint64_t*>(memory.data() + 1),
                                             1);
                            }),
                 "thread 0 of block 0 adds 8 bytes"));
  CHECK(memory == std::array<std::uint32_t, 8>{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("[emulator] a launch that no device accepts fails")
{
  auto const nothing = [](host_context&) {};
  for (unsigned const threads : {0U, 1U, 31U, 33U, 1056U}) {
    CAPTURE(threads);
    CHECK(contains(failure_of({.threads = threads}, emulator::forward, nothing), "multiple of 32"));
  }
  CHECK(
    contains(failure_of({.shared_bytes = 227 * 1024 + 1}, emulator::forward, nothing), "227 KiB"));
  CHECK(failure_of({.shared_bytes = 227 * 1024}, emulator::forward, nothing).empty());
  CHECK(
    contains(failure_of({},
                        emulator::forward,
                        [](host_context& ctx) { static_cast<void>(ctx.shuffle_xor(1.0F, 32)); }),
             "shuffles with the mask 32"));
}

TEST_CASE("[emulator] shared memory is aligned, exact in size, and NaN when a block starts")
{
  constexpr std::size_t count = 33;
  unsigned blocks             = 0;
  launch({.blocks = 4, .shared_bytes = count * sizeof(float)},
         emulator::forward,
         [&](host_context& ctx) {
           if (ctx.thread_rank() != 0) { return; }
           auto* const shared = static_cast<float*>(ctx.shared());
           CHECK(reinterpret_cast<std::uintptr_t>(shared) % 16 == 0);
           for (std::size_t k = 0; k < count; ++k) {
             float const value = ctx.load(shared + k);
             CHECK(value != value);
             ctx.store(shared + k, 1.0F);
           }
#if defined(TERSUM_EMULATOR_ASAN)
           CHECK(__asan_region_is_poisoned(shared, count * sizeof(float)) == nullptr);
           CHECK(__asan_address_is_poisoned(shared + count));
           CHECK(__asan_address_is_poisoned(reinterpret_cast<std::byte*>(shared) - 1));
#endif
           ++blocks;
         });
  CHECK(blocks == 4);
}

TEST_CASE("[emulator] what a body throws comes out of launch")
{
  CHECK_THROWS_WITH_AS(launch({.threads = 64},
                              emulator::forward,
                              [](host_context& ctx) {
                                ctx.sync_block();
                                if (ctx.thread_rank() == 40) {
                                  throw std::out_of_range{"from a body"};
                                }
                                ctx.sync_block();
                              }),
                       "from a body",
                       std::out_of_range);
}

}  // namespace
