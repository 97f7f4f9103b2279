// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The parameter server: its formulas in double, orders of arrival, deadlines by a clock of the tests' own, lost and wild messages.

#include "support/codecs.hpp"
#include "support/codes_in_double.hpp"
#include "support/fnv_digest.hpp"
#include "support/normal_gradients.hpp"

#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/feedback/decayed_feedback.hpp>
#include <tersum/feedback/kept_by.hpp>
#include <tersum/form/two_shot.hpp>
#include <tersum/interop/reduce_over.hpp>
#include <tersum/quantize/cast.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/single_process/loopback_transport.hpp>
#include <tersum_server/loopback_messages.hpp>
#include <tersum_server/parameter_server.hpp>
#include <tersum_server/parameter_worker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

using namespace tersum;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t seed = 5;

using clan   = tests::rotated_codes<256, lloyd_max<1>, publish, decayed_feedback>;
using halves = codec<fixed_chunks<256>, no_rotation, cast<half>, publish>;
using server = parameter_server<clan>;
using worker = parameter_worker<clan, clan, loopback_messages>;
using values = std::vector<double>;

using tests::are_near;
using tests::combine;

[[nodiscard]] served_plan<clan> plan_of(std::vector<std::uint64_t> const& sizes, int workers)
{
  return {{},
          {},
          sizes,
          {.workers = workers, .seed = seed, .compress_from = 256, .most_coordinates = 512}};
}

using tensors = std::vector<std::vector<float>>;

[[nodiscard]] std::vector<std::span<float>> spans(tensors& of) { return {of.begin(), of.end()}; }

// What workers hold after so many exchanges, and what the server counts.
struct outcome {
  std::vector<tensors> held;
  server_counts counts;
  std::vector<push_counts> pushes;
  std::vector<worker_counts> of_workers;
};

// Gradients of worker k in a step.
[[nodiscard]] tensors gradients_of(std::vector<std::uint64_t> const& sizes, int k, int step)
{
  tensors out;
  for (std::uint64_t const size : sizes) {
    auto const draw =
      static_cast<unsigned>(1000 * step + 10 * k) + static_cast<unsigned>(out.size());
    out.push_back(tests::normal_gradients(1, size, draw)[0]);
  }
  return out;
}

// Server and workers in threads. Each worker goes on from where it is with new gradients.
template <class Codec>
[[nodiscard]] outcome run(served_plan<Codec> const& plan,
                          loopback_post& post,
                          int steps,
                          int threads,
                          std::chrono::milliseconds again = 10s,
                          tensors (*of_step)(std::vector<std::uint64_t> const&,
                                             int,
                                             int)         = gradients_of)
{
  auto const workers = static_cast<std::size_t>(plan.options().workers);
  std::vector<std::uint64_t> const sizes(plan.tensors().begin(), plan.tensors().end());
  outcome out{std::vector<tensors>(workers), {}, {}, std::vector<worker_counts>(workers)};
  std::vector<status> said(workers + 1);
  {
    std::vector<std::jthread> all;
    all.emplace_back([&] {
      loopback_messages over{post, 0};
      parameter_server<Codec> serving{plan, {.deadline = 60s, .threads = threads}};
      said[workers] = serving.serve(over);
      out.counts    = serving.counts();
      for (int k = 0; k < plan.options().workers; ++k) { out.pushes.push_back(serving.pushes(k)); }
    });
    for (std::size_t k = 0; k < workers; ++k) {
      all.emplace_back([&, k] {
        int const number = static_cast<int>(k);
        loopback_messages over{post, number + 1};
        parameter_worker<Codec, Codec, loopback_messages> working{
          plan, over, {.number = number, .patience = 60s, .again = again, .threads = threads}};
        for (int step = 0; step < steps && said[k].ok(); ++step) {
          out.held[k] = of_step(sizes, number, step);
          said[k]     = working.exchange(spans(out.held[k]), 1.0f / static_cast<float>(step + 1));
        }
        out.of_workers[k] = working.counts();
        if (status const s = working.leave(); !s.ok()) { said[k] = s; }
      });
    }
  }
  for (status const& s : said) { REQUIRE(s == status{}); }
  return out;
}

// The clock of a server that nobody waits for.
std::chrono::steady_clock::time_point now_of_test{};

// A server that the test's own thread serves, and messages that the test writes.
struct bench {
  bench(served_plan<clan> const& p, std::chrono::milliseconds deadline)
    : plan(p), post(p.options().workers + 1),
      serving(p, {.deadline = deadline, .now = [] { return now_of_test; }})
  {
  }

  [[nodiscard]] message_header header(message_kind kind,
                                      std::uint32_t piece,
                                      int k,
                                      std::uint64_t step) const
  {
    return plan.header(kind, piece, static_cast<std::size_t>(k), step);
  }
  void send(message_header h, std::span<std::byte const> payload)
  {
    std::vector<std::byte> message(sizeof h + payload.size());
    h.bytes = payload.size();
    write_header(h, message);
    std::copy(payload.begin(), payload.end(), message.begin() + sizeof h);
    post.send(static_cast<int>(h.worker) + 1, 0, message);
  }
  // Of a piece that is not compressed: every coordinate is the same.
  void push(int k, std::uint64_t step, float value, std::uint32_t piece = 0)
  {
    std::vector<float> const all(plan.pieces()[piece].size, value);
    send(header(message_kind::push, piece, k, step), std::as_bytes(std::span{all}));
  }
  void pull(int k, std::uint64_t step) { send(header(message_kind::pull, 0, k, step), {}); }

  // Until nothing is left to be done.
  void settle()
  {
    do {
      REQUIRE(serving.poll(over, 100us) == status{});
    } while (post.queue(0).waiting() > 0 || serving.is_adding());
    REQUIRE(serving.poll(over, 0us) == status{});  // what may be due now
    while (serving.is_adding()) { REQUIRE(serving.poll(over, 100us) == status{}); }
  }
  // What a worker gets, if there is something; the memory is for the message.
  [[nodiscard]] bool got(int k, message_header& h, std::vector<std::byte>& memory)
  {
    memory.resize(plan.most_message_bytes());
    incoming what;
    loopback_messages mine{post, k + 1};
    REQUIRE(mine.receive(memory, 0us, what) == status{});
    if (what.from != 0) { return false; }
    REQUIRE(read_header(std::span{memory}.first(what.bytes), h) == status{});
    REQUIRE(h.worker == static_cast<std::uint32_t>(k));
    return true;
  }
  [[nodiscard]] bool answered(int k, message_header& h, float& first)
  {
    std::vector<std::byte> memory;
    if (!got(k, h, memory)) { return false; }
    REQUIRE(h.kind == message_kind::answer);
    std::memcpy(&first, memory.data() + sizeof h, sizeof first);
    return true;
  }
  // Whether the worker is told which step is the present one, as it has asked for another.
  [[nodiscard]] bool told(int k, std::uint64_t asked, std::uint64_t present)
  {
    std::vector<std::byte> memory;
    message_header h;
    return got(k, h, memory) && h.kind == message_kind::step && h.bytes == 0 && h.step == asked &&
           h.present == present;
  }

  served_plan<clan> plan;
  loopback_post post;
  loopback_messages over{post, 0};
  server serving;
};

}  // namespace

TEST_CASE("[server] tensors are cut into pieces, and small ones stay whole")
{
  auto const plan = plan_of({0, 1, 255, 256, 257, 512, 513, 1021, 2048}, 3);
  REQUIRE(plan.check() == status{});
  std::vector<std::uint64_t> sizes, compressed;
  for (served_piece const& p : plan.pieces()) {
    CHECK(p.begin + p.size <= plan.tensors()[p.tensor]);
    sizes.push_back(p.size);
    compressed.push_back(p.compressed);
  }
  CHECK(sizes ==
        std::vector<std::uint64_t>{1, 255, 256, 257, 512, 512, 1, 512, 509, 512, 512, 512, 512});
  CHECK(compressed == std::vector<std::uint64_t>{0, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1});
  CHECK(plan.first_piece(0) == 0);
  CHECK(plan.first_piece(1) == 0);
  CHECK(plan.first_piece(9) == plan.pieces().size());
  CHECK(plan.pieces()[1].push_bytes == 255 * 4);
  // 256 bits and a scale, the scales in whole 16 bytes.
  CHECK(plan.pieces()[2].push_bytes == 16 + 32);
  CHECK(plan.pieces()[3].push_bytes == 16 + 64);
  CHECK(plan.most_message_bytes() == 64 + 255 * 4);
  CHECK(plan_of({0, 1}, 3).fingerprint() != plan_of({0, 1}, 2).fingerprint());
  CHECK(plan_of({0, 1}, 3).fingerprint() != plan_of({1, 0}, 3).fingerprint());
  CHECK(plan_of({1}, 0).check().message == "options.workers must be between 1 and 65534");
}

TEST_CASE("[server] codes both ways with feedback are CLAN's formulas")
{
  constexpr int workers = 3;
  std::vector<std::uint64_t> const sizes{1000};
  // One piece, so that the reference is of one tensor.
  served_plan<clan> const plan{
    {},
    {},
    sizes,
    {.workers = workers, .seed = seed, .compress_from = 256, .most_coordinates = 1000}};
  loopback_post post{workers + 1};
  loopback_messages over_server{post, 0};
  server serving{plan, {.deadline = 60s}};
  std::vector<loopback_messages> over;
  for (int k = 0; k < workers; ++k) { over.emplace_back(post, k + 1); }
  std::vector<std::unique_ptr<worker>> working;
  for (int k = 0; k < workers; ++k) {
    auto const at = static_cast<std::size_t>(k);
    working.push_back(
      std::make_unique<worker>(plan, over[at], worker_options{.number = k, .patience = 60s}));
  }
  std::vector<values> e(workers, values(1000)), p = e;
  values of_server(1000);
  for (int step = 0; step < 5; ++step) {
    float const gain = step < 2 ? 1.0f : 0.75f;
    std::vector<tensors> in;
    values mean(1000);
    for (int k = 0; k < workers; ++k) {
      auto const at = static_cast<std::size_t>(k);
      in.push_back(gradients_of(sizes, k, step));
      p[at] = combine(1, values(in[at][0].begin(), in[at][0].end()), gain, e[at]);
      auto const c =
        tests::compress_in_double<1, 256>(p[at], static_cast<std::uint64_t>(step), seed);
      e[at] = combine(1, p[at], -1, c);
      mean  = combine(1, mean, 1. / workers, c);
    }
    values const s  = combine(1, mean, gain, of_server);
    auto const sent = tests::compress_in_double<1, 256>(s, static_cast<std::uint64_t>(step), seed);
    of_server       = combine(1, s, -1, sent);
    std::atomic<int> left = workers;
    std::vector<status> said(workers);
    {
      std::vector<std::jthread> all;
      for (std::size_t k = 0; k < workers; ++k) {
        all.emplace_back([&, k] {
          said[k] = working[k]->exchange(spans(in[k]), gain);
          --left;
        });
      }
      while (left > 0) { REQUIRE(serving.poll(over_server, 1ms) == status{}); }
    }
    CAPTURE(step);
    for (std::size_t k = 0; k < workers; ++k) {
      REQUIRE(said[k] == status{});
      REQUIRE(in[k][0].size() == sent.size());
      REQUIRE(are_near(in[k][0], sent, sent));
      REQUIRE(working[k]->kept(0).size() == e[k].size());
      REQUIRE(are_near(working[k]->kept(0), e[k], p[k]));
      CHECK(working[k]->counted(0) == workers);
      CHECK(std::equal(in[k][0].begin(), in[k][0].end(), in[0][0].begin()));
    }
    REQUIRE(serving.kept(0).size() == of_server.size());
    REQUIRE(are_near(serving.kept(0), of_server, s));
  }
}

TEST_CASE("[server] messages and means are what they were")
{
  // From integers alone: every machine makes the same ones.
  auto const of_integers = [](std::vector<std::uint64_t> const& sizes, int k, int step) {
    tensors out;
    std::uint32_t x = 12345u + static_cast<std::uint32_t>(k + 1000 * step);
    for (std::uint64_t const size : sizes) {
      for (float& value : out.emplace_back(size)) {
        x     = x * 1664525u + 1013904223u;
        value = static_cast<float>(static_cast<std::int32_t>(x >> 8) - (1 << 23)) * 0x1p-24f;
      }
    }
    return out;
  };
  // Each message once, in whatever order they are sent, and however often.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::uint32_t>, std::uint64_t>
    sent;
  loopback_post post{3, [&](int, int, std::span<std::byte const> message) {
                       message_header h;
                       CHECK(read_header(message, h) == status{});
                       tests::fnv_digest all;
                       h.fingerprint = 0;
                       all.add(std::as_bytes(std::span{&h, 1}));
                       all.add(message.subspan(sizeof h));
                       auto const kind                         = static_cast<std::uint32_t>(h.kind);
                       sent[{kind, h.step, h.piece, h.worker}] = all.value();
                       return delivery::now;
                     }};
  auto const held = run(plan_of({1000, 3, 0, 257}, 2), post, 3, 1, 10s, of_integers).held;
  std::uint64_t of_kind[5]{};
  for (int kind = 1; kind <= 4; ++kind) {
    tests::fnv_digest all;
    for (auto const& [what, value] : sent) {
      if (std::get<0>(what) == static_cast<std::uint32_t>(kind)) {
        all.add(std::as_bytes(std::span{&value, 1}));
      }
    }
    of_kind[kind] = all.value();
  }
  // 4 pieces of 2 workers in 3 steps, and twice a leave.
  CHECK(sent.size() == 3 * 4 * 2 * 3 + 2);
  CHECK(of_kind[1] == 0xebff55a041ff8435);
  CHECK(of_kind[2] == 0x270a35e3dd859524);
  CHECK(of_kind[3] == 0x93bea43b567ee877);
  CHECK(of_kind[4] == 0xacba7afbff656dcc);
  tests::fnv_digest means;
  for (auto const& tensor : held[0]) { means.add(std::as_bytes(std::span{tensor})); }
  CHECK(held[0] == held[1]);
  CHECK(means.value() == 0xc9f2baea35b20c6b);
}

TEST_CASE("[server] bits depend on neither threads nor the order of arrival")
{
  constexpr int workers = 4, steps = 3;
  auto const plan = plan_of({1000, 3, 0, 255, 256, 2049}, workers);
  loopback_post post{workers + 1};
  auto const straight = run(plan, post, steps, 1);
  for (tensors const& held : straight.held) { CHECK(held == straight.held[0]); }
  // All pushes of a step come together, the last one first.
  std::atomic<std::size_t> held = 0;
  loopback_post turned{workers + 1, [&](int, int to, std::span<std::byte const> message) {
                         message_header h;
                         if (to != 0 || !read_header(message, h).ok() ||
                             h.kind == message_kind::leave) {
                           return delivery::now;
                         }
                         ++held;
                         return delivery::held;
                       }};
  std::size_t const of_step = 2 * workers * plan.pieces().size();  // pushes and pulls
  std::jthread releases{[&] {
    for (std::size_t step = 1; step <= steps; ++step) {
      while (held < step * of_step) { std::this_thread::yield(); }
      turned.release(true);
    }
  }};
  loopback_post other{workers + 1};
  auto const threaded = run(plan, other, steps, 3);
  CHECK(threaded.held == straight.held);
  auto const late_first = run(plan, turned, steps, 2);
  CHECK(late_first.held == straight.held);
  for (auto const* const one : {&straight, &threaded, &late_first}) {
    CHECK(one->counts.steps == steps * plan.pieces().size());
    CHECK(one->counts.refused == 0);
    for (push_counts const& c : one->pushes) {
      CHECK(c.counted == one->counts.steps);
      CHECK(c.missing + c.late + c.early + c.repeated == 0);
    }
  }
}

TEST_CASE("[server] with powers of two and all in time the mean has the bits of two shots")
{
  constexpr int workers = 4;
  std::vector<std::uint64_t> const sizes{1021};
  served_plan<halves> const plan{
    {}, {}, sizes, {.workers = workers, .seed = seed, .compress_from = 1}};
  loopback_post post{workers + 1};
  auto const served = run(plan, post, 1, 1);
  codec<fixed_chunks<256>, no_rotation, cast<half>, two_shot> const shots;
  loopback_group group{workers};
  std::vector<std::vector<float>> means(workers);
  {
    std::vector<std::jthread> all;
    for (int k = 0; k < workers; ++k) {
      all.emplace_back([&, k] {
        auto& mean         = means[static_cast<std::size_t>(k)];
        mean               = gradients_of(sizes, k, 0)[0];
        auto const of_rank = shots.plan(layout{1021}, {.size = workers, .rank = k});
        std::vector<std::byte> state(of_rank.state_bytes()), work(of_rank.workspace_bytes());
        loopback_transport const over{group, k};
        cpu_executor const exec;
        if (!initialize(exec, of_rank, state, seed).ok() ||
            !all_reduce_mean(exec, of_rank, mean, state, work, reduce_over(over, exec)).ok()) {
          mean.clear();
        }
      });
    }
  }
  for (std::size_t k = 0; k < workers; ++k) {
    CHECK(served.held[k][0] == means[0]);
    CHECK(means[k] == means[0]);
  }
}

TEST_CASE("[server] who misses the deadline is counted, and not waited for")
{
  bench b{plan_of({3}, 3), 100ms};
  message_header h;
  float mean = 0;
  b.push(1, 0, 6);
  b.push(0, 0, 3);
  b.pull(2, 0);
  b.settle();
  now_of_test += 99ms;
  b.settle();
  CHECK(b.serving.counts().steps == 0);
  CHECK(!b.answered(2, h, mean));
  now_of_test += 1ms;
  b.settle();
  CHECK(b.serving.counts().steps == 1);
  REQUIRE(b.answered(2, h, mean));
  CHECK(h.in_mean == 0);
  CHECK(h.counted == 2);
  CHECK(mean == 4.5f);
  b.pull(0, 0);
  b.settle();
  REQUIRE(b.answered(0, h, mean));
  CHECK(h.in_mean == 1);
  CHECK(mean == 4.5f);
  CHECK(b.serving.pushes(2).missing == 1);
  CHECK(b.serving.pushes(2).lost() == 1);
  b.push(2, 0, 100);
  b.push(2, 0, 100);
  b.push(0, 0, 100);
  b.settle();
  CHECK(b.serving.pushes(2).late == 1);
  CHECK(b.serving.pushes(2).lost() == 0);
  CHECK(b.serving.pushes(2).repeated == 1);
  CHECK(b.serving.pushes(0).repeated == 1);
  // The mean stays; the next step is of all three, without a wait.
  for (int k = 0; k < 3; ++k) { b.push(k, 1, static_cast<float>(k)); }
  b.pull(1, 1);
  b.settle();
  b.pull(1, 0);
  b.settle();
  REQUIRE(b.answered(1, h, mean));
  CHECK(h.step == 1);
  CHECK(h.counted == 3);
  CHECK(mean == 1.0f);
  CHECK(b.told(1, 0, 2));
  // A pull of a step that is over does not take the place of one of a step to come.
  b.pull(1, 2);
  b.pull(1, 0);
  for (int k = 0; k < 3; ++k) { b.push(k, 2, static_cast<float>(k)); }
  b.settle();
  CHECK(b.told(1, 0, 2));
  REQUIRE(b.answered(1, h, mean));
  CHECK(h.step == 2);
  // A step of which all pushes were lost is left out; who is ahead of an open step is counted.
  b.push(0, 5, 8);
  b.push(1, 6, 8);
  b.push(2, 4, 8);
  b.settle();
  CHECK(b.serving.pushes(1).early == 1);
  CHECK(b.serving.pushes(2).late == 2);
  CHECK(b.serving.counts().refused == 0);
  // Those who have left are not waited for.
  b.send(b.header(message_kind::leave, 0, 1, 0), {});
  b.send(b.header(message_kind::leave, 0, 1, 0), {});
  b.push(2, 5, 4);
  b.pull(0, 5);
  b.settle();
  REQUIRE(b.answered(0, h, mean));
  CHECK(mean == 6.0f);
  CHECK(b.serving.pushes(1).missing == 0);
  CHECK(!b.serving.is_left());
}

TEST_CASE("[server] a worker that asks for a step that is gone or far is told the present one")
{
  bench b{plan_of({3, 2}, 2), 100ms};
  message_header h;
  float mean = 0;
  // Far pushes are refused, whatever is open: nobody else is late by them.
  for (std::uint64_t const far : {std::uint64_t{9}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    auto const before = b.serving.counts().refused;
    b.push(0, far, 1);
    b.pull(0, far);
    b.settle();
    CHECK(b.serving.counts().refused == before + 1);
    CHECK(b.serving.last_refusal().message == "the step of the push is far from the present one");
    CHECK(b.told(0, far, 0));
  }
  for (std::uint64_t step = 0; step < 3; ++step) {
    b.push(0, step, 2);
    b.push(1, step, 4);
    b.pull(0, step);
    b.settle();
    REQUIRE(b.answered(0, h, mean));
    CHECK(mean == 3.0f);
  }
  // One piece of this worker's is at step 3, one has not begun; the present step is that of the furthest.
  b.push(1, 0, 4, 1);
  b.pull(1, 1);
  b.settle();
  CHECK(b.told(1, 1, 3));
  b.pull(1, 2);
  b.settle();
  REQUIRE(b.answered(1, h, mean));
  CHECK(h.in_mean == 1);
  // A push that was in its step's mean is said to be, though the mean is gone.
  b.push(0, 3, 2);
  now_of_test += 100ms;
  b.settle();
  now_of_test += 100ms;
  b.settle();
  std::vector<std::byte> memory;
  for (std::uint64_t const asked : {1u, 2u}) {
    b.pull(1, asked);
    b.settle();
    REQUIRE(b.got(1, h, memory));
    CHECK(h.kind == message_kind::step);
    CHECK(h.in_mean == (asked == 2 ? 1 : 0));
  }
}

TEST_CASE("[server] who is ahead of the open step is not waited for, and in the next one")
{
  bench b{plan_of({3}, 2), 60s};
  message_header h;
  float mean = 0;
  b.push(0, 0, 2);
  b.push(1, 1, 8);
  b.pull(0, 0);
  b.settle();
  REQUIRE(b.answered(0, h, mean));
  CHECK(mean == 2.0f);
  CHECK(h.counted == 1);
  // The step that it is in has begun.
  b.push(0, 1, 2);
  b.pull(0, 1);
  b.settle();
  REQUIRE(b.answered(0, h, mean));
  CHECK(mean == 5.0f);
  // If it is further ahead, the steps between belong to the others, until they have left.
  b.push(0, 2, 2);
  b.push(1, 5, 8);
  b.pull(1, 5);
  b.settle();
  CHECK(b.serving.counts().steps == 3);
  CHECK(!b.answered(1, h, mean));
  b.send(b.header(message_kind::leave, 0, 0, 0), {});
  b.settle();
  REQUIRE(b.answered(1, h, mean));
  CHECK(h.step == 5);
  CHECK(mean == 8.0f);
  // A worker that comes again is waited for again.
  b.push(0, 6, 2);
  b.settle();
  CHECK(!b.serving.is_left());
  CHECK(b.serving.counts().steps == 4);
  b.push(1, 6, 8);
  b.pull(0, 6);
  b.settle();
  REQUIRE(b.answered(0, h, mean));
  CHECK(mean == 5.0f);
  CHECK(b.serving.pushes(1).early == 2);
}

TEST_CASE("[server] the longest durations are for ever")
{
  constexpr auto for_ever = std::chrono::milliseconds::max();
  now_of_test += 1h;
  bench b{plan_of({3}, 2), for_ever};
  b.push(0, 0, 1);
  b.settle();
  now_of_test += std::chrono::hours(24 * 365);
  b.settle();
  CHECK(b.serving.counts().steps == 0);

  loopback_post post{2};
  loopback_messages of_server{post, 0}, over{post, 1};
  auto const plan = plan_of({3}, 1);
  server serving{plan, {.deadline = for_ever, .idle = for_ever}};
  status said;
  {
    std::jthread const serves{[&](std::stop_token stop) { said = serving.serve(of_server, stop); }};
    std::this_thread::sleep_for(50ms);  // some polls without a message
    worker working{plan, over, {.patience = for_ever, .again = for_ever}};
    auto in = gradients_of({3}, 0, 0);
    CHECK(working.exchange(spans(in)) == status{});
    CHECK(working.counts().asked_again == 0);
  }
  CHECK(said == status{});
}

TEST_CASE("[server] plans of too many pieces are refused before they take memory")
{
  auto const said = [](std::vector<std::uint64_t> const& sizes, std::uint64_t most) {
    served_plan<clan> const plan{{}, {}, sizes, {.most_coordinates = most}};
    CHECK(plan.pieces().empty());
    return plan.check().message;
  };
  constexpr std::uint64_t one = 1;
  constexpr std::string_view many =
    "options.most_coordinates cuts the tensors into more than 2^20 pieces";
  constexpr std::string_view large = "a tensor has more than 2^48 coordinates";
  CHECK(said({one << 40}, 1) == many);
  CHECK(said({one << 20, 1}, 1) == many);
  CHECK(said({~std::uint64_t{0}}, (one << 63) + 1) == large);
  CHECK(said({one << 62}, one << 62) == large);
  CHECK(said({3}, 0) == "options.most_coordinates must be above zero");
  served_plan<clan> const most{{},
                               {},
                               std::vector<std::uint64_t>{one << 20},
                               {.compress_from = ~std::uint64_t{0}, .most_coordinates = 1}};
  CHECK(most.check() == status{});
  CHECK(most.pieces().size() == one << 20);
}

TEST_CASE("[server] pushes are added in the order of the workers")
{
  bench b{plan_of({3}, 3), 1s};
  message_header h;
  float mean = 1;
  // From the first to the last worker the 1 is lost; the other way round it would be left.
  b.push(2, 0, -1e8f);
  b.push(1, 0, 1e8f);
  b.push(0, 0, 1);
  b.pull(0, 0);
  b.settle();
  REQUIRE(b.answered(0, h, mean));
  CHECK(mean == 0.0f);
}

TEST_CASE("[server] the gain is that of the first worker in the mean")
{
  auto const plan       = plan_of({256}, 2);
  auto const mean_after = [&](float of_first, float of_second, bool second_comes_first) {
    bench b{plan, 1s};
    std::vector<float> x = gradients_of({256}, 0, 0)[0];
    detail::piece_coder<clan> coder{plan.up(0), true, seed, 1};
    std::vector<std::byte> codes(plan.pieces()[0].push_bytes);
    message_header h;
    for (std::uint64_t step = 0; step < 2; ++step) {
      REQUIRE(coder.encode(step, 1, x, codes) == status{});
      for (int i = 0; i < 2; ++i) {
        int const k = second_comes_first ? 1 - i : i;
        h           = b.header(message_kind::push, 0, k, step);
        h.gain      = k == 0 ? of_first : of_second;
        b.send(h, codes);
      }
      b.settle();
    }
    std::span<float> const kept = b.serving.kept(0);
    return std::vector<float>(kept.begin(), kept.end());
  };
  auto const half_gain = mean_after(.5f, .5f, false);
  CHECK(mean_after(.5f, 1, false) == half_gain);
  CHECK(mean_after(.5f, 1, true) == half_gain);
  CHECK(mean_after(1, .5f, true) != half_gain);
}

// `spacing` of what residuals are kept in: how far a value's neighbour is at most, for each of its magnitude.
template <class Codec>
void check_taking_back(double spacing)
{
  served_plan<Codec> const plan{
    {}, {}, std::vector<std::uint64_t>{300}, {.workers = 1, .seed = seed, .compress_from = 256}};
  double largest = 0;  // of the gradient and of what the codes lost
  for (bool const takes_back : {false, true}) {
    CAPTURE(takes_back);
    loopback_post post{2};
    loopback_messages over{post, 1}, of_server{post, 0};
    parameter_worker working{plan, over, {.takes_back = takes_back}};
    auto in         = gradients_of({300}, 0, 0);
    auto const want = in[0];
    message_header h;
    h.kind        = message_kind::answer;
    h.fingerprint = plan.fingerprint();
    h.bytes       = plan.pieces()[0].answer_bytes;
    h.counted     = 1;
    std::vector<std::byte> message(sizeof h + h.bytes);
    write_header(h, message);
    REQUIRE(of_server.send(1, message) == status{});
    // An answer before the push is one that nobody waits for; the second comes after it.
    REQUIRE(working.push(0, in[0]) == status{});
    CHECK(working.push(0, in[0]).message ==
          "tensor has been pushed in this step: call pull_all first");
    std::jthread answers{[&] {
      std::vector<std::byte> memory(4096);
      incoming what;
      while (what.from != 1) { (void)of_server.receive(memory, 100ms, what); }
      (void)of_server.send(1, message);
    }};
    REQUIRE(working.pull_all() == status{});
    CHECK(std::all_of(in[0].begin(), in[0].end(), [](float v) { return v == 0; }));
    CHECK(working.counts().left_out == 1);
    CHECK(working.counts().answered == 1);
    double off = 0;
    for (std::size_t i = 0; i < 300; ++i) {
      auto const kept = static_cast<double>(to_float(working.kept(0)[i]));
      off             = std::max(off, std::abs(kept - static_cast<double>(want[i])));
      if (!takes_back) {
        largest = std::max({largest, std::abs(kept), std::abs(static_cast<double>(want[i]))});
      }
    }
    // What is lost is rounded to a neighbour, and its sum with the codes to the nearest.
    CHECK((off < 2 * spacing * largest) == takes_back);
  }
}

TEST_CASE("[server] a push that is not in the mean goes back into the residual")
{
  SUBCASE("in float") { check_taking_back<clan>(0x1p-22); }
  SUBCASE("in bfloat16")
  {
    check_taking_back<
      tests::rotated_codes<256, lloyd_max<1>, publish, kept_in<bfloat16, decayed_feedback>>>(
      0x1p-7);
  }
}

TEST_CASE("[server] what is not finite poisons its chunk for a step, and no residual")
{
  bench b{plan_of({512}, 2), 1s};
  detail::piece_coder<clan> coders[]{{b.plan.up(0), true, seed, 1}, {b.plan.up(0), true, seed, 2}};
  std::vector<std::byte> payload(b.plan.pieces()[0].push_bytes);
  detail::piece_coder<std::decay_t<decltype(b.plan.down_decoder(0).codec())>> decoder{
    b.plan.down_decoder(0), true, seed, 0};
  for (std::uint64_t step = 0; step < 3; ++step) {
    std::vector<float> const before(b.serving.kept(0).begin(), b.serving.kept(0).end());
    for (int k = 0; k < 2; ++k) {
      auto in = gradients_of({512}, k, static_cast<int>(step))[0];
      if (step == 1 && k == 1) { in[300] = std::numeric_limits<float>::quiet_NaN(); }
      REQUIRE(coders[k].encode(step, 1, in, payload) == status{});
      b.send(b.header(message_kind::push, 0, k, step), payload);
    }
    b.pull(0, step);
    b.settle();
    std::vector<std::byte> memory(b.plan.most_message_bytes());
    incoming what;
    REQUIRE(loopback_messages{b.post, 1}.receive(memory, 0us, what) == status{});
    REQUIRE(what.bytes == sizeof(message_header) + b.plan.pieces()[0].answer_bytes);
    std::vector<float> mean(512);
    auto const codes =
      std::span{memory}.subspan(sizeof(message_header), b.plan.pieces()[0].answer_bytes);
    REQUIRE(decoder.decode(step, codes, mean) == status{});
    CAPTURE(step);
    for (std::size_t i = 0; i < 512; ++i) {
      bool const poisoned = step == 1 && i >= 256;
      CHECK(std::isnan(mean[i]) == poisoned);
      CHECK(std::isfinite(b.serving.kept(0)[i]));
      if (poisoned) { CHECK(b.serving.kept(0)[i] == before[i]); }
    }
    CHECK(!std::equal(before.begin(), before.begin() + 256, b.serving.kept(0).begin()));
  }
}

TEST_CASE("[server] lost pulls and answers are asked for again")
{
  constexpr int workers = 2;
  auto const plan       = plan_of({300, 7}, workers);
  loopback_post straight{workers + 1};
  auto const want = run(plan, straight, 3, 1);
  // Of the pulls and of the answers every other one is lost.
  int pulls = 0, answers = 0;
  loopback_post post{workers + 1, [&](int, int, std::span<std::byte const> message) {
                       message_header h;
                       if (!read_header(message, h).ok()) { return delivery::now; }
                       bool const lost = (h.kind == message_kind::pull && ++pulls % 2 == 1) ||
                                         (h.kind == message_kind::answer && ++answers % 2 == 1);
                       return lost ? delivery::never : delivery::now;
                     }};
  auto const got = run(plan, post, 3, 1, 2ms);
  CHECK(got.held == want.held);
  CHECK(got.of_workers[0].asked_again + got.of_workers[1].asked_again > 0);
  CHECK(got.of_workers[0].unanswered + got.of_workers[1].unanswered == 0);
}

TEST_CASE("[server] a worker that nobody answers keeps its gradient")
{
  auto const plan = plan_of({300, 2}, 1);
  loopback_post post{2};
  loopback_messages over{post, 1}, nobody{post, 0};
  worker working{plan, over, {.patience = 5ms}};
  auto in         = gradients_of({300, 2}, 0, 0);
  auto const want = in;
  CHECK(working.exchange(spans(in)).message == "the server did not answer within options.patience");
  CHECK(in == want);
  CHECK(working.counts().unanswered == 2);
  CHECK(working.step() == 1);
  // Nor does a server wait for ever.
  server serving{plan, {.idle = 1ms}};
  loopback_post silent{2};
  loopback_messages hears{silent, 0};
  CHECK(serving.serve(hears).message == "no worker sent anything for options.idle");
  std::stop_source stop;
  stop.request_stop();
  CHECK(serving.serve(hears, stop.get_token()) == status{});
}

TEST_CASE("[server] what does not fit is refused in a sentence")
{
  bench b{plan_of({3, 256}, 2), 1s};
  auto const good    = b.header(message_kind::push, 0, 0, 0);
  auto const refused = [&](auto change, std::size_t bytes, std::string_view sentence) {
    message_header h = good;
    change(h);
    auto const before = b.serving.counts().refused;
    std::vector<std::byte> payload(bytes);
    std::vector<std::byte> message(sizeof h + bytes);
    if (h.bytes == 0) { h.bytes = bytes; }
    write_header(h, message);
    b.post.send(1, 0, message);
    b.settle();
    CHECK(b.serving.counts().refused == before + 1);
    CHECK(b.serving.last_refusal().message == sentence);
  };
  using header = message_header;
  refused([](header& h) { h.magic = 1; },
          12,
          "the message is none of a parameter server's, or of another version");
  refused([](header& h) { h.kind = message_kind{0}; }, 12, "the message is of no kind");
  refused([](header& h) { h.kind = message_kind{6}; }, 12, "the message is of no kind");
  refused(
    [](header& h) { h.bytes = 13; }, 12, "the message has another length than its header says");
  refused([](header& h) { h.bytes = ~std::uint64_t{}; },
          12,
          "the message has another length than its header says");
  refused([](header& h) { h.worker = 2; }, 12, "the message is of no worker of the plan");
  refused([](header& h) { h.worker = 0xffffffff; }, 12, "the message is of no worker of the plan");
  refused([](header& h) { h.worker = 1; },
          12,
          "the message names another worker than the one that sent it");
  refused([](header& h) { ++h.fingerprint; },
          12,
          "the worker has another plan: codecs, tensors, workers or seed differ");
  refused([](header& h) { h.kind = message_kind::answer; }, 12, "the message is one of a server");
  refused([](header& h) { h.piece = 2; }, 12, "the message is of no piece of the plan");
  refused([](header& h) { h.kind = message_kind::pull; }, 12, "a pull has no payload");
  refused([](header&) {}, 16, "the payload of the push has another length than the plan says");
  refused([](header&) {}, 5000, "the message is longer than any of the plan's");
  refused([](header& h) { h.gain = -1; }, 12, "the gain of the push is negative or not finite");
  refused([](header& h) { h.gain = std::numeric_limits<float>::quiet_NaN(); },
          12,
          "the gain of the push is negative or not finite");
  b.post.send(1, 0, std::span<std::byte const>{});
  b.settle();
  CHECK(b.serving.last_refusal().message == "the message is shorter than a header");
  CHECK(b.serving.counts().steps == 0);
  // And all is as before.
  b.push(0, 0, 1);
  b.push(1, 0, 3);
  b.pull(0, 0);
  b.settle();
  message_header h;
  float mean = 0;
  REQUIRE(b.answered(0, h, mean));
  CHECK(mean == 2.0f);
}

TEST_CASE("[server] messages of any bytes do no harm")
{
  bench b{plan_of({3, 700}, 2), 0ms};
  std::mt19937 random{7};
  auto const any = [&](std::size_t bytes) {
    std::vector<std::byte> out(bytes);
    for (std::byte& v : out) { v = static_cast<std::byte>(random()); }
    return out;
  };
  for (int i = 0; i < 500; ++i) {
    // Codes of any bits under a header that fits, headers with some other bytes, and noise.
    auto const piece        = static_cast<std::uint32_t>(i % 3);
    std::size_t const bytes = b.plan.pieces()[piece].push_bytes;
    message_header h =
      b.header(message_kind::push, piece, i % 2, static_cast<std::uint64_t>(i / 6));
    if (i % 4 < 2) {
      b.send(h, any(bytes));
    } else {
      auto message = any(i % 4 == 2 ? random() % 200 : sizeof h + bytes);
      if (message.size() >= sizeof h && i % 4 == 3) {
        h.bytes = bytes;
        write_header(h, message);
        message[random() % sizeof h] = static_cast<std::byte>(random());
      }
      b.post.send(1 + i % 2, 0, message);
    }
    if (i % 6 == 5) { b.settle(); }
    // A worker that hears noise from its server.
    if (i == 0) {
      loopback_post post{2};
      loopback_messages over{post, 1}, noise{post, 0};
      auto const one = plan_of({300}, 1);
      worker working{one, over, {.patience = 20ms}};
      auto in = gradients_of({300}, 0, 0);
      for (std::size_t n = 0; n < 50; ++n) { REQUIRE(noise.send(1, any(n * 3)) == status{}); }
      CHECK(!working.exchange(spans(in)).ok());
      CHECK(working.counts().refused > 0);
    }
  }
  b.settle();
  CHECK(b.serving.counts().refused > 100);
  CHECK(b.serving.counts().steps > 10);
}
