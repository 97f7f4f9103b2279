// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Exchanges in one kernel over memory that NCCL maps into all ranks, and with faults in how its blocks wait for one another.

#include <tersum/tersum.cuh>

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <interop/nccl_conformance.hpp>
#include <nccl_device/fused_cases.hpp>
#include <span>
#include <string_view>
#include <tersum_nccl_device/nccl_fused.cuh>
#include <type_traits>
#include <vector>

namespace tersum::tests {

//! Flags with a fault, whose number lies behind them. (Not of this file alone: kernels that take it are hidden, which only what has
//! external linkage can be.)
class faulty_flags : public detail::fused_flags {
 public:
  __device__ faulty_flags(detail::symmetric_place const& place, std::uint32_t blocks)
    : fused_flags{place, blocks}, fault_{static_cast<flag_fault>(*place.at<std::uint32_t>(
                                    words(blocks, static_cast<std::size_t>(place.ranks)),
                                    place.rank))}
  {
  }

  [[nodiscard]] __device__ std::uint32_t turns() const
  {
    return fault_ == flag_fault::forgets_calls ? 0 : fused_flags::turns();
  }

  __device__ void meet() const
  {
    if (fault_ != flag_fault::no_barrier) { fused_flags::meet(); }
  }

  __device__ void set(kind what, std::uint32_t to, std::uint32_t turn) const
  {
    std::uint32_t* const word = flag(what, blockIdx.x, words_.rank, to);
    if (fault_ == flag_fault::set_before_stores) {
      word_ref{*word}.store(turn, cuda::memory_order_relaxed);
    } else if (fault_ == flag_fault::set_for_device) {
      cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device>{*word}.store(
        turn, cuda::memory_order_release);
    } else if (fault_ != flag_fault::not_set || turn != 2 || words_.rank != 0) {
      fused_flags::set(what, to, turn);
    }
  }

  __device__ void wait(kind what, std::uint32_t block, std::uint32_t from, std::uint32_t turn) const
  {
    if (fault_ == flag_fault::no_acquire) {
      word_ref const seen{*flag(what, block, static_cast<int>(from), words_.rank)};
      while (static_cast<std::int32_t>(seen.load(cuda::memory_order_relaxed) - turn) < 0) {}
    } else {
      fused_flags::wait(what, block, from, turn - (fault_ == flag_fault::turn_before ? 1 : 0));
    }
  }

 private:
  flag_fault fault_;
};

namespace {

constexpr std::size_t room = 1 << 20;  // bytes

// What another chunk decides, or what lies anywhere in the payload, does not fit tiles.
template <auto const& Preset>
inline constexpr bool fuses = detail::fuses_sums<std::remove_cvref_t<decltype(Preset)>> ||
                              detail::fuses_parts<std::remove_cvref_t<decltype(Preset)>>;
static_assert(fuses<presets::rotated_sat2> && fuses<presets::rotated_sat4_ef>);
static_assert(!fuses<presets::two_shot_4_ef> && !fuses<presets::allocated_4>);
constexpr codec<fixed_chunks<1024>,
                partial_hadamard<1024>,
                decltype(presets::rotated_sat4.coder),
                in_wire,
                no_feedback,
                kept_diagonal>
  sums_in_kept_metric{};
static_assert(!fuses<presets::metric_2> && !fuses<presets::metric_3> &&
              !fuses<sums_in_kept_metric>);
static_assert(!fuses<presets::allocated_sat_4> && !fuses<presets::topkc_b2>);
static_assert(!fuses<presets::fp16> && !fuses<presets::gathered_2>);

//! `nccl_fused` with such flags.
struct faulty_fused {
  nccl_fused const& fused;

  template <class Codec, class Entry>
  static constexpr bool does = nccl_fused::does<Codec, Entry>;

  template <reduce_op Op>
  [[nodiscard]] status operator()(wire<Op> const& round) const
  {
    return fused(round);
  }

  template <class Codec, class Element>
  [[nodiscard]] status exchange(plan<Codec> const& plan,
                                detail::exchange_args<Codec, Element> const& args) const
  {
    return fused.exchange<faulty_flags>(plan, args);
  }
};

//! A rank's gradient and state on the device.
template <class Codec, class Element>
class fused_rank {
 public:
  fused_rank(nccl_rank const& on, Codec const& codec, layout const& shape)
    : on_(on), exec_{on.stream}, plan_{codec.plan(shape, {.size = on.ranks, .rank = on.rank})},
      of_gradient_{on.stream, plan_.coordinates() * sizeof(Element)}, of_state_{on.stream,
                                                                                plan_.state_bytes()}
  {
    ok_ = gradient_ != nullptr && initialize(exec_, plan_, state(), 7).ok();
  }

  [[nodiscard]] bool put(int step) const
  {
    auto const values = gradient_in<Element>(plan_.coordinates(), on_.ranks, on_.rank, step);
    return ok_ && cudaMemcpy(gradient_,
                             values.data(),
                             values.size() * sizeof(Element),
                             cudaMemcpyHostToDevice) == cudaSuccess;
  }

  template <class Collective>
  [[nodiscard]] status exchange(std::span<std::byte> workspace, Collective const& reduce) const
  {
    std::span<Element> const values{gradient_, plan_.coordinates()};
    return all_reduce_mean(exec_, plan_, values, state(), workspace, std::cref(reduce));
  }

  [[nodiscard]] bool holds(std::vector<float> const& wanted) const
  {
    std::vector<Element> got(plan_.coordinates());
    return cudaStreamSynchronize(on_.stream) == cudaSuccess &&
           cudaMemcpy(
             got.data(), gradient_, got.size() * sizeof(Element), cudaMemcpyDeviceToHost) ==
             cudaSuccess &&
           same(in_floats(got), wanted);
  }

 private:
  [[nodiscard]] std::span<std::byte> state() const
  {
    return {of_state_.as<std::byte>(), plan_.state_bytes()};
  }

  nccl_rank const& on_;
  cuda_executor exec_;
  tersum::plan<Codec> plan_;
  stream_memory of_gradient_, of_state_;
  Element* gradient_ = of_gradient_.as<Element>();
  bool ok_           = false;
};

//! The steps of a case, the second half of them from a graph, after a call that loads all kernels and does nothing else.
template <class Codec, class Element>
bool exchanges_well(nccl_rank const& on,
                    nccl_fused const& fused,
                    std::string_view name,
                    Codec const& codec,
                    Element,
                    layout const& shape)
{
  auto const& wanted = expected_fused(name, shape, on.ranks);
  fused_rank<Codec, Element> const rank{on, codec, shape};
  bool ok              = wanted.size() == fused_steps;
  auto const step_does = [&](int step, auto const& exchange) {
    ok = ok && rank.put(step) && exchange() && rank.holds(wanted[static_cast<std::size_t>(step)]);
  };
  auto const direct = [&] { return rank.exchange(fused.workspace(), fused).ok(); };
  {
    loading_kernels const scope;
    ok = ok && direct();
  }
  unsigned const loaded = on.loads();
  for (int step = 0; step < fused_steps / 2; ++step) { step_does(step, direct); }
  cudaGraph_t graph        = nullptr;
  cudaGraphExec_t replayed = nullptr;
  bool const captured =
    cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess &&
    direct() && cudaStreamEndCapture(on.stream, &graph) == cudaSuccess &&
    cudaGraphInstantiate(&replayed, graph, 0) == cudaSuccess;
  ok = ok && captured;
  for (int step = fused_steps / 2; step < fused_steps; ++step) {
    step_does(step, [&] { return cudaGraphLaunch(replayed, on.stream) == cudaSuccess; });
  }
  if (replayed != nullptr) { cudaGraphExecDestroy(replayed); }
  if (graph != nullptr) { cudaGraphDestroy(graph); }
  return ok && on.loads() == loaded;
}

//! Calls body(memory) with symmetric memory.
template <class Body>
int with_memory(Body const& body)
{
  void* data = nullptr;
  if (ncclMemAlloc(&data, room) != ncclSuccess) { return -1; }
  int const result = body(std::span{static_cast<std::byte*>(data), room});
  ncclMemFree(data);
  return result;
}

int count_failures(nccl_rank const& on, symmetric_shape const& shape, std::span<std::byte> memory)
{
  nccl_fused const fused{on.communicator, cuda_executor{on.stream}, memory, shape.blocks};
  if (status const usable = fused.check(); !usable.ok()) {
    if (on.rank == 0) {
      std::printf("%s: exchanges in one kernel: %s\n",
                  shape.must_run ? "failed" : "skipped",
                  usable.message.data());
    }
    return shape.must_run ? 1 : 0;
  }
  // As after 2^32 - 1 turns, so that the first one is the last number and the next ones are small; then all ranks meet in a round.
  int failures =
    cudaMemset(memory.data() + fused.workspace().size(),
               0xff,
               memory.size() - fused.workspace().size()) == cudaSuccess &&
        cudaMemset(memory.data(), 0, 4) == cudaSuccess &&
        cudaStreamSynchronize(nullptr) == cudaSuccess &&
        fused(wire<native_sum<float>>{.data = reinterpret_cast<float*>(memory.data()), .count = 1})
          .ok() &&
        cudaStreamSynchronize(on.stream) == cudaSuccess
      ? 0
      : 1;
  auto const expect = [&](bool ok, std::string_view name, std::uint64_t coordinates) {
    if (ok) { return; }
    ++failures;
    std::printf("rank %d of %d: in one kernel: %s of %llu coordinates\n",
                on.rank,
                on.ranks,
                name.data(),
                static_cast<unsigned long long>(coordinates));
  };
  for_each_fused_case([&](std::string_view name, auto const& codec, auto element) {
    if (on.brief && name != "rotated_sat4" && name != "two_shot_4") { return; }
    if (on.brief) {
      layout const of{.coordinates = shape.coordinates};
      return expect(exchanges_well(on, fused, name, codec, element, of), name, of.coordinates);
    }
    for (layout const& of : {layout{.coordinates = shape.coordinates}, shapes[2], shapes[0]}) {
      expect(exchanges_well(on, fused, name, codec, element, of), name, of.coordinates);
    }
  });
  return failures;
}

//! Two exchanges with a fault; whether the device finds one.
template <class Codec>
int fault_shows(nccl_rank const& on, Codec const& codec, symmetric_shape const& shape)
{
  return with_memory([&](std::span<std::byte> memory) {
    nccl_fused const fused{on.communicator, cuda_executor{on.stream}, memory, shape.blocks};
    auto const fault = static_cast<std::uint32_t>(shape.fault);
    std::size_t const behind =
      fused.workspace().size() +
      4 * detail::fused_flags::words(static_cast<std::size_t>(shape.blocks),
                                     static_cast<std::size_t>(on.ranks));
    fused_rank<Codec, float> const rank{on, codec, layout{.coordinates = shape.coordinates}};
    faulty_fused const faulty{fused};
    bool ok = cudaMemcpy(memory.data() + behind, &fault, 4, cudaMemcpyHostToDevice) == cudaSuccess;
    for (int step = 0; step < 2; ++step) {
      ok = ok && rank.put(0) && rank.exchange(fused.workspace(), faulty).ok() &&
           cudaStreamSynchronize(on.stream) == cudaSuccess;
    }
    return ok ? 0 : 1;
  });
}

}  // namespace

int check_nccl_fused(nccl_rank const& on, symmetric_shape const& shape)
{
  int const failures =
    with_memory([&](std::span<std::byte> memory) { return count_failures(on, shape, memory); });
  if (failures >= 0) { return failures; }
  if (on.rank == 0) {
    std::printf("%s: exchanges in one kernel: no symmetric memory is to be had here\n",
                shape.must_run ? "failed" : "skipped");
  }
  return shape.must_run ? 1 : 0;
}

int check_nccl_fused_fault(nccl_rank const& on, bool two_shot, symmetric_shape const& shape)
{
  return two_shot ? fault_shows(on, presets::two_shot_4, shape)
                  : fault_shows(on, presets::rotated_sat4, shape);
}

int check_nccl_fused_refusals(nccl_rank const& on, int blocks)
{
  int const failures = with_memory([&](std::span<std::byte> memory) {
    cuda_executor const exec{on.stream};
    nccl_fused const fused{on.communicator, exec, memory, blocks};
    nccl_fused const fewer{on.communicator, exec, memory, on.ranks - 1};
    nccl_fused const smaller{on.communicator, exec, memory.first(64), blocks};
    fused_rank<presets::two_shot<4>, float> const rank{
      on, presets::two_shot_4, layout{.coordinates = 5001}};
    stream_memory const elsewhere{on.stream, room};
    bool const usable = fused.check().ok();
    int wrong         = 0;
    auto const is     = [&](status const& s, error_code code) { wrong += s.code == code ? 0 : 1; };
    if (usable) {
      is(fewer.check(), error_code::invalid_argument);
      is(smaller.check(), error_code::invalid_argument);
      is(detail::check_resident<detail::fused_flags, presets::two_shot<4>, float>(1U << 20),
         error_code::unsupported);
      is(detail::check_resident<detail::fused_flags, presets::two_shot<4>, float>(1),
         error_code::ok);
      is(elsewhere.as<std::byte>() != nullptr && rank.put(0)
           ? rank.exchange(std::span{elsewhere.as<std::byte>(), room}, fused)
           : status{error_code::execution_failed, "no memory"},
         error_code::invalid_argument);
    } else {
      is(fused.check(), error_code::unsupported);
      is(rank.exchange(fused.workspace(), fused), error_code::unsupported);
    }
    return wrong;
  });
  return failures < 0 ? 1 : failures;
}

}  // namespace tersum::tests
