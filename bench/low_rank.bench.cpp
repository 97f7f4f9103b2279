// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A step of PowerSGD on the matrices of two encoder layers of BERT-large: `products` (M Q and M^T P), `orthogonalize` (of P),
//! `reconstruct` (P Q^T). `householder_qr` stands in for the orthogonalisation where LAPACK is found.

#include "support/cpu_bench.hpp"

#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/lowrank/detail/cpu_low_rank.hpp>

#include <random>

#if defined(TERSUM_BENCH_LAPACK)
extern "C" {
void sgeqrf_(int const* m,
             int const* n,
             float* a,
             int const* lda,
             float* tau,
             float* work,
             int const* lwork,
             int* info);
void sorgqr_(int const* m,
             int const* n,
             int const* k,
             float* a,
             int const* lda,
             float const* tau,
             float* work,
             int const* lwork,
             int* info);
}
#endif

namespace {

using namespace tersum;
using namespace tersum_bench;

// Query, key, value, output, and the two of the feed-forward part.
struct layers {
  std::vector<tensor> tensors;
  std::uint64_t coordinates = 0;

  layers()
  {
    for (int layer = 0; layer < 2; ++layer) {
      for (int i = 0; i < 4; ++i) { add(1024, 1024); }
      add(4096, 1024);
      add(1024, 4096);
    }
  }
  void add(std::uint64_t rows, std::uint64_t columns)
  {
    tensors.push_back({.rows = rows, .columns = columns, .offset = coordinates});
    coordinates += rows * columns;
  }
};

// One rank's exchange, stage by stage, after steps enough for a warm start.
template <class Orthogonalizer, int Rank>
class exchange {
 public:
  using codec_type = low_rank_codec<low_rank<Rank, Orthogonalizer>>;

  explicit exchange(cpu_executor const& exec)
    : exec_(exec), plan_(codec_type{}.plan({shape_.coordinates, shape_.tensors}, {})),
      gradient_(shape_.coordinates), state_(plan_.state_bytes() / sizeof(word4) + 1),
      workspace_(plan_.workspace_bytes() / sizeof(word4) + 1)
  {
    std::mt19937 random(1);
    std::vector<float> column(4096), row(4096);
    for (tensor const& t : shape_.tensors) {
      // Rank-one parts of falling size, and noise.
      for (int part = 0; part < 8; ++part) {
        for (float& v : column) { v = static_cast<float>(random()) * 0x1p-31f - 1.0f; }
        for (float& v : row) {
          v = (static_cast<float>(random()) * 0x1p-31f - 1.0f) / static_cast<float>(1 + part);
        }
        for (std::uint64_t i = 0; i < t.size(); ++i) {
          gradient_[t.offset + i] += column[i / t.columns] * row[i % t.columns];
        }
      }
      for (std::uint64_t i = 0; i < t.size(); ++i) {
        gradient_[t.offset + i] += 0.1f * (static_cast<float>(random()) * 0x1p-31f - 1.0f);
      }
    }
    failure_ = initialize(exec_, plan_, state(), 1);
    for (int step = 0; step < 3 && failure_.ok(); ++step) {
      std::vector<float> copy = gradient_;
      failure_ = all_reduce_mean(exec_, plan_, copy, state(), workspace(), [](auto) {});
    }
    args_ = detail::make_args(plan_, gradient_.data(), state(), workspace());
  }

  [[nodiscard]] status const& failure() const { return failure_; }
  //! A stage of the codec's own.
  template <class Stage>
  void run(Stage stage) const
  {
    static constexpr cpu_tuning numbers = tuning{}.cpu;
    (void)detail::run_stage(stage,
                            detail::cpu_work<codec_type, float>{
                              exec_.threads, exec_.instructions, plan_, args_, numbers});
  }
  [[nodiscard]] auto const& plan() const { return plan_; }
  [[nodiscard]] std::span<float> left() const
  {
    return {args_.parts.factor[0], plan_.factor_elements(0)};
  }
  [[nodiscard]] std::span<matrix_record const> matrices() const
  {
    return {args_.table, plan_.chunks()};
  }
  [[nodiscard]] std::span<float> gradient() { return gradient_; }

 private:
  [[nodiscard]] std::span<std::byte> state() { return std::as_writable_bytes(std::span{state_}); }
  [[nodiscard]] std::span<std::byte> workspace()
  {
    return std::as_writable_bytes(std::span{workspace_});
  }

  layers shape_{};
  cpu_executor exec_;
  tersum::plan<codec_type> plan_;
  std::vector<float> gradient_;
  std::vector<word4> state_, workspace_;
  detail::exchange_args<codec_type, float> args_{};
  status failure_{};
};

// Runs whole steps, with `orthogonalize` in the place of the codec's; one stage of them is the result.
enum class stage : std::uint8_t { products, orthogonalize, reconstruct };

template <class Orthogonalizer, int Rank, class Work>
void run(benchmark::State& state,
         stage what,
         tersum::cpu_executor const& exec,
         Work const& orthogonalize)
{
  exchange<Orthogonalizer, Rank> one{exec};
  require(one.failure());
  std::vector<float> const gradient(one.gradient().begin(), one.gradient().end());
  std::span<float> const factor = one.left();
  std::vector<float> copy(factor.size());
  run_times times;
  auto const timed = [&](stage which, auto const& work) {
    double const taken = time_ns(work);
    return which == what ? taken : 0.0;
  };
  for (auto _ : state) {
    for (int step = 0; step < 5; ++step) {
      double const restored = time_ns([&] {
        copy_on_threads(
          exec.threads, std::as_writable_bytes(one.gradient()), std::as_bytes(std::span{gradient}));
      });
      double taken          = timed(stage::products, [&] { one.run(tersum::stage::measure{}); });
      double const copied = time_ns([&] { std::copy(factor.begin(), factor.end(), copy.begin()); });
      taken += timed(stage::orthogonalize, [&] { orthogonalize(one); });
      taken += timed(stage::products, [&] { one.run(tersum::stage::encode{}); });
      taken += timed(stage::reconstruct, [&] {
        one.run(tersum::stage::receive{});
        one.run(tersum::stage::decode{});
        one.run(tersum::stage::finish{});
      });
      times.add(taken, what == stage::orthogonalize ? copied : restored);
    }
    state.SetIterationTime(1e-9 * times.work_ns());
  }
  auto const whole   = static_cast<double>(gradient.size() * sizeof(float));
  auto const left    = static_cast<double>(factor.size_bytes());
  auto const factors = static_cast<double>(one.plan().payload_bytes() + one.plan().agreed_bytes());
  double const moved = what == stage::orthogonalize ? 2 * left : whole + factors;
  set_counters(state, one.plan(), moved, what == stage::orthogonalize ? left : whole, times);
}

template <class Orthogonalizer, int Rank, class Work>
void add_stage(
  stage what, std::string_view operation, std::string const& name, int threads, Work const& work)
{
  tersum::cpu_executor const exec{.threads = threads};
  add(result_name(operation,
                  name + "_r" + std::to_string(Rank),
                  "float",
                  exec.instructions == instruction_set::avx512 ? "cpu-avx512"
                  : exec.instructions == instruction_set::avx2 ? "cpu-avx2"
                                                               : "cpu-baseline",
                  layers{}.coordinates,
                  threads),
      [=](benchmark::State& state) { run<Orthogonalizer, Rank>(state, what, exec, work); });
}

template <class Orthogonalizer, int Rank>
void add_steps(std::string const& name)
{
  auto const settle = [](auto& one) { one.run(tersum::stage::orthonormalize{}); };
  for (int const threads : thread_counts(2)) {
    add_stage<Orthogonalizer, Rank>(stage::products, "products", name, threads, settle);
    add_stage<Orthogonalizer, Rank>(stage::orthogonalize, "orthogonalize", name, threads, settle);
    add_stage<Orthogonalizer, Rank>(stage::reconstruct, "reconstruct", name, threads, settle);
  }
}

#if defined(TERSUM_BENCH_LAPACK)
template <int Rank>
void add_lapack()
{
  add_stage<robust_cholesky_qr2, Rank>(
    stage::orthogonalize, "orthogonalize", "householder_qr", 1, [](auto& one) {
      std::vector<float> work(64 * 64 * 64);
      float tau[Rank];
      for (matrix_record const& m : one.matrices()) {
        int const rows = static_cast<int>(m.rows), rank = static_cast<int>(m.rank);
        int const room = static_cast<int>(work.size());
        int info       = 0;
        float* const a = one.left().data() + m.slot[0];
        sgeqrf_(&rows, &rank, a, &rows, tau, work.data(), &room, &info);
        sorgqr_(&rows, &rank, &rank, a, &rows, tau, work.data(), &room, &info);
      }
    });
}
#endif

[[maybe_unused]] bool const registered = [] {
  add_steps<robust_cholesky_qr2, 4>("powersgd");
  add_steps<robust_cholesky_qr2, 64>("powersgd");
  add_steps<gram_schmidt, 4>("gram_schmidt");
#if defined(TERSUM_BENCH_LAPACK)
  add_lapack<4>();
  add_lapack<64>();
#endif
  return name_compiler();
}();

}  // namespace
