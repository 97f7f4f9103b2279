// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A long run of every codec that keeps something from step to step, through phases that an adversary would choose:
//! `tersum.fuzz.soak [--steps N] [--seed N] [--codec NAME]`. Prints a row of a table for each codec.
//!
//! Between the phases the ranks exchange ordinary gradients: a common normal vector and a third as much of each rank's
//! own. After 60 steps of them, the error of the mean of 20 steps is taken. Low-rank factors, which take a few directions of a
//! residual in a step, get 240 steps of each. Up to a tenth of all steps, and one such error at least, come before the first
//! phase: the largest is the error of a state without an adversary. Laws: nothing becomes infinite or NaN, nothing is flagged, and the
//! error after a phase is at most twice that one. Codes in a metric need only be better than nothing: their errors count in units of scales, which remember a burst for a thousand steps.

#include "exchange_ranks.hpp"
#include "number_source.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tersum::tests {

namespace {

constexpr int world       = 4;
constexpr int phase_steps = 60;

struct matrix {
  std::uint64_t rows, columns;
};
constexpr matrix matrices[] = {{32, 48}, {64, 48}, {96, 96}, {288, 288}};

enum class phase { opposite, identical, zeros, burst, sign_flips, one_rank, sparse, growth, heavy };
constexpr std::array<std::string_view, 9> phase_names{
  "opposite", "identical", "zeros", "burst", "sign flips", "one rank", "sparse", "growth", "heavy"};

//! One gradient of an adversary, with magnitudes of at most 1e4.
float adversary(phase p, int rank, int step, float growth, float common, number_source& source)
{
  float const own = source.quick_normal();
  switch (p) {
    case phase::opposite: return rank % 2 == 0 ? common : -common;
    case phase::identical: return common;
    case phase::zeros: return 0;
    case phase::burst: return step == 0 ? 1000 * own : own;
    case phase::sign_flips: return step % 2 == 0 ? common : -common;
    case phase::one_rank: return rank == 1 ? own : 0;
    case phase::sparse: return source.random() % 64 == 0 ? own : 0;
    case phase::growth: return own * growth;
    default:
      return static_cast<float>(
        std::clamp(std::tan(3.141592653589793 * (source.uniform() - 0.5)), -1000.0, 1000.0));
  }
}

class soak {
 public:
  soak(tried_codec const& codec, std::uint64_t seed) : codec_(codec), source_(seed), seed_(seed)
  {
    // The smallest bucket of which something is compressed. A vector bypasses where others do not.
    for (auto const& [rows, columns] : matrices) {
      std::uint64_t const size = rows * columns;
      tensors_                 = {{.rows = rows, .columns = columns},
                                  {.rows = 33, .offset = size},
                                  {.rows = 25, .columns = 41, .offset = size + 33}};
      length_                  = size + 33 + 25 * 41;
      ranks_ = codec_.make({.coordinates = length_, .tensors = tensors_}, world, 0);
      if (!ranks_->check().ok()) { ranks_ = codec_.make({.coordinates = length_}, world, 0); }
      if (!ranks_->check().ok() || ranks_->compresses()) { break; }
    }
    sum_.resize(length_);
    want_.resize(length_);
    status s = ranks_->check();
    if (s.ok()) { s = ranks_->initialize(settings_, seed); }
    fault_ = s.message;
    ok_    = s.ok();
  }

  //! Whether all laws held.
  [[nodiscard]] bool run(std::uint64_t steps)
  {
    double undisturbed = 0;
    do {
      undisturbed = std::max(undisturbed, ordinary());
    } while (ok_ && 10 * (steps_ + window()) <= steps);
    double worst            = 0;
    std::size_t worst_phase = 0;
    double drained          = 0;
    while (ok_ && steps_ < steps) {
      std::size_t const p = source_.below(phase_names.size());
      double const before = kept();
      for (int step = 0; step < phase_steps && ok_; ++step) {
        adversarial(static_cast<phase>(p), step);
      }
      if (static_cast<phase>(p) == phase::zeros && before > 0) {
        drained = std::max(drained, kept() / before);
      }
      double const error = ordinary();
      if (error > worst) {
        worst       = error;
        worst_phase = p;
      }
    }
    bool const lenient  = codec_.keeps_scales;
    bool const recovers = worst <= (lenient ? 1 : 2 * undisturbed + 1e-6);
    bool const held     = ok_ && infinite_ == 0 && flagged_ == 0 && recovers;
    std::printf("| %s | %llu | %llu | %llu | %.3g | %.3g | %s | ",
                std::string{codec_.name}.c_str(),
                static_cast<unsigned long long>(steps_),
                static_cast<unsigned long long>(flagged_),
                static_cast<unsigned long long>(infinite_),
                undisturbed,
                worst,
                std::string{phase_names[worst_phase]}.c_str());
    if (codec_.feeds_back) {
      std::printf("%.2g | %.3g |%s%s\n",
                  largest_,
                  drained,
                  held ? "" : " BROKEN",
                  std::string{fault_}.c_str());
    } else {
      std::printf("- | - |%s%s\n", held ? "" : " BROKEN", std::string{fault_}.c_str());
    }
    std::fflush(stdout);
    return held;
  }

 private:
  //! Factors of rank 4 take part of a residual of 41 or 48 columns in a step.
  [[nodiscard]] int settle_steps() const { return codec_.needs_tensors ? 240 : 60; }
  //! Long enough for factors of rank 1 to take all directions several times.
  [[nodiscard]] int measured_steps() const { return codec_.needs_tensors ? 240 : 20; }
  [[nodiscard]] std::uint64_t window() const
  {
    return static_cast<std::uint64_t>(settle_steps() + measured_steps());
  }
  [[nodiscard]] std::size_t length() const { return static_cast<std::size_t>(length_); }

  //! Root mean square of what the ranks keep.
  double kept()
  {
    double all = 0;
    for (int rank = 0; rank < world; ++rank) {
      for (float const v : ranks_->residual(rank)) {
        all += static_cast<double>(v) * static_cast<double>(v);
      }
    }
    return std::sqrt(all / (world * static_cast<double>(length())));
  }

  void exchange(gradients& values)
  {
    ok_ = ok_ && ranks_->exchange(settings_, values).ok() && ranks_->intact();
    ++steps_;
    flagged_ += ranks_->flagged() ? 1 : 0;
    bool finite = true;
    for (auto const& of_rank : values) {
      finite = finite && std::ranges::all_of(of_rank, [](float v) { return std::isfinite(v); });
      ok_    = ok_ && of_rank == values[0];
    }
    infinite_ += finite ? 0 : 1;
    largest_ = std::max(largest_, kept());
  }

  void adversarial(phase p, int step)
  {
    gradients values(world, std::vector<float>(length()));
    float const growth = std::pow(1.12f, static_cast<float>(std::min(step, phase_steps - step)));
    for (std::size_t i = 0; i < length(); ++i) {
      float const common =
        p == phase::sign_flips ? std::sin(static_cast<float>(i)) : source_.quick_normal();
      for (int rank = 0; rank < world; ++rank) {
        values[static_cast<std::size_t>(rank)][i] =
          adversary(p, rank, step, growth, common, source_);
      }
    }
    exchange(values);
  }

  //! Ordinary steps. Returns the error of the sum of the last means: what feedback has made up for does not count.
  double ordinary()
  {
    std::ranges::fill(sum_, 0.0);
    std::ranges::fill(want_, 0.0);
    number_source direction{seed_ + 77};  // of each coordinate, the same in all steps
    std::vector<float> common(length());
    for (float& c : common) { c = direction.quick_normal(); }
    for (int step = 0; step < settle_steps() + measured_steps() && ok_; ++step) {
      gradients values(world, std::vector<float>(length()));
      bool const counts = step >= settle_steps();
      for (auto& of_rank : values) {
        for (std::size_t i = 0; i < length(); ++i) {
          of_rank[i] = common[i] + source_.quick_normal() / 3;
        }
      }
      ranks_->round(values);
      for (auto const& of_rank : values) {
        for (std::size_t i = 0; i < length() && counts; ++i) {
          want_[i] += static_cast<double>(of_rank[i]) / (codec_.publishes ? 1 : world);
        }
      }
      exchange(values);
      for (std::size_t i = 0; i < length() && counts; ++i) {
        sum_[i] += static_cast<double>(values[0][i]);
      }
    }
    double lost = 0, all = 0;
    for (std::size_t i = 0; i < length(); ++i) {
      lost += (want_[i] - sum_[i]) * (want_[i] - sum_[i]);
      all += want_[i] * want_[i];
    }
    return lost / all;
  }

  tried_codec codec_;
  number_source source_;
  std::uint64_t seed_;
  exchange_settings settings_ = {};
  std::unique_ptr<tried_ranks> ranks_;
  std::vector<tensor> tensors_;
  std::uint64_t length_ = 0;
  std::string_view fault_;
  std::vector<double> sum_, want_;
  std::uint64_t steps_ = 0, flagged_ = 0, infinite_ = 0;
  double largest_ = 0;
  bool ok_        = true;
};

}  // namespace

}  // namespace tersum::tests

int main(int argc, char** argv)
{
  using namespace tersum::tests;
  std::uint64_t steps = 1500, seed = 1;
  std::string only;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string const name = argv[i];
    if (name == "--steps") { steps = std::strtoull(argv[i + 1], nullptr, 10); }
    if (name == "--seed") { seed = std::strtoull(argv[i + 1], nullptr, 10); }
    if (name == "--codec") { only = argv[i + 1]; }
  }
  std::printf(
    "| codec | steps | flagged | not finite | worst before | worst after | which | largest residual | left by zeros |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |\n");
  int tried = 0, broken = 0;
  for (tried_codec const& codec : tried_codecs()) {
    bool const keeps = codec.feeds_back || codec.tracks || codec.needs_tensors ||
                       codec.keeps_scales || codec.keeps_values;
    if (codec.element != "float" || !keeps) { continue; }
    if (!only.empty() && codec.name != only) { continue; }
    ++tried;
    broken += soak{codec, seed}.run(steps) ? 0 : 1;
  }
  std::printf(
    "seed %llu: %d codecs, %d broke a law\n", static_cast<unsigned long long>(seed), tried, broken);
  return tried > 0 && broken == 0 ? 0 : 1;
}
