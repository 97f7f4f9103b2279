// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A step of PowerSGD on the encoder layers of BERT-large on a device: `products` (M Q and M^T P, which `product_p` and `product_q`
//! are alone), `orthogonalize` (of P), `reconstruct` (P Q^T). `householder_qr` stands in for the orthogonalisation where cuSOLVER is found.

#include "support/cuda_bench.cuh"

#include <tersum/lowrank/detail/low_rank_launches.hpp>

#include <span>
#include <string>
#include <vector>

#if defined(TERSUM_BENCH_CUSOLVER)
#include <cusolverDn.h>
#endif

namespace {

using namespace tersum;
using namespace tersum_bench;

// Query, key, value, output, and the two of the feed-forward part, of 24 layers.
struct bucket {
  std::vector<tensor> tensors;
  std::uint64_t coordinates = 0;

  bucket()
  {
    std::uint64_t const width = small() ? 192 : 1024;
    for (int layer = 0; layer < (small() ? 1 : 24); ++layer) {
      for (int i = 0; i < 4; ++i) { add(width, width); }
      add(4 * width, width);
      add(width, 4 * width);
    }
  }
  void add(std::uint64_t rows, std::uint64_t columns)
  {
    tensors.push_back({.rows = rows, .columns = columns, .offset = coordinates});
    coordinates += rows * columns;
  }
};

//! One rank after steps enough for a warm start.
template <class Codec>
class one_rank {
 public:
  explicit one_rank(Codec const& codec)
    : plan_(codec.plan({shape_.coordinates, shape_.tensors}, {})),
      source_(room_.take<float>(shape_.coordinates)),
      gradient_(room_.take<float>(shape_.coordinates)),
      state_(room_.take<std::byte>(plan_.state_bytes())),
      workspace_(room_.take<std::byte>(plan_.workspace_bytes())),
      copy_(room_.take<float>(plan_.factor_elements(0))),
      args_(detail::make_args(plan_, gradient_.data(), state_, workspace_))
  {
    fill_gradient(stream_, source_);
    require(initialize(exec(), plan_, state_, 1));
    for (int step = 0; step < 3; ++step) {
      begin();
      multiply();
      orthogonalize();
      multiply_back();
      finish();
    }
    stream_.wait();
  }

  [[nodiscard]] timed_stream& stream() { return stream_; }
  [[nodiscard]] tersum::plan<Codec> const& plan() const { return plan_; }
  [[nodiscard]] float* left(matrix_record const& m) const
  {
    return args_.parts.factor[0] + m.slot[0];
  }

  void begin() const { require(exec().copy(gradient_.data(), source_.data(), source_.size())); }
  void copy_factor() const
  {
    require(exec().copy(copy_.data(), args_.parts.factor[0], copy_.size()));
  }
  void multiply() const { require(measure(exec(), plan_, gradient_, state_, workspace_)); }
  void orthogonalize() const
  {
    require(exec().run(detail::orthonormalize_all{}, plan_.chunks(), args_));
  }
  void multiply_back() const
  {
    cuda_executor const on = exec();
    detail::launch_list launches{on, plan_, args_};
    detail::launch_product<false>(launches);
    require(launches.result());
  }
  void finish() const { require(decode(exec(), plan_, gradient_, state_, workspace_)); }

 private:
  [[nodiscard]] cuda_executor exec() const { return cuda_executor{stream_.get()}; }

  bucket shape_{};
  timed_stream stream_{};
  device_memory room_{};
  tersum::plan<Codec> plan_;
  std::span<float> source_, gradient_;
  bytes state_, workspace_;
  std::span<float> copy_;
  detail::exchange_args<Codec, float> args_;
};

// Runs whole steps, with `orthogonalize` in the place of the codec's; one stage of them is the result.
enum class stage : std::uint8_t { products, product_p, product_q, orthogonalize, reconstruct };

template <class Codec, class Work>
void run_step(benchmark::State& state, stage what, one_rank<Codec>& rank, Work const& orthogonalize)
{
  run_times times;
  for ([[maybe_unused]] auto _ : state) {
    auto const [restored, first] =
      rank.stream().time([&] { rank.begin(); }, [&] { rank.multiply(); });
    auto const [copied, settled] = rank.stream().time([&] { rank.copy_factor(); }, orthogonalize);
    auto const [second, rebuilt] =
      rank.stream().time([&] { rank.multiply_back(); }, [&] { rank.finish(); });
    double const taken = what == stage::products        ? first + second
                         : what == stage::product_p     ? first
                         : what == stage::product_q     ? second
                         : what == stage::orthogonalize ? settled
                                                        : rebuilt;
    times.add(taken, what == stage::orthogonalize ? copied : restored);
    state.SetIterationTime(1e-9 * taken);
  }
  auto const& plan   = rank.plan();
  auto const whole   = static_cast<double>(plan.coordinates() * sizeof(float));
  auto const left    = static_cast<double>(plan.factor_elements(0) * sizeof(float));
  auto const factors = static_cast<double>(plan.payload_bytes() + plan.agreed_bytes());
  double const moved = what == stage::orthogonalize ? 2 * left : whole + factors;
  set_counters(state, plan, moved, what == stage::orthogonalize ? left : whole, times);
}

template <class Codec>
void add_steps(std::string_view name, Codec const& codec)
{
  auto const add_stage = [&](std::string_view operation, stage what) {
    add(operation, name, "float", bucket{}.coordinates, [=](benchmark::State& state) {
      one_rank<Codec> rank{codec};
      run_step(state, what, rank, [&] { rank.orthogonalize(); });
    });
  };
  add_stage("products", stage::products);
  add_stage("product_p", stage::product_p);
  add_stage("product_q", stage::product_q);
  add_stage("orthogonalize", stage::orthogonalize);
  add_stage("reconstruct", stage::reconstruct);
}

#if defined(TERSUM_BENCH_CUSOLVER)
inline void require(cusolverStatus_t status)
{
  if (status != CUSOLVER_STATUS_SUCCESS) { throw std::runtime_error{"cuSOLVER failed"}; }
}

template <class Codec>
void add_cusolver(Codec const& codec)
{
  std::string const name = "householder_qr_r" + std::to_string(Codec::rank);
  add("orthogonalize", name, "float", bucket{}.coordinates, [=](benchmark::State& state) {
    one_rank<Codec> rank{codec};
    std::vector<matrix_record> matrices;
    rank.plan().for_each_matrix([&](matrix_record const& m) { matrices.push_back(m); });
    cusolverDnHandle_t handle = nullptr;
    require(cusolverDnCreate(&handle));
    require(cusolverDnSetStream(handle, rank.stream().get()));
    device_memory room;
    auto const tau  = room.take<float>(Codec::rank);
    auto const info = room.take<int>(1);
    int most        = 0;
    auto const each = [&](auto const& visit) {
      for (matrix_record const& m : matrices) {
        visit(static_cast<int>(m.rows), static_cast<int>(m.rank), rank.left(m));
      }
    };
    each([&](int rows, int columns, float* a) {
      int qr = 0, q = 0;
      require(cusolverDnSgeqrf_bufferSize(handle, rows, columns, a, rows, &qr));
      require(cusolverDnSorgqr_bufferSize(handle, rows, columns, columns, a, rows, tau.data(), &q));
      most = std::max({most, qr, q});
    });
    auto const work = room.take<float>(static_cast<std::size_t>(most));
    run_step(state, stage::orthogonalize, rank, [&] {
      each([&](int rows, int columns, float* a) {
        require(cusolverDnSgeqrf(
          handle, rows, columns, a, rows, tau.data(), work.data(), most, info.data()));
        require(cusolverDnSorgqr(
          handle, rows, columns, columns, a, rows, tau.data(), work.data(), most, info.data()));
      });
    });
    require(cusolverDnDestroy(handle));
  });
}
#endif

[[maybe_unused]] bool const registered = [] {
  if (!find_device()) { return false; }
  add_steps("powersgd_r4", presets::powersgd_r4);
  add_steps("powersgd_r16", presets::powersgd_r16);
  add_steps("powersgd_r64", presets::powersgd_r64);
  add_steps("gram_schmidt_r4", low_rank_codec<low_rank<4, gram_schmidt>>{});
#if defined(TERSUM_BENCH_CUSOLVER)
  add_cusolver(presets::powersgd_r4);
  add_cusolver(presets::powersgd_r64);
#endif
  return true;
}();

}  // namespace
