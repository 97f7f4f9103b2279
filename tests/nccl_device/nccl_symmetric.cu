// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Rounds and exchanges over memory that NCCL maps into all ranks.

#include <tersum/interop/nccl.cuh>
#include <tersum/tersum.cuh>

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <interop/nccl_conformance.hpp>
#include <interop/twin.hpp>
#include <span>
#include <tersum_nccl_device/nccl_symmetric.cuh>
#include <vector>

namespace tersum::tests {

namespace {

constexpr std::size_t room = 1 << 20;  // bytes

//! @brief Parts of unlike sizes, in words, of which one is empty and the first begins anywhere. Between others `gap` words lie.
struct unlike_parts {
  std::size_t first, least, gap;
  int ranks;

  [[nodiscard]] constexpr std::size_t part_words(int rank) const
  {
    return ranks > 1 && rank == ranks / 2 ? 0 : least + 3 * static_cast<std::size_t>(rank);
  }
  [[nodiscard]] constexpr std::size_t part_word(int rank) const
  {
    std::size_t word = first;
    for (int r = 0; r < rank; ++r) { word += part_words(r) + gap; }
    return word;
  }
};

class symmetric_suite {
 public:
  symmetric_suite(nccl_rank const& on, nccl_symmetric const& reduce, std::span<std::byte> memory)
    : on_(on), reduce_(reduce), memory_(memory)
  {
  }

  // What rank `r` brings, element by element, against what the ranks must hold: a float depends on the order of the sum.
  template <class Op, class Value>
  void sums(char const* name, std::size_t count, std::size_t shift, Value const& value)
  {
    using element    = typename Op::element;
    auto* const data = reinterpret_cast<element*>(memory_.data() + shift);
    std::vector<element> mine(count), sum(count);
    for (std::size_t i = 0; i < count; ++i) {
      mine[i] = value(on_.rank, i);
      sum[i]  = value(0, i);
      for (int r = 1; r < on_.ranks; ++r) { sum[i] = Op{}(sum[i], value(r, i)); }
    }
    put(data, mine);
    expect(reduce_(wire<Op>{.data = data, .count = count}).ok(), name, count, shift, "fails");
    expect(get(data, count) == sum, name, count, shift, "is another sum");
  }

  void gathers(std::size_t count, std::size_t shift)
  {
    auto* const data     = reinterpret_cast<std::uint32_t*>(memory_.data() + shift);
    std::size_t const at = static_cast<std::size_t>(on_.rank) * count;
    std::vector<std::uint32_t> all(count * static_cast<std::size_t>(on_.ranks));
    for (std::size_t i = 0; i < all.size(); ++i) { all[i] = static_cast<std::uint32_t>(i * 7 + 1); }
    put(data + at,
        {all.begin() + static_cast<std::ptrdiff_t>(at),
         all.begin() + static_cast<std::ptrdiff_t>(at + count)});
    gather_wire<std::uint32_t> const round{.gathered = data, .count = count, .ranks = on_.ranks};
    expect(reduce_(round).ok(), "a gather", count, shift, "fails");
    expect(get(data, all.size()) == all, "a gather", count, shift, "brings something else");
  }

  void scatters(std::size_t count, std::size_t shift)
  {
    auto* const data      = reinterpret_cast<std::uint32_t*>(memory_.data() + shift);
    std::size_t const all = count * static_cast<std::size_t>(on_.ranks);
    std::vector<std::uint32_t> sent(all), wanted(all);
    for (std::size_t i = 0; i < all; ++i) {
      sent[i] = word(on_.rank, i);
      wanted[i] =
        word(static_cast<int>(i / count), static_cast<std::size_t>(on_.rank) * count + i % count);
    }
    stream_memory const room{on_.stream, all * 4};
    auto* const received = room.as<std::uint32_t>();
    expect(received != nullptr, "a scatter", count, shift, "no memory");
    put(data, sent);
    scatter_wire<std::uint32_t> const round{
      .sent = data, .received = received, .count = count, .ranks = on_.ranks};
    expect(reduce_(round).ok(), "a scatter", count, shift, "fails");
    expect(get(received, all) == wanted, "a scatter", count, shift, "brings something else");
  }

  // The same of parts that differ in size.
  void gathers(unlike_parts const& parts)
  {
    std::size_t const all = parts.part_word(on_.ranks);
    auto* const data      = reinterpret_cast<std::uint32_t*>(memory_.data());
    gather_wire_of<std::uint32_t, unlike_parts> const round{
      .gathered = data, .count = all, .ranks = on_.ranks, .parts = parts};
    std::vector<std::uint32_t> mine(all), wanted;
    for (std::size_t i = 0; i < all; ++i) { mine[i] = word(on_.rank, i); }
    wanted = mine;  // what lies between parts stays
    for (int r = 0; r < on_.ranks; ++r) {
      for (std::size_t i = 0; i < round.size(r); ++i) {
        wanted[round.begin(r) + i] = word(r, round.begin(r) + i);
      }
    }
    put(data, mine);
    expect(reduce_(round).ok(), "an unlike gather", all, parts.first, "fails");
    expect(get(data, all) == wanted, "an unlike gather", all, parts.first, "is something else");
  }

  void scatters(unlike_parts const& parts)
  {
    std::size_t const all = parts.part_word(on_.ranks), count = parts.part_words(on_.rank);
    auto* const data = reinterpret_cast<std::uint32_t*>(memory_.data());
    std::vector<std::uint32_t> sent(all), wanted;
    for (std::size_t i = 0; i < all; ++i) { sent[i] = word(on_.rank, i); }
    for (int r = 0; r < on_.ranks; ++r) {
      for (std::size_t i = 0; i < count; ++i) {
        wanted.push_back(word(r, parts.part_word(on_.rank) + i));
      }
    }
    stream_memory const room{on_.stream, wanted.size() * 4 + 4};
    auto* const received = room.as<std::uint32_t>();
    expect(received != nullptr, "memory", all, 0, "fails");
    put(data, sent);
    shards_wire_of<std::uint32_t, unlike_parts> const round{
      .sent = data, .received = received, .count = all, .ranks = on_.ranks, .parts = parts};
    expect(reduce_(round).ok(), "an unlike scatter", all, parts.first, "fails");
    expect(get(received, wanted.size()) == wanted,
           "an unlike scatter",
           all,
           parts.first,
           "is something else");
  }

  // Sums in the order of the ranks, of which this rank gets its part.
  template <class Op, class Value>
  void scatters_sums(unlike_parts const& parts, Value const& value)
  {
    using element = typename Op::element;
    summed_wire_of<Op, unlike_parts> round{
      .data = reinterpret_cast<element*>(memory_.data()), .ranks = on_.ranks, .parts = parts};
    round.count             = round.begin(on_.ranks);
    std::size_t const begin = round.begin(on_.rank), count = round.size(on_.rank);
    std::vector<element> mine(round.count), wanted(count);
    for (std::size_t i = 0; i < round.count; ++i) { mine[i] = value(on_.rank, i); }
    for (std::size_t i = 0; i < count; ++i) {
      wanted[i] = value(0, begin + i);
      for (int r = 1; r < on_.ranks; ++r) { wanted[i] = Op{}(wanted[i], value(r, begin + i)); }
    }
    stream_memory const room{on_.stream, round.bytes(on_.rank) + 4};
    round.sum = room.as<element>();
    expect(round.sum != nullptr, "memory", 0, 0, "fails");
    put(round.data, mine);
    expect(reduce_(round).ok(), "a scattered sum", round.count, parts.first, "fails");
    expect(get(round.sum, count) == wanted, "a scattered sum", round.count, parts.first, "differs");
  }

  // An exchange whose workspace is symmetric memory, against the loopback.
  template <class Codec>
  void exchange(char const* name, Codec const& codec, std::uint64_t coordinates)
  {
    layout const shape{.coordinates = coordinates};
    auto const plan = codec.plan(shape, {.size = on_.ranks, .rank = on_.rank});
    cuda_executor const exec{on_.stream};
    stream_memory const state{on_.stream, plan.state_bytes()};
    stream_memory const gradient{on_.stream, coordinates * sizeof(float)};
    auto const must = [&](bool ok, char const* what) { expect(ok, name, coordinates, 0, what); };
    std::span const values{gradient.as<float>(), coordinates};
    std::span const kept{state.as<std::byte>(), plan.state_bytes()};
    must(values.data() != nullptr, "no memory");
    must(initialize(exec, plan, kept, 7).ok(), "initialize failed");
    auto const& reference = expected(name, shape, on_.ranks, reduction_order::direct);
    for (int step = 0; step < steps; ++step) {
      put(values.data(), make_gradient(values.size(), on_.ranks, on_.rank, step));
      must(all_reduce_mean(exec, plan, values, kept, memory_, std::cref(reduce_)).ok(),
           "the exchange failed");
      must(reference.ok && same(get(values.data(), values.size()),
                                reference.means[static_cast<std::size_t>(step)]),
           "differs from the loopback");
    }
  }

  [[nodiscard]] int failures() const { return failures_; }

 private:
  [[nodiscard]] static std::uint32_t word(int from, std::size_t i)
  {
    return static_cast<std::uint32_t>(from * 1000000) + static_cast<std::uint32_t>(i);
  }

  void expect(bool ok, char const* name, std::size_t count, std::size_t shift, char const* what)
  {
    if (ok) { return; }
    ++failures_;
    std::printf("rank %d of %d: symmetric memory: %s of %zu, %zu bytes on, %s\n",
                on_.rank,
                on_.ranks,
                name,
                count,
                shift,
                what);
  }

  template <class T>
  void put(T* to, std::vector<T> const& from)
  {
    expect(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice) ==
             cudaSuccess,
           "a copy",
           from.size(),
           0,
           "fails");
  }

  template <class T>
  [[nodiscard]] std::vector<T> get(T const* from, std::size_t count)
  {
    std::vector<T> result(count);
    expect(cudaStreamSynchronize(on_.stream) == cudaSuccess &&
             cudaMemcpy(result.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost) ==
               cudaSuccess,
           "a copy",
           count,
           0,
           "fails");
    return result;
  }

  nccl_rank const& on_;
  nccl_symmetric const& reduce_;
  std::span<std::byte> memory_;
  int failures_ = 0;
};

int run_all(nccl_rank const& on,
            symmetric_shape const& shape,
            nccl_symmetric const& reduce,
            std::span<std::byte> memory)
{
  symmetric_suite suite{on, reduce, memory};
  auto const float_of = [](int r, std::size_t i) {
    return 0.1F * static_cast<float>(r + 1) * static_cast<float>(i % 97 + 1);
  };
  auto const lane_of = [](int r, std::size_t i) {
    return static_cast<std::uint32_t>(i * 2654435761U + static_cast<unsigned>(r) * 40503U);
  };
  auto const byte_of = [](int r, std::size_t i) {
    return static_cast<std::int8_t>(static_cast<int>(i % 13) - 6 + r);
  };
  for (std::size_t const shift : {0, 4}) {
    for (std::size_t const count : {1, 5, 1003, 2048}) {
      suite.sums<native_sum<float>>("a sum of floats", count, shift, float_of);
      suite.sums<saturating_add<4>>("a sum of lanes", count, shift, lane_of);
      suite.sums<native_sum<std::int8_t>>("a sum of bytes", count, shift, byte_of);
      suite.gathers(count, shift);
      suite.scatters(count, shift);
    }
  }
  for (std::size_t const first : {0, 5}) {
    for (std::size_t const least : {0, 1, 640}) {
      unlike_parts const parts{.first = first, .least = least, .gap = 3, .ranks = on.ranks};
      unlike_parts const dense{.first = first, .least = least, .gap = 0, .ranks = on.ranks};
      suite.gathers(parts);
      suite.scatters(parts);
      suite.scatters_sums<native_sum<float>>(dense, float_of);
      suite.scatters_sums<saturating_add<4>>(dense, lane_of);
      suite.scatters_sums<native_sum<std::int8_t>>(dense, byte_of);
    }
  }
  suite.exchange("rotated_sat4", presets::rotated_sat4, shape.coordinates);
  suite.exchange("two_shot_4", presets::two_shot_4, shape.coordinates);
  suite.exchange("fp16", presets::fp16, shape.coordinates);
  return suite.failures();
}

}  // namespace

int check_nccl_symmetric(nccl_rank const& on, symmetric_shape const& shape)
{
  void* data = nullptr;
  if (ncclMemAlloc(&data, room) != ncclSuccess) {
    if (on.rank == 0) {
      std::printf("%s: exchanges over symmetric memory, which is not to be had here\n",
                  shape.must_run ? "failed" : "skipped");
    }
    return shape.must_run ? 1 : 0;
  }
  std::span const memory{static_cast<std::byte*>(data), room};
  int failures = 0;
  {
    nccl_symmetric const reduce{on.communicator, cuda_executor{on.stream}, memory, shape.blocks};
    status const usable = reduce.check();
    if (usable.ok()) {
      failures = run_all(on, shape, reduce, memory);
    } else if (on.rank == 0) {
      std::printf("%s: exchanges over symmetric memory: %s\n",
                  shape.must_run ? "failed" : "skipped",
                  usable.message.data());
    }
    failures += usable.ok() || !shape.must_run ? 0 : 1;
  }
  ncclMemFree(data);
  return failures;
}

}  // namespace tersum::tests
