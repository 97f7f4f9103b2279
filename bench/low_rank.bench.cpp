// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A step of PowerSGD on the matrices of two encoder layers of BERT-large: its products, and what the orthogonalisation
//! costs beside them (`share` of products + orthogonalisation + reconstruction), against a Householder QR for each matrix
//! where LAPACK is found.

#include "support/cpu_bench.hpp"

#include <tersum/collective/all_reduce_mean.hpp>
#include <tersum/lowrank/cpu_low_rank.hpp>

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
using tersum_bench::time_ns;

// Query, key, value, output, and the two of the feed-forward part.
struct bucket {
  std::vector<tensor> tensors;
  std::uint64_t coordinates = 0;

  bucket()
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
  using stages     = detail::cpu_stages<codec_type, float>;

  explicit exchange(int threads)
    : exec_{.threads = threads}, plan_(codec_type{}.plan({shape_.coordinates, shape_.tensors}, {})),
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
  [[nodiscard]] stages work() const { return {exec_.threads, exec_.instructions, args_}; }
  [[nodiscard]] auto const& plan() const { return plan_; }
  [[nodiscard]] std::span<float> left() const
  {
    return {args_.factor[0], plan_.factor_elements(0)};
  }
  [[nodiscard]] std::span<matrix_record const> matrices() const
  {
    return {args_.matrices, plan_.chunks()};
  }
  [[nodiscard]] std::span<float> gradient() { return gradient_; }

 private:
  [[nodiscard]] std::span<std::byte> state() { return std::as_writable_bytes(std::span{state_}); }
  [[nodiscard]] std::span<std::byte> workspace()
  {
    return std::as_writable_bytes(std::span{workspace_});
  }

  bucket shape_{};
  cpu_executor exec_;
  tersum::plan<codec_type> plan_;
  std::vector<float> gradient_;
  std::vector<word4> state_, workspace_;
  detail::exchange_args<codec_type, float> args_{};
  status failure_{};
};

// Orthogonalises the P of a warm step with `work`; times everything else of the step beside it.
template <class Orthogonalizer, int Rank, class Work>
void run(benchmark::State& state, int threads, Work const& work)
{
  exchange<Orthogonalizer, Rank> one{threads};
  if (!one.failure().ok()) { return state.SkipWithError("the exchange failed"); }
  auto const stages = one.work();
  std::vector<float> const gradient(one.gradient().begin(), one.gradient().end());
  double products = std::numeric_limits<double>::infinity();
  double rebuild = products, best = products;
  for (auto _ : state) {
    state.PauseTiming();
    std::copy(gradient.begin(), gradient.end(), one.gradient().begin());
    double both = time_ns([&] { stages.measure(); });
    state.ResumeTiming();
    best = std::min(best, time_ns([&] { work(one); }));
    state.PauseTiming();
    both += time_ns([&] { stages.encode(); });
    products = std::min(products, both);
    rebuild  = std::min(rebuild, time_ns([&] { stages.decode(); }));
    state.ResumeTiming();
  }
  state.counters["products_ms"]    = products * 1e-6;
  state.counters["reconstruct_ms"] = rebuild * 1e-6;
  state.counters["share"]          = best / (best + products + rebuild);
  state.counters["gflops"] = 4.0 * Rank * static_cast<double>(one.plan().compressed()) / products;
}

template <class Orthogonalizer, int Rank>
void add(std::string const& name, int threads)
{
  std::string const full =
    "orthogonalize/" + name + "/r:" + std::to_string(Rank) + "/threads:" + std::to_string(threads);
  benchmark::RegisterBenchmark(full.c_str(),
                               [=](benchmark::State& state) {
                                 run<Orthogonalizer, Rank>(
                                   state, threads, [](auto& one) { one.work().settle(); });
                               })
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(5);
}

#if defined(TERSUM_BENCH_LAPACK)
template <int Rank>
void add_lapack()
{
  std::string const name = "orthogonalize/householder_qr/r:" + std::to_string(Rank) + "/threads:1";
  benchmark::RegisterBenchmark(
    name.c_str(),
    [](benchmark::State& state) {
      std::vector<float> work(64 * 64 * 64);
      float tau[Rank];
      run<robust_cholesky_qr2, Rank>(state, 1, [&](auto& one) {
        for (matrix_record const& m : one.matrices()) {
          int const rows = static_cast<int>(m.rows), rank = static_cast<int>(m.rank);
          int const room = static_cast<int>(work.size());
          int info       = 0;
          float* const a = one.left().data() + m.slot[0];
          sgeqrf_(&rows, &rank, a, &rows, tau, work.data(), &room, &info);
          sorgqr_(&rows, &rank, &rank, a, &rows, tau, work.data(), &room, &info);
        }
      });
    })
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(5);
}
#endif

[[maybe_unused]] bool const registered = [] {
  tersum_bench::name_compiler();
  for (int const threads : {1, 2}) {
    add<robust_cholesky_qr2, 4>("robust_cholesky_qr2", threads);
    add<robust_cholesky_qr2, 16>("robust_cholesky_qr2", threads);
    add<robust_cholesky_qr2, 64>("robust_cholesky_qr2", threads);
    add<gram_schmidt, 4>("gram_schmidt", threads);
    add<gram_schmidt, 64>("gram_schmidt", threads);
  }
#if defined(TERSUM_BENCH_LAPACK)
  add_lapack<4>();
  add_lapack<16>();
  add_lapack<64>();
#endif
  return true;
}();

}  // namespace
