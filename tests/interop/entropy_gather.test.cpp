// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Entropy-coded gathers: the coder beside the entropy of what it codes, means beside those in double, and messages that must be
//! refused.

#include "support/fnv_digest.hpp"

#include <tersum/interop/entropy_gather.hpp>
#include <tersum/quantize/entropy_coder.hpp>
#include <tersum/single_process/loopback_transport.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

using namespace tersum;

namespace {

using bytes = std::vector<std::byte>;

template <class Body>
void on_ranks(int ranks, Body body)
{
  loopback_group group{ranks};
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { body(rank, loopback_transport{group, rank}); });
  }
}

std::vector<float> normal_values(std::size_t size, unsigned seed)
{
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(size);
  for (float& one : out) { one = normal(random); }
  return out;
}

// Normal values rounded to multiples of a step, from the formulas: the entropy of the codes in bits, and the mean squared error.
struct even_steps {
  double entropy = 0, distortion = 0;
};
even_steps even_steps_of_normal_values(double step)
{
  even_steps out;
  auto const beyond = [](double x) { return std::erfc(x / std::sqrt(2.)) / 2; };
  for (int code = -80; code <= 80; ++code) {
    double const p = beyond((code - .5) * step) - beyond((code + .5) * step);
    if (p > 1e-15) { out.entropy -= p * std::log2(p); }
    // Of x - code step over the code's interval, in 64 strips.
    for (int strip = 0; strip < 64; ++strip) {
      double const lost = ((strip + .5) / 64 - .5) * step;
      double const x    = code * step + lost;
      out.distortion +=
        lost * lost * std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979) * step / 64;
    }
  }
  return out;
}

double squared_error(std::vector<float> const& a, std::vector<float> const& b)
{
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double const lost = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += lost * lost;
  }
  return sum;
}

// Codes through the coder and back. Returns the bytes that they took, 0 if they did not fit.
std::size_t round_trip(std::vector<std::int32_t> const& codes, std::size_t room)
{
  bytes buffer(room + 8, std::byte{0xa5});
  entropy_encoder encoder{std::span{buffer}.first(room)};
  code_model written;
  for (std::int32_t const code : codes) { CHECK(written.pass(encoder, code) == code); }
  std::size_t const size = encoder.finish();
  CHECK(
    std::all_of(buffer.end() - 8, buffer.end(), [](std::byte b) { return b == std::byte{0xa5}; }));
  if (!encoder.fits()) { return 0; }
  entropy_decoder decoder{std::span{buffer}.first(size)};
  code_model read;
  bool same = true;
  for (std::int32_t const code : codes) { same = read.pass(decoder) == code && same; }
  CHECK(same);
  return size;
}

}  // namespace

TEST_CASE("[entropy] bits take their entropy, and what learning costs")
{
  constexpr int count = 200'000;
  for (double const p : {.5, .2, 1 / 16., 1 / 256.}) {
    CAPTURE(p);
    std::mt19937 random(7);
    std::bernoulli_distribution one(p);
    std::vector<bool> bits(count);
    double ones = 0;
    for (auto&& bit : bits) {
      bit = one(random);
      ones += bit ? 1 : 0;
    }
    bytes room(count / 4);
    entropy_encoder encoder{room};
    adaptive_bit written, read;
    for (bool const bit : bits) { encoder.bit(written, bit); }
    std::size_t const size = encoder.finish();
    REQUIRE(encoder.fits());
    entropy_decoder decoder{std::span{room}.first(size)};
    int wrong = 0;
    for (bool const bit : bits) { wrong += decoder.bit(read) == bit ? 0 : 1; }
    CHECK(wrong == 0);
    // The entropy of what was drawn is the least that any fixed probability takes. A mean with weights 1/32, 31/1024, ... of bits
    // has the variance pq / 63, which costs pq / 63 / (2 pq ln 2) = .0115 bits to second order; what is beyond that order is as
    // much again where p is not near the 1/1024 below which the probability does not go.
    double const q        = ones / count;
    double const entropy  = -q * std::log2(q) - (1 - q) * std::log2(1 - q);
    double const measured = 8.0 * static_cast<double>(size) / count;
    CHECK(measured > entropy);
    CHECK(measured < entropy + 2 * .0115);
  }
}

TEST_CASE(
  "[entropy] codes of every magnitude and number come back, and nothing is written behind the room")
{
  std::mt19937 random(3);
  for (std::size_t const size : std::initializer_list<std::size_t>{0, 1, 2, 31, 32, 1021, 20'000}) {
    CAPTURE(size);
    std::vector<std::int32_t> codes(size);
    for (std::int32_t& code : codes) {
      code = static_cast<std::int32_t>(random() & code_model::max_code) >> (random() % 25);
      code = random() % 2 == 0 ? code : -code;
    }
    if (size > 2) {
      codes[0] = code_model::max_code;
      codes[1] = -code_model::max_code;
    }
    std::size_t const taken = round_trip(codes, 8 * size + 8);
    if (taken > 0) { CHECK(round_trip(codes, taken - 1) == 0); }
    std::fill(codes.begin(), codes.end(), 0);
    // A probability ends at 31 / 2^15 above zero, which is .0014 bits; it gets there in some 320 bits.
    CHECK(8.0 * static_cast<double>(round_trip(codes, size + 8)) <
          .0014 * static_cast<double>(size) + 320);
  }
}

TEST_CASE("[entropy] codes of normal values take their entropy and leave the error of their step")
{
  auto const values = normal_values(50'021, 5);
  bytes room(50'021);
  for (float const step : {.5f, 1.f, 2.f}) {
    CAPTURE(step);
    even_steps const exact = even_steps_of_normal_values(step);
    std::size_t const size = detail::entropy_message(values, step, room);
    double const bits      = 8.0 * static_cast<double>(size) / 50'021;
    // The entropy of a draw differs from that of the source by a deviation of -log2 p, which is below 1.5, over sqrt(50,021): six
    // of them. A code takes at most 4 decisions on average, which cost .0115 each to learn; 60 probabilities begin at 1/2 and
    // need 100 bits to arrive, each of which costs less than a third of a bit more than it should.
    CHECK(bits > exact.entropy - .04);
    CHECK(bits < exact.entropy + .04 + 4 * .0115 + 60 * 100 / 3. / 50'021);
    std::vector<float> decoded(values.size());
    CHECK(detail::add_entropy_message(std::span{room}.first(size), decoded));
    // A mean of 50,021 squared errors with a deviation of at most 1.5 times their mean: four of its deviations.
    CHECK(squared_error(decoded, values) / 50'021 ==
          doctest::Approx(exact.distortion).epsilon(4 * 1.5 / 223));
  }
}

TEST_CASE("[entropy] at 2 bits a gradient gets the finest step that fits, on a sample too")
{
  // The budget pays for 2 bits. Learning costs 4 times .0115, and the step may be 2^(1/16) too coarse, 1/16 of a bit: what is left
  // is an entropy of 1.89. An error of codes of 2 bits and a fixed width is .1175 (Lloyd-Max), the rate bound .0625.
  double step = .1;
  while (even_steps_of_normal_values(step).entropy > 1.89) { step *= 1.01; }
  double const bound = even_steps_of_normal_values(step).distortion;
  CHECK(bound < .1175);
  for (std::size_t const size : std::initializer_list<std::size_t>{50'021, 300'000}) {
    CAPTURE(size);
    on_ranks(1, [&](int, loopback_transport const& over) {
      auto const given = normal_values(size, 5);
      auto mean        = given;
      entropy_gather const gather{over, 2};
      CHECK(gather.all_reduce_mean(mean).ok());
      double const error = squared_error(mean, given) / static_cast<double>(size);
      CHECK(error > .0625);
      CHECK(error < bound);
    });
  }
  // Where all that is looked at is zero, the search begins anew: 15/16 of the values share 2 bits.
  on_ranks(1, [&](int, loopback_transport const& over) {
    auto given = normal_values(270'000, 5);
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (i % 65536 < 4096) { given[i] = 0; }
    }
    auto mean = given;
    CHECK(entropy_gather{over, 2}.all_reduce_mean(mean).ok());
    CHECK(squared_error(mean, given) / 270'000 < bound);
  });
}

TEST_CASE(
  "[entropy] means are those in double, equal on all ranks, of any size, in messages within the budget")
{
  for (int const ranks : {1, 2, 3}) {
    for (std::size_t const size :
         std::initializer_list<std::size_t>{0, 1, 15, 16, 17, 1021, 30'000}) {
      CAPTURE(ranks);
      CAPTURE(size);
      std::vector<std::vector<float>> means(static_cast<std::size_t>(ranks));
      std::vector<std::vector<float>> given;
      for (int rank = 0; rank < ranks; ++rank) {
        given.push_back(normal_values(size, static_cast<unsigned>(rank)));
      }
      std::atomic<int> bad = 0;
      on_ranks(ranks, [&](int rank, loopback_transport const& over) {
        auto gradient = given[static_cast<std::size_t>(rank)];
        entropy_gather const gather{over, 32};
        bad += gather.all_reduce_mean(gradient).ok() ? 0 : 1;
        auto const others = static_cast<std::uint64_t>(ranks - 1);
        bad +=
          gather.bytes_sent() <= others * (16 + std::max<std::uint64_t>(256, 4 * size)) ? 0 : 1;
        means[static_cast<std::size_t>(rank)] = gradient;
      });
      CHECK(bad == 0);
      // Steps are at most 2^-23 of the largest, which is below 6, so that a code is off by at most 6 2^-24; sums of three floats
      // below 6 are rounded to 2^-22 three times. The first codes take up to 50
      // bits, for which a message's 256 bytes are there; later ones less than 32.
      int far = 0;
      for (std::size_t i = 0; i < size; ++i) {
        double exact = 0;
        for (auto const& one : given) { exact += one[i]; }
        far +=
          std::fabs(means[0][i] - exact / ranks) <= std::ldexp(6., -24) + 3 * std::ldexp(1., -22)
            ? 0
            : 1;
      }
      CHECK(far == 0);
      for (auto const& mean : means) { CHECK(mean == means[0]); }
    }
  }
}

TEST_CASE(
  "[entropy] what a step loses is in the residual: estimates and residual add up to what was given")
{
  constexpr std::size_t size = 5'003;
  std::vector<double> sums(size), given(size), kept(size);
  std::vector<std::vector<float>> residuals(2, std::vector<float>(size));
  for (unsigned step = 0; step < 4; ++step) {
    std::vector<float> mean;
    on_ranks(2, [&](int rank, loopback_transport const& over) {
      auto gradient = normal_values(size, step * 2 + static_cast<unsigned>(rank));
      entropy_gather const gather{over, .7};
      CHECK(gather.all_reduce_mean(gradient, residuals[static_cast<std::size_t>(rank)]).ok());
      CHECK(gather.bytes_sent() <= 16 + static_cast<std::uint64_t>(.7 * size / 8));
      if (rank == 0) { mean = gradient; }
    });
    for (unsigned rank = 0; rank < 2; ++rank) {
      auto const one = normal_values(size, step * 2 + rank);
      for (std::size_t i = 0; i < size; ++i) { given[i] += one[i] / 2.; }
    }
    for (std::size_t i = 0; i < size; ++i) { sums[i] += mean[i]; }
  }
  double largest = 0;
  for (std::size_t i = 0; i < size; ++i) {
    kept[i] = (static_cast<double>(residuals[0][i]) + residuals[1][i]) / 2;
    largest = std::max(largest, std::fabs(sums[i] + kept[i] - given[i]));
  }
  // Four steps, in each of which a sum of two and an addition to each residual, all below 16, are rounded to 2^-21.
  CHECK(largest < 4 * 3 * std::ldexp(1., -21));
}

TEST_CASE("[entropy] messages and means are what they were")
{
  // From integers alone, of unlike sizes: every machine makes the same ones.
  constexpr std::size_t size = 5'003;
  auto const given           = [](std::uint32_t rank) {
    std::vector<float> out(size);
    std::uint32_t x = 12345u + rank;
    for (std::size_t i = 0; i < size; ++i) {
      x      = x * 1664525u + 1013904223u;
      out[i] = static_cast<float>(static_cast<std::int32_t>(x >> 8) - (1 << 23)) *
               (i % 700 < 350 ? 0x1p-26f : 0x1p-24f);
    }
    return out;
  };
  auto const value = [](std::span<std::byte const> of) {
    tests::fnv_digest all;
    all.add(of);
    return all.value();
  };
  bytes room(size);
  room.resize(detail::entropy_message(given(0), 0x1p-2f, room));
  CHECK(room.size() == 754);
  CHECK(value(room) == 0xb1a906fe0fd9f173u);
  for (double const bits : {1., 3.}) {
    CAPTURE(bits);
    std::vector<float> means[2], residuals[2];
    std::uint64_t sent[2]{};
    on_ranks(2, [&](int rank, loopback_transport const& over) {
      entropy_gather const gather{over, bits};
      means[rank] = given(static_cast<std::uint32_t>(rank));
      residuals[rank].resize(size);
      CHECK(gather.all_reduce_mean(means[rank], residuals[rank]).ok());
      sent[rank] = gather.bytes_sent();
    });
    CHECK(means[0] == means[1]);
    CHECK(sent[0] == (bits == 1 ? 618 : 1838));
    CHECK(sent[1] == (bits == 1 ? 613 : 1849));
    CHECK(value(std::as_bytes(std::span{means[0]})) ==
          (bits == 1 ? 0x5c57e470385a461du : 0x629833534acfe64u));
    CHECK(value(std::as_bytes(std::span{residuals[1]})) ==
          (bits == 1 ? 0x8e06daf58d312683u : 0x589b4efa06dad36fu));
  }
}

TEST_CASE("[entropy] zeros, subnormals and what is not finite travel in a step alone")
{
  for (float const value : {0.f,
                            std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    CAPTURE(value);
    on_ranks(2, [&](int rank, loopback_transport const& over) {
      std::vector<float> gradient(100, rank == 1 && !std::isfinite(value) ? 1.f : 0.f);
      if (rank == 0) { gradient[3] = value; }
      std::vector<float> residual(100, rank == 0 && !std::isfinite(value) ? 2.f : 0.f);
      entropy_gather const gather{over, 4};
      CHECK(gather.all_reduce_mean(gradient, residual).ok());
      if (rank == 0) { CHECK(gather.bytes_sent() == 16 + 4); }
      for (float const mean : gradient) { CHECK(std::isnan(mean) == !std::isfinite(value)); }
      if (rank == 0 && !std::isfinite(value)) { CHECK(residual == std::vector<float>(100, 2.f)); }
    });
  }
}

TEST_CASE("[entropy] disturbed messages are refused and touch nothing else")
{
  auto const values = normal_values(2'000, 1);
  bytes room(2'000);
  room.resize(detail::entropy_message(values, .5f, room));
  REQUIRE(room.size() > 100);
  std::vector<float> sums(values.size());
  CHECK(detail::add_entropy_message(room, sums));
  std::mt19937 random(11);
  // Each is taken with a probability of 2^-16: one of 1000 in one of 65 runs, two in one of 8600.
  int taken = 0;
  for (int i = 0; i < 1000; ++i) {
    auto disturbed = room;
    if (i % 4 == 0) {
      disturbed.resize(random() % room.size());
    } else if (i % 4 == 1) {
      for (std::byte& one : disturbed) { one = static_cast<std::byte>(random() % 256); }
    } else {
      disturbed[random() % room.size()] ^= static_cast<std::byte>(1 + random() % 255);
    }
    std::vector<float> guarded(values.size() + 2);
    guarded.front() = guarded.back() = 7.f;
    bool const good =
      detail::add_entropy_message(disturbed, std::span{guarded}.subspan(1, values.size()));
    // The last bits of a message may be any.
    taken += good && !std::equal(sums.begin(), sums.end(), guarded.begin() + 1) ? 1 : 0;
    CHECK((guarded.front() == 7.f && guarded.back() == 7.f));
  }
  CHECK(taken <= 1);
  sums.pop_back();
  CHECK_FALSE(detail::add_entropy_message(room, sums));
}

TEST_CASE(
  "[entropy] ranks with unlike sizes, bits that are none and residuals of another size are named")
{
  on_ranks(2, [](int rank, loopback_transport const& over) {
    std::vector<float> gradient(rank == 0 ? 10 : 11, 1.f);
    status const s = entropy_gather{over, 4}.all_reduce_mean(gradient);
    CHECK(s.code == error_code::invalid_argument);
    CHECK(s.message.find("unlike sizes") != std::string_view::npos);
  });
  on_ranks(1, [](int, loopback_transport const& over) {
    for (double const bits : {0., -1., 33., std::numeric_limits<double>::quiet_NaN()}) {
      CHECK(entropy_gather{over, bits}.check().code == error_code::invalid_argument);
    }
    std::vector<float> gradient(10), residual(9);
    CHECK(entropy_gather{over, 4}.all_reduce_mean(gradient, residual).code ==
          error_code::invalid_argument);
  });
}
