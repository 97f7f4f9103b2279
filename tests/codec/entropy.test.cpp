// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Codes of unlike lengths, against a decoder and a count of bits of their own, made from docs/wire_format.md; what they must reach on
//! gradients with many zeros.

#include "support/bad_input.hpp"
#include "support/loopback_run.hpp"
#include "support/normal_gradients.hpp"
#include "support/sample_gradients.hpp"

#include <tersum/block/detail/host_machine.hpp>
#include <tersum/exchange/detail/cpu/cpu_stream_kernels.hpp>
#include <tersum/exchange/detail/stream_codes.hpp>
#include <tersum/feedback/decayed_feedback.hpp>
#include <tersum/feedback/kept_by.hpp>
#include <tersum/feedback/kept_in.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>
#include <tersum/quantize/bit_streams.hpp>
#include <tersum/quantize/rice_codes.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace tersum;

namespace {

using tests::gradients;

// Bits of words, one by one.
struct bits_of_words {
  std::uint32_t const* words;
  std::uint64_t at;

  unsigned next()
  {
    unsigned const bit = words[at / 32] >> (at % 32) & 1u;
    ++at;
    return bit;
  }
  std::uint64_t number(unsigned count)
  {
    std::uint64_t out = 0;
    for (unsigned i = 0; i < count; ++i) { out |= std::uint64_t{next()} << i; }
    return out;
  }
  std::uint64_t rice(unsigned order)
  {
    std::uint64_t high = 0;
    while (next() == 0) { ++high; }
    return high * (std::uint64_t{1} << order) + number(order);
  }
  std::uint64_t run(unsigned order) { return next() != 0 ? 0 : 1 + rice(order); }
  std::uint64_t exponential(unsigned order)
  {
    unsigned bits = order;
    while (next() == 0) { ++bits; }
    return (std::uint64_t{1} << bits) + number(bits) - (std::uint64_t{1} << order);
  }
};

// What a message says: two steps, codes, and of each chunk how many bits they take and which step they have.
struct message {
  double steps[2]    = {};
  std::uint64_t bits = 0;
  std::vector<std::uint64_t> lengths;
  std::vector<unsigned> finer;
  std::vector<std::int64_t> codes;
};

message read_message(std::uint32_t const* words,
                     std::size_t room,
                     std::size_t chunks,
                     std::size_t size)
{
  message out;
  float steps[2];
  std::memcpy(steps, words, sizeof steps);
  for (int i = 0; i < 2; ++i) { out.steps[i] = static_cast<double>(steps[i]); }
  out.codes.resize(chunks * size);
  std::size_t const head = 2 + (room + 1) / 2;
  bits_of_words in{words + head, 0};
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    std::uint64_t const length = words[2 + chunk / 2] >> (16 * (chunk % 2)) & 0xffffu;
    std::uint64_t const end    = in.at + length;
    out.lengths.push_back(length);
    out.finer.push_back(0);
    if (length == 0) { continue; }
    auto const runs       = static_cast<unsigned>(in.number(4));
    bool const in_line    = in.next() != 0;
    auto const magnitudes = static_cast<unsigned>(in.number(5));
    out.finer.back()      = in.next();
    std::size_t i         = 0;
    while (in.at < end) {
      bool minus         = false;
      std::uint64_t code = 0;
      if (runs != 15 && !in_line) {
        i += in.run(runs);
        minus = in.next() != 0;
        code  = in.exponential(magnitudes) + 1;
      } else {
        code = in.rice(magnitudes);
        if (code != 0) {
          minus = in.next() != 0;
        } else if (in_line) {
          i += in.rice(runs);
        }
      }
      REQUIRE(i < size);
      auto const magnitude          = static_cast<std::int64_t>(code);
      out.codes[chunk * size + i++] = minus ? -magnitude : magnitude;
    }
    REQUIRE(in.at == end);
    out.bits += length;
  }
  return out;
}

// The order of `count` numbers, by docs/wire_format.md.
unsigned order_of(double count, double sum)
{
  unsigned order = 0;
  while (129 * count * std::exp2(order) <= 31 * (2 * sum + count)) { ++order; }
  return order;
}

// Bits of a chunk, by docs/wire_format.md.
std::uint64_t bits_of(std::vector<std::uint64_t> const& codes)
{
  std::uint64_t some = 0, gaps = 0, end = 0, sum = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == 0) { continue; }
    ++some;
    if (i > end) { ++gaps; }
    end = i + 1;
    sum += codes[i];
  }
  if (some == 0) { return 0; }
  auto const order = [](std::uint64_t count, std::uint64_t all) {
    return order_of(static_cast<double>(count), static_cast<double>(all));
  };
  unsigned const k = gaps > 0 ? order(gaps, end - some - gaps) : 0, m = order(some, sum - some),
                 line = order(some + gaps, sum), all = order(codes.size(), sum);
  unsigned const of_magnitude = m > 0 ? m - 1 : 0;
  auto const rice      = [](std::uint64_t number, unsigned o) { return (number >> o) + 1 + o; };
  std::uint64_t behind = 0, in_line = 0, each = 0, zeros = 0;
  for (std::uint64_t const code : codes) {
    each += rice(code, all) + (code > 0 ? 1 : 0);
    if (code == 0) {
      ++zeros;
      continue;
    }
    int const longest = std::ilogb(static_cast<double>(code - 1) + std::exp2(of_magnitude));
    behind += 1 + (zeros > 0 ? rice(zeros - 1, k) : 0) + 1 +
              2 * static_cast<std::uint64_t>(longest) + 1 - of_magnitude;
    in_line += (zeros > 0 ? rice(0, line) + rice(zeros - 1, k) : 0) + rice(code, line) + 1;
    zeros = 0;
  }
  return 11 + std::min({behind, in_line, each});
}

gradients sparse_gradients(int world, std::size_t d, double filled, unsigned seed)
{
  gradients all = tests::normal_gradients(world, d, seed);
  std::mt19937 random(seed);
  for (auto& gradient : all) {
    for (float& value : gradient) {
      // Heavy tails, many zeros.
      value = static_cast<double>(random()) < filled * 4294967296.0 ? value * value * value : 0.0f;
    }
  }
  return all;
}

// Checks the codes of a message of `values`, chunk for chunk, and returns what they stand for.
std::vector<double> check_message(std::uint32_t const* words,
                                  std::size_t count,
                                  std::size_t room,  // chunks, for lengths
                                  std::vector<std::vector<double>> const& values,
                                  std::size_t size)
{
  auto const read              = read_message(words, room, values.size(), size);
  std::uint64_t const capacity = 32 * (count - 2 - (room + 1) / 2);
  double largest               = 0;
  std::uint64_t missing        = 0;
  std::vector<double> out;
  CHECK(read.bits <= capacity);
  for (std::size_t chunk = 0; chunk < values.size(); ++chunk) {
    std::vector<std::uint64_t> codes, finer;
    double const step = read.steps[read.finer[chunk]];
    for (std::size_t i = 0; i < size; ++i) {
      double const value = values[chunk][i];
      auto const code    = static_cast<double>(read.codes[chunk * size + i]);
      // A dead zone; the quotient is rounded twice, by 2^-24 of it each.
      REQUIRE(std::abs(value - code * step) <= step * .65 + 4 * 0x1p-24 * std::abs(value));
      largest = std::max(largest, std::abs(value));
      codes.push_back(static_cast<std::uint64_t>(std::abs(code)));
      float const quotient =
        std::abs(static_cast<float>(value)) * (1 / static_cast<float>(read.steps[1]));
      bool const some = read.steps[1] > 0 && quotient >= .65f;
      finer.push_back(some ? static_cast<std::uint64_t>(quotient + 0x1.fffffep-2f) : 0);
      // A code that is not zero is that of the nearest multiple.
      REQUIRE(
        (code == 0 || std::abs(value - code * step) <= step * .5 + 4 * 0x1p-24 * std::abs(value)));
      out.push_back(code * step);
    }
    CHECK(read.lengths[chunk] == bits_of(codes));
    if (read.steps[1] > 0 && read.finer[chunk] == 0) {
      std::uint64_t const next = bits_of(finer);
      if (next > read.lengths[chunk]) { missing = std::max(missing, next - read.lengths[chunk]); }
    }
  }
  // A sixteenth of an octave; 0 of zeros, and behind the finest.
  if (read.steps[0] > 0 && read.steps[1] > 0) {
    CHECK(read.steps[0] / read.steps[1] == doctest::Approx(std::exp2(1. / 16)).epsilon(1e-6));
  }
  if (read.steps[1] == 0 && largest > 0) { CHECK(read.steps[0] <= largest * 0x1p-24); }
  // If there is a finer step, there is no room left for some chunk with it.
  CHECK((missing > 0) == (read.steps[1] > 0));
  if (missing > 0) { CHECK(capacity - read.bits < missing); }
  return out;
}

// Every `apart`th chunk of a gradient.
std::vector<std::vector<double>> chunks_of(std::vector<float> const& gradient,
                                           std::size_t size,
                                           std::size_t first = 0,
                                           std::size_t apart = 1)
{
  std::vector<std::vector<double>> out;
  for (std::size_t begin = first * size; begin < gradient.size(); begin += apart * size) {
    out.emplace_back(gradient.begin() + static_cast<std::ptrdiff_t>(begin),
                     gradient.begin() +
                       static_cast<std::ptrdiff_t>(std::min(gradient.size(), begin + size)));
    out.back().resize(size);
  }
  return out;
}

// The mean of what messages stand for, and of its magnitudes.
struct means {
  std::vector<double> mean, size;

  void add(std::vector<double> const& values, double share)
  {
    mean.resize(values.size());
    size.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      mean[i] += values[i] * share;
      size[i] += std::abs(values[i]) * share;
    }
  }
};

// Values of which a share is zero, with tails of two weights.
template <int Size>
std::vector<float> make_chunk(std::mt19937& random, double filled, int power)
{
  std::normal_distribution<float> normal;
  std::vector<float> out(Size);
  for (float& value : out) {
    float const draw = normal(random);
    value = 1e-3f * std::pow(std::abs(draw), static_cast<float>(power)) * (draw < 0 ? -1.0f : 1.0f);
    if (static_cast<double>(random()) >= filled * 4294967296.0) { value = draw < 0 ? -0.0f : 0.0f; }
  }
  return out;
}

// Sums of two chunks of the same words, by code after code as kernels read them.
template <int Size>
std::vector<float> plain_sums(std::vector<std::uint32_t> const& words,
                              float const (&steps)[2],
                              std::uint32_t from,
                              std::uint32_t bits)
{
  detail::host_machine const machine;
  std::vector<float> sums(Size);
  if (bits == 0) { return sums; }
  detail::read_codes<Size>(machine,
                           words.data(),
                           words.size(),
                           from,
                           bits,
                           [&](std::uint32_t place, std::uint32_t code, bool minus, bool finer) {
                             float const size =
                               detail::value_of_code(machine, code, steps[finer ? 1 : 0]);
                             sums[place] += minus ? -size : size;
                           });
  return sums;
}

// Chunks of these first bits and lengths, which the CPU reads in turns.
template <int Size>
void check_windows(std::vector<std::uint32_t> const& words,
                   std::vector<std::pair<std::uint32_t, std::uint32_t>> const& chunks)
{
  float const steps[2] = {.5f, .25f};
  std::vector<std::vector<float>> sums(chunks.size(), std::vector<float>(Size));
  std::vector<detail::read_item> items;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    items.push_back({chunks[i].first, chunks[i].second, sums[i].data()});
  }
  detail::add_chunks<Size>(words.data(), words.size(), steps, items);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    REQUIRE(sums[i] == plain_sums<Size>(words, steps, chunks[i].first, chunks[i].second));
  }
}

template <int Size>
void check_chunk(std::mt19937& random, std::vector<float> values)
{
  detail::host_machine const machine;
  detail::chunk_values<false, Size> const chunk{values.data(), 0};
  std::uint32_t const peak = detail::peak_of(machine, chunk);
  for (float const share : {2.0f, 1.5f, .4f, .1f, 1e-2f, 1e-3f, 1e-5f, 3e-8f, 4e-9f}) {
    float const step    = share * detail::bits_float(peak) + 1e-30f;
    float const inverse = 1 / step;
    auto const coded    = detail::code_chunk(machine, chunk, peak, step);
    auto const bits     = detail::bits_of(coded);
    auto const from     = static_cast<std::uint32_t>(random() % 100);
    std::vector<std::uint32_t> plain((from + bits) / 32 + 2), words;
    if (bits > 0) { detail::write_codes(machine, chunk, coded, false, plain.data(), from); }
    CAPTURE(share);
    for (auto const set :
         {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
      if (set > best_instruction_set()) { continue; }
      CAPTURE(static_cast<int>(set));
      REQUIRE(detail::find_peak<Size>(set, values.data()) == peak);
      REQUIRE(detail::bits_of_chunk<Size>(set, values.data(), peak | 0xffffu, inverse) == bits);
      words.assign(plain.size(), 0);
      if (bits > 0) {
        detail::write_chunk<Size>(set, values.data(), inverse, false, words.data(), from);
      }
      REQUIRE(words == plain);
      float sent[Size];
      detail::find_sent<Size>(set, values.data(), inverse, step, sent);
      for (std::size_t i = 0; i < Size; ++i) {
        float const size =
          detail::value_of_code(machine, code_magnitude(machine, values[i], inverse), step);
        REQUIRE(detail::float_bits(sent[i]) == detail::float_bits(std::copysign(size, values[i])));
      }
    }
    check_windows<Size>(plain, {{from, bits}});
    check_windows<Size>(plain, {{from, bits}, {0, 0}, {from, bits}});
  }
}

template <class Codec>
void check_exchange(Codec const& codec, gradients const& in)
{
  std::size_t const d = in[0].size(), ranks = in.size();
  auto const world   = static_cast<int>(ranks);
  double const share = 1.0 / world;
  CAPTURE(d);
  CAPTURE(world);
  tests::loopback_run<Codec> run{codec, layout{d}, world, 3, {.threads = 2}};
  auto const& out              = run.exchange(in);
  auto const& plan             = run.plan();
  std::size_t const words      = plan.part_bytes() / 4;
  std::size_t const mean_words = plan.mean_part_bytes() / 4;
  constexpr std::size_t size   = Codec::chunk_size;
  auto const wire              = gathered_wire(plan, run.workspace());
  // Of each rank the code as a float, the share of the step, their product and a sum.
  double const rounding = (3 + world) * 1.01 * 0x1p-24;
  if constexpr (scattering<Codec>) {
    std::size_t const room = plan.owned_chunks();
    for (std::size_t owner = 0; owner < ranks; ++owner) {
      auto const arrived = scattered_wire(plan, run.workspace(static_cast<int>(owner)));
      means sums;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        auto const values = chunks_of(in[rank], size, owner, ranks);
        sums.add(check_message(arrived.received + rank * words, words, room, values, size), share);
      }
      // What the owner encodes is the sum in float. Codes at a boundary may be either.
      std::vector<std::vector<double>> values(sums.mean.size() / size);
      auto const read = read_message(wire.data + owner * mean_words, room, values.size(), size);
      CHECK(read.bits <= 32 * (mean_words - 2 - (room + 1) / 2));
      for (std::size_t i = 0; i < sums.mean.size(); ++i) {
        double const step = read.steps[read.finer[i / size]];
        double const sent = static_cast<double>(read.codes[i]) * step;
        REQUIRE(std::abs(sums.mean[i] - sent) <=
                step * .65 + 4 * 0x1p-24 * std::abs(sent) + rounding * sums.size[i]);
        std::size_t const at = (i / size * ranks + owner) * size + i % size;
        if (at < d) {
          REQUIRE(std::abs(static_cast<double>(out[0][at]) - sent) <= 0x1p-23 * std::abs(sent));
        }
      }
    }
  } else {
    means sums;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      auto const values = chunks_of(in[rank], size);
      sums.add(check_message(wire.data + rank * words, words, values.size(), values, size), share);
    }
    for (std::size_t i = 0; i < d; ++i) {
      REQUIRE(std::abs(sums.mean[i] - static_cast<double>(out[0][i])) <= rounding * sums.size[i]);
    }
  }
  for (auto const& other : out) { CHECK(other == out[0]); }
}

}  // namespace

TEST_CASE("[entropy] numbers come back under every order, and take the bits that they should")
{
  detail::host_machine const machine;
  std::mt19937 random(11);
  for (std::uint32_t order = 0; order < 31; ++order) {
    std::vector<std::uint32_t> numbers, words(4000);
    std::uint32_t from = order % 7 * 5, bits = 0;
    for (int i = 0; i < 100; ++i) {
      numbers.push_back(
        static_cast<std::uint32_t>((std::uint64_t{random() % 200} << order) / 3 % (1u << 30)));
    }
    bit_writer<detail::host_machine> out{machine, words.data(), from};
    for (std::uint32_t const number : numbers) {
      out.rice(number, order);
      out.exponential(number, order);
      bits += rice_bits(number, order) + exponential_bits(number, order);
    }
    out.finish();
    bit_reader<detail::host_machine> in{machine, words.data(), words.size(), from, bits};
    bits_of_words plain{words.data(), from};
    for (std::uint32_t const number : numbers) {
      REQUIRE(in.more());
      REQUIRE(in.rice(order) == number);
      REQUIRE(in.exponential(order) == number);
      REQUIRE(plain.rice(order) == number);
      REQUIRE(plain.exponential(order) == number);
    }
    CHECK(!in.more());
    CHECK(plain.at == from + bits);
  }
}

TEST_CASE("[entropy] chunks as the CPU codes them have the bits that code after code has")
{
  std::mt19937 random(12);
  for (double const filled : {0., .004, .02, .1, .3, .6, 1.}) {
    for (int const power : {0, 1, 3, 9}) {
      CAPTURE(filled);
      CAPTURE(power);
      check_chunk<128>(random, make_chunk<128>(random, filled, power));
      check_chunk<512>(random, make_chunk<512>(random, filled, power));
      check_chunk<1024>(random, make_chunk<1024>(random, filled, power));
    }
  }
  // Of all lengths up to those that no window holds: a code behind more and more zeros, which is longer than all others.
  for (std::size_t zeros = 0; zeros < 80; ++zeros) {
    CAPTURE(zeros);
    auto values = make_chunk<512>(random, 1, 1);
    std::fill(values.begin() + 200, values.end(), 0.0f);
    values[200 + zeros] = 1e5f;
    check_chunk<512>(random, values);
  }
}

TEST_CASE(
  "[entropy] of words that were disturbed the CPU reads the same in windows as code after code")
{
  std::mt19937 random(13);
  for (int round = 0; round < 2000; ++round) {
    // Sparse ones, so that there are long runs; lengths and places beyond the end.
    std::vector<std::uint32_t> words(1 + random() % 60);
    auto const thin = static_cast<unsigned>(random() % 6);
    for (std::uint32_t& word : words) {
      word = static_cast<std::uint32_t>(random());
      for (unsigned i = 0; i < thin; ++i) { word &= static_cast<std::uint32_t>(random()); }
    }
    std::vector<std::pair<std::uint32_t, std::uint32_t>> chunks(random() % 6);
    for (auto& [from, bits] : chunks) {
      from = static_cast<std::uint32_t>(random() % 2200);
      bits = static_cast<std::uint32_t>(random() % (round % 9 == 0 ? 65535 : 900));
    }
    CAPTURE(round);
    check_windows<128>(words, chunks);
    check_windows<512>(words, chunks);
  }
}

TEST_CASE("[entropy] the order of a sum is the best for numbers of a geometric distribution")
{
  // The mean length under order k is k + 1 / (1 - t^(2^k)), where t = mean / (1 + mean).
  for (double mean = .05; mean < 1e6; mean *= 1.07) {
    double const t    = mean / (1 + mean);
    auto const length = [&](double k) { return k + 1 / (1 - std::pow(t, std::exp2(k))); };
    double best       = length(0);
    for (int k = 1; k < 25; ++k) { best = std::min(best, length(k)); }
    auto const order = rice_order(1u << 10, static_cast<std::uint64_t>(mean * 1024));
    CAPTURE(mean);
    CHECK(length(order) <= 1.01 * best);
  }
}

TEST_CASE("[entropy] messages hold the codes of the finest step that fits, and means are theirs")
{
  for (double const filled : {.03, .3, 1.}) {
    check_exchange(entropy_codec<>{.bits = 1}, sparse_gradients(2, 9001, filled, 5));
    check_exchange(entropy_codec<no_feedback, 128>{.bits = 6},
                   sparse_gradients(3, 4097, filled, 6));
    check_exchange(entropy_codec<no_feedback, 1024>{.bits = .1f},
                   sparse_gradients(1, 5000, filled, 7));
  }
  for (std::size_t const d : {1u, 2u, 511u, 512u, 513u, 1025u}) {
    check_exchange(presets::entropy_2, sparse_gradients(2, d, .5, 8));
    check_exchange(presets::entropy_two_shot_2, sparse_gradients(3, d, .5, 8));
  }
  for (double const filled : {.03, .3, 1.}) {
    check_exchange(entropy_two_shot_codec<no_feedback, 128>{.bits = 3},
                   sparse_gradients(4, 9001, filled, 9));
    check_exchange(presets::entropy_two_shot_1, sparse_gradients(3, 20000, filled, 9));
  }
  gradients const zeros(2, std::vector<float>(3000));
  check_exchange(presets::entropy_1, zeros);
}

TEST_CASE("[entropy] of few coordinates hardly anything is lost, whatever their size")
{
  float const most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::min();
  for (float const value : {1.0f, -most, 3e-30f, least, 2 * least, 1.9f * least}) {
    CAPTURE(value);
    tests::loopback_run run{presets::entropy_2, layout{1}, 1, 3};
    float const got = run.exchange({{value}})[0][0];
    CHECK(std::abs(static_cast<double>(got) / static_cast<double>(value) - 1) <=
          (value < 4 * least && value > 0 ? .5 : 0x1p-22));
  }
  tests::loopback_run run{presets::entropy_2, layout{2}, 2, 3};
  for (float const value : run.exchange({{1e-39f, -1e-44f}, {0.0f, -0.0f}})[0]) {
    CHECK(value == 0);
  }
}

TEST_CASE("[entropy] the plan fixes the size of messages, which have the traffic of two shots")
{
  // 100000 coordinates at 1 bit, of 4 ranks: half a bit for each, 6250 bytes, is 6256 in whole vectors.
  auto const plan = presets::entropy_1.plan(layout{100000}, {.size = 4, .rank = 1});
  CHECK(plan.check() == status{});
  CHECK(plan.part_bytes() == 6256);
  CHECK(plan.wire_bytes() == 6256);
  CHECK(presets::entropy_1.plan(layout{100000}, {.size = 2}).part_bytes() == 12512);
  // Steps and lengths, and 194 bytes for a chunk with codes from -1 to 1: 2 + 1 words and 2 + 2.
  CHECK(presets::entropy_1.plan(layout{513}, {.size = 1000}).part_bytes() == 208);
  CHECK(presets::entropy_1.plan(layout{1025}, {.size = 1000}).part_bytes() == 224);
  CHECK(presets::entropy_1.plan(layout{}, {.size = 2}).wire_bytes() == 0);
  // .8 bits for each in four parts of 2500 bytes, and 1.2 of the mean in four of 3750.
  auto const two_shots = presets::entropy_two_shot_1.plan(layout{100000}, {.size = 4, .rank = 3});
  CHECK(two_shots.part_bytes() == 2512);
  CHECK(two_shots.mean_part_bytes() == 3760);
  CHECK(two_shots.wire_bytes() == 2 * (2512 + 3760));
  // The sum stays, whatever ranks share.
  for (auto const& [ranks, up] : {std::pair{1, 1.}, {2, .9}, {3, .8}, {4, .8}, {1000, .8}}) {
    auto const plan = entropy_two_shot_codec<>{.bits = 32}.plan(layout{8000000}, {.size = ranks});
    CHECK(static_cast<double>(plan.payload_bytes()) == doctest::Approx(32e6 * up).epsilon(1e-3));
    CHECK(static_cast<double>(plan.mean_bytes()) == doctest::Approx(32e6 * (2 - up)).epsilon(1e-3));
  }
  auto const even = entropy_two_shot_codec<>{.bits = 1, .up = 1}.plan(layout{100000}, {.size = 4});
  CHECK(even.part_bytes() == 3136);
  CHECK(even.mean_part_bytes() == 3136);
  CHECK(two_shots.wire_bytes() * 2 * 3 / 4 - 3 * 6256 <=
        2 * 3 * 16);  // what a rank sends, beside the other
  for (float const bits : {0.0f, -1.0f, 65.0f, std::numeric_limits<float>::quiet_NaN()}) {
    CHECK(tests::mentions(
      entropy_codec<>{.bits = bits}.plan(layout{9}, {.size = 2, .rank = 0}).check(), "bits"));
  }
  for (float const up : {-.1f, 2.0f, std::numeric_limits<float>::quiet_NaN()}) {
    CHECK(tests::mentions(
      entropy_two_shot_codec<>{.up = up}.plan(layout{9}, {.size = 2, .rank = 0}).check(), "up"));
  }
  CHECK(tests::mentions(
    presets::entropy_1.plan(layout{std::uint64_t{1} << 33}, {.size = 2, .rank = 0}).check(),
    "layout.coordinates"));
}

TEST_CASE("[entropy] feedback keeps what a rank's codes lost")
{
  constexpr std::size_t d = 3000;
  constexpr int world = 3, steps = 50;
  auto const in = sparse_gradients(world, d, .3, 23);
  tests::loopback_run run{presets::entropy_1_ef, layout{d}, world, 5};
  std::vector<double> sum(d);
  double largest = 0;
  for (auto const& gradient : in) {
    for (float const value : gradient) {
      largest = std::max(largest, std::abs(static_cast<double>(value)));
    }
  }
  for (int t = 1; t <= steps; ++t) {
    auto const& out = run.exchange(in)[0];
    for (std::size_t i = 0; i < d; ++i) {
      sum[i] += static_cast<double>(out[i]);
      double mean = 0, kept = 0;
      for (int r = 0; r < world; ++r) {
        mean += static_cast<double>(in[static_cast<std::size_t>(r)][i]) / world;
        kept += static_cast<double>(run.residual(r)[i]) / world;
      }
      // A few roundings of values up to twice the largest in each step.
      REQUIRE(std::abs(sum[i] - t * mean + kept) <= t * 10 * 0x1p-24 * largest);
    }
  }
}

// In blocks a chunk keeps what it would in floats, to a step of its block, which is a 127th of the largest; and nothing else is lost.
template <class Floats, class Blocks>
void check_blocks(Floats const& floats, Blocks const& blocks, gradients const& in, int steps)
{
  std::size_t const d = in[0].size();
  auto const world    = static_cast<int>(in.size());
  tests::loopback_run<Floats> plain{floats, layout{d}, world, 5};
  tests::loopback_run<Blocks> run{blocks, layout{d}, world, 5};
  constexpr std::size_t size = Blocks::chunk_size;
  auto const kept_of         = [&](int rank, std::size_t i) -> auto const&
  {
    return run.residual(rank)[i / size];
  };
  std::vector<double> sum(d), rounded(d);
  for (int t = 1; t <= steps; ++t) {
    auto const& out = run.exchange(in);
    for (auto const& other : out) { REQUIRE(other == out[0]); }
    if (t == 1) { REQUIRE(plain.exchange(in)[0] == out[0]); }
    for (std::size_t i = 0; i < d; ++i) {
      sum[i] += static_cast<double>(out[0][i]);
      double mean = 0, kept = 0;
      for (int r = 0; r < world; ++r) {
        auto const& chunk  = kept_of(r, i);
        auto const at      = static_cast<int>(i % size);
        double const value = static_cast<double>(chunk.value(at));
        double const step  = static_cast<double>(chunk.steps[chunk.block_of(at)]);
        mean += static_cast<double>(in[static_cast<std::size_t>(r)][i]) / world;
        kept += value / world;
        rounded[i] += step / world;
        if (t == 1) {
          double const lost = static_cast<double>(plain.residual(r)[i]);
          REQUIRE(std::abs(value - lost) <= step * 1.001);
          REQUIRE(std::abs(lost) <= step * 127.001);
        }
      }
      if constexpr (!scattering<Blocks>) {
        REQUIRE(std::abs(sum[i] - t * mean + kept) <=
                rounded[i] * 1.001 + t * 0x1p-20 * (std::abs(mean) + 1e-3));
      }
    }
  }
}

TEST_CASE("[entropy] feedback in blocks of bytes keeps what floats keep, to their step")
{
  using ranks   = kept_by_ranks<>;
  using blocks  = kept_in<byte_blocks>;
  auto const in = sparse_gradients(3, 3000, .3, 23);
  check_blocks(entropy_codec<error_feedback>{.bits = 1}, entropy_codec<blocks>{.bits = 1}, in, 9);
  check_blocks(
    entropy_codec<error_feedback, 128>{.bits = 1}, entropy_codec<blocks, 128>{.bits = 1}, in, 9);
  check_blocks(entropy_two_shot_codec<ranks>{.bits = 1},
               entropy_two_shot_codec<kept_in<byte_blocks, ranks>>{.bits = 1},
               in,
               2);
  check_blocks(entropy_codec<error_feedback, 256, kept_diagonal>{.bits = 2},
               entropy_codec<blocks, 256, kept_diagonal>{.bits = 2},
               in,
               1);
}

// What ranks and owners keep together, of the mean.
template <class Run>
std::vector<double> kept_together(Run const& run, std::size_t d, std::size_t world)
{
  std::vector<double> kept(d);
  auto const& plan           = run.plan();
  constexpr std::size_t size = 128;
  for (std::size_t r = 0; r < world; ++r) {
    auto const state = run.state(static_cast<int>(r));
    auto const* const of_owner =
      reinterpret_cast<float const*>(state.data() + plan.owner_residual_offset());
    for (std::size_t i = 0; i < d; ++i) {
      std::size_t const chunk = i / size;
      double all              = 0;
      if constexpr (feeds_back<std::remove_cvref_t<decltype(plan.codec())>>) {
        all += static_cast<double>(run.residual(static_cast<int>(r))[i]);
      }
      if (chunk % world == r) {
        all += static_cast<double>(of_owner[chunk / world * size + i % size]);
      }
      kept[i] += all / static_cast<double>(world);
    }
  }
  return kept;
}

// Returns the error of the mean of all steps.
template <class Feedback>
double check_owners(Feedback const& feedback, double weight, bool ranks)
{
  constexpr std::size_t d = 5000, world = 3;
  constexpr int steps = 30;
  auto const in       = sparse_gradients(world, d, .3, 23);
  using codec         = entropy_two_shot_codec<Feedback, 128>;
  tests::loopback_run<codec> run{codec{.bits = 1, .feedback = feedback}, layout{d}, world, 5};
  // Twelve, thirteen or fourteen chunks of each, with room for as many as any has.
  CHECK(run.plan().residual_offset() - run.plan().owner_residual_offset() == 14 * 128 * 4);
  CHECK(run.plan().owner_residual_offset() % 16 == 0);
  std::vector<double> sum(d), before(d);
  double largest = 0, error = 0, all = 0;
  for (int t = 1; t <= steps; ++t) {
    auto const& out = run.exchange(in);
    for (auto const& other : out) { REQUIRE(other == out[0]); }
    auto const kept = kept_together(run, d, world);
    for (std::size_t i = 0; i < d; ++i) {
      double mean = 0, lost = 0;
      for (auto const& gradient : in) { mean += static_cast<double>(gradient[i]) / world; }
      for (auto const& gradient : in) {
        largest = std::max(largest, std::abs(static_cast<double>(gradient[i])));
      }
      sum[i] += static_cast<double>(out[0][i]);
      lost = mean + weight * before[i] - static_cast<double>(out[0][i]) - kept[i];
      // Without the ranks their codes lose what nobody keeps.
      if (ranks) { REQUIRE(std::abs(lost) <= 40 * 0x1p-24 * largest); }
      before[i] = kept[i];
      if (t < steps) { continue; }
      error += (sum[i] / steps - mean) * (sum[i] / steps - mean);
      all += mean * mean;
    }
  }
  return error / all;
}

TEST_CASE("[entropy] ranks and owners of two shots keep together what was lost, and send it later")
{
  using ranks       = kept_by_ranks<>;
  double const both = check_owners(error_feedback{}, 1, true);
  check_owners(decayed_feedback{.decay = .5f}, .5, true);
  double const owners = check_owners(kept_by_owners<>{}, 1, false);
  auto const in       = sparse_gradients(3, 5000, .3, 23);
  // The same mean of thirty steps, where only ranks keep.
  tests::loopback_run<entropy_two_shot_codec<ranks, 128>> run{
    entropy_two_shot_codec<ranks, 128>{.bits = 1}, layout{5000}, 3, 5};
  std::vector<float> sum(5000);
  for (int t = 0; t < 30; ++t) {
    auto const& out = run.exchange(in)[0];
    for (std::size_t i = 0; i < sum.size(); ++i) { sum[i] += out[i] / 30; }
  }
  double const alone = tests::nmse(in, sum);
  MESSAGE("errors of means of 30 steps: " << both << ", of ranks alone " << alone << ", of owners "
                                          << owners);
  CHECK(both < .1 * alone);
}

TEST_CASE("[entropy] owners' residuals are of their rank, and stay where a value is not finite")
{
  using codec   = entropy_two_shot_codec<error_feedback, 128>;
  auto const of = [](int size, int rank) {
    return codec{}.plan(layout{5000}, {.size = size, .rank = rank});
  };
  CHECK(of(3, 0).state_fingerprint() != of(3, 1).state_fingerprint());
  using ranks = entropy_two_shot_codec<kept_by_ranks<>, 128>;
  CHECK(of(3, 0).state_bytes() ==
        ranks{}.plan(layout{5000}, {.size = 3}).state_bytes() + 14 * 128 * sizeof(float));
  auto in = sparse_gradients(3, 2048, .5, 23);
  tests::loopback_run<codec> run{codec{.bits = 1}, layout{2048}, 3, 5};
  run.exchange(in);
  auto const before = kept_together(run, 2048, 3);
  CHECK(*std::max_element(before.begin(), before.end()) > 0);
  in[2][600] = std::numeric_limits<float>::infinity();
  run.exchange(in);
  CHECK(run.header(1).last_was_non_finite());
  CHECK(kept_together(run, 2048, 3) == before);
}

TEST_CASE(
  "[entropy] a value that is not finite stays in its chunk, all ranks are told, residuals stay")
{
  auto in = sparse_gradients(3, 2048, .5, 23);
  tests::loopback_run run{presets::entropy_1_ef, layout{2048}, 3, 5};
  run.exchange(in);
  std::vector<float> const before{run.residual(0).begin(), run.residual(0).end()};
  in[2][600]      = std::numeric_limits<float>::infinity();
  auto const& out = run.exchange(in);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(run.header(rank).last_was_non_finite());
    for (std::size_t i = 0; i < 2048; ++i) {
      REQUIRE(std::isnan(out[static_cast<std::size_t>(rank)][i]) == (i >= 512 && i < 1024));
    }
  }
  CHECK(std::vector<float>(run.residual(0).begin(), run.residual(0).end()) == before);
}

TEST_CASE("[entropy] a wrong argument is named, and no memory is written")
{
  tests::check_wrong_arguments(presets::entropy_1_ef, layout{3000});
}

// What examples/lossless/main.cpp prints, in docs/results.md: of QSGD in one bucket at 1 and at 2 bits, and the least of what
// Zstandard makes of halves, blocks and groups of 8 bits that is not longer, if there is any. TopK loses more than QSGD at the same bits.
TEST_CASE(
  "[entropy] where most coordinates are zeros, less is lost than by QSGD and by Zstandard at as much traffic")
{
  constexpr double none = std::numeric_limits<double>::infinity();
  struct sample {
    std::string folder, set;
    int ranks;
    double qsgd_one, qsgd_two, zstandard_one, zstandard_two;
  };
  for (sample const& of : {sample{"cnn", "step150", 2, .0013, 3.5e-5, none, none},
                           sample{"cnn", "step150", 4, .0095, 6.1e-4, none, none},
                           sample{"recommender", "step200", 2, 2.1e-7, 1.1e-14, 1.1e-4, 8.9e-8},
                           sample{"recommender", "step200", 4, 4.7e-4, 2.6e-7, 1.81e-4, 1.4e-7}}) {
    CAPTURE(of.folder);
    CAPTURE(of.ranks);
    gradients in;
    for (int k = 0; k < of.ranks; ++k) {
      in.push_back(tests::sample_gradient(of.set, k, of.folder));
    }
    auto const error_of = [&](auto const& codec, double bits) {
      tests::loopback_run run{codec, layout{in[0].size()}, of.ranks, 42, {.threads = 2}};
      double const shots = scattering<std::remove_cvref_t<decltype(codec)>> ? 2. / of.ranks : 1;
      double const sent  = run.plan().bits_per_coordinate() * (of.ranks - 1) * shots;
      CHECK(sent <= bits * 2 * (of.ranks - 1) / of.ranks + .01);
      return tests::nmse(in, run.exchange(in)[0]);
    };
    double const one = error_of(presets::entropy_1, 1), two = error_of(presets::entropy_2, 2);
    double const shots = error_of(presets::entropy_two_shot_1, 1);
    MESSAGE(of.folder << ", " << of.ranks << " ranks: " << one << ", " << two << "; two shots "
                      << shots);
    CHECK(one < std::min(of.qsgd_one, of.zstandard_one));
    CHECK(two < std::min(of.qsgd_two, of.zstandard_two));
    CHECK(shots < std::min(of.qsgd_one, of.zstandard_one));
    if (of.folder == "recommender" && of.ranks == 4) {
      // Groups of 8 bits in two shots, which Zstandard makes 1.40 of 12.99 bits.
      double const as_many = error_of(entropy_codec<>{.bits = 1.4f / 1.5f}, 1.4 / 1.5);
      CHECK(as_many < .5 * of.zstandard_one);
    }
  }
}

TEST_CASE("[entropy] codes that lie together take the bits that they do by hand")
{
  // Two rows of 24 codes in 512. Numbers of zeros less one are 95 and 167, which have 8 and 9 bits under order 6.
  auto const bits_of_rows = [](float value) {
    std::vector<float> values(512);
    for (std::size_t i = 0; i < 24; ++i) { values[96 + i] = values[288 + i] = value; }
    std::uint32_t const peak = detail::float_bits(value);
    return detail::bits_of_chunk<512>(best_instruction_set(), values.data(), peak, 1.0f);
  };
  // Behind runs: whether there are zeros, a sign, and a zero under order 0.
  CHECK(bits_of_rows(1) == 11 + 48 * 3 + 8 + 9);
  // In line: 5 under order 2 and a sign, and before zeros a zero under this order.
  CHECK(bits_of_rows(5) == 11 + 48 * (4 + 1) + 2 * 3 + 8 + 9);
  // All: 1 under order 0 and a sign.
  std::vector<float> const ones(512, 1.0f);
  CHECK(detail::bits_of_chunk<512>(best_instruction_set(), ones.data(), 0x3f800000u, 1.0f) ==
        11 + 512 * 3);
}
