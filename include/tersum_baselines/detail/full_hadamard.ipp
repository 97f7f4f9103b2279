// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The stages that `full_hadamard` adds to an exchange: the rotation of whole tensors, on the CPU and as kernels.

#include <tersum/block/detail/cpu/vector_kernels.hpp>
#include <tersum/exchange/detail/cpu/cpu_stages.hpp>
#include <tersum/exchange/detail/launch_list.hpp>
#include <tersum/execute/detail/parallel_for.hpp>
#include <tersum/tuning.hpp>
#include <tersum_baselines/detail/block_full_hadamard.hpp>

#include <algorithm>
#include <cstdint>

namespace tersum::inline v0::detail {

#define TERSUM_SIMD_SOURCE <tersum_baselines/detail/full_rotation.inl>
#include <tersum/block/detail/cpu/instruction_sets.inl>

TERSUM_KERNEL(full_pass)

template <int Size>
void flip_signs(instruction_set set, std::uint64_t chunk, std::uint64_t sign_key, float* values)
{
  TERSUM_DISPATCH(set, true, flip_signs<Size>(chunk, sign_key, values));
}

#undef TERSUM_DISPATCH
#undef TERSUM_KERNEL
#undef TERSUM_SIMD_SOURCE

//! @brief The rotation on `threads` threads with one instruction set.
template <class Codec, class Element>
class cpu_tensor_rotation {
 public:
  cpu_tensor_rotation(int threads, instruction_set set, exchange_args<Codec, Element> const& args)
    : threads_(threads), set_(set), args_(args)
  {
  }

  //! Gradient to `args.rotated`.
  void forward() const
  {
    std::uint64_t const key = args_.header->sign_key;
    parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
      chunk_entry const entry = args_.table[chunk];
      float* const to         = args_.rotated + chunk * size;
      for (std::uint32_t i = 0; i < entry.length; ++i) {
        to[i] = to_float(args_.gradient[entry.offset + i]);
      }
      std::fill(to + entry.length, to + size, 0.0f);
      flip_signs<size>(set_, chunk, key, to);
    });
    for (std::uint64_t tensor = 0; tensor < args_.tensors; ++tensor) {
      tensor_record const& record = args_.records[tensor];
      if (record.chunks == 0) { continue; }
      int const log = log2_exact(record.chunks * size);
      for (int first = 0; first < log; first += 5) {
        transform_tensor(record, first, std::min(5, log - first));
      }
    }
  }

  //! `args.rotated` to gradient.
  void backward() const
  {
    std::uint64_t const key = args_.header->sign_key;
    for (std::uint64_t tensor = 0; tensor < args_.tensors; ++tensor) {
      tensor_record const& record = args_.records[tensor];
      if (record.chunks == 0) { continue; }
      int const log = log2_exact(record.chunks * size);
      for (int first = (log - 1) / 5 * 5; first >= 0; first -= 5) {
        transform_tensor(record, first, std::min(5, log - first));
      }
    }
    parallel_for(threads_, args_.chunks, [&](std::uint64_t chunk) {
      chunk_entry const entry = args_.table[chunk];
      float* const from       = args_.rotated + chunk * size;
      flip_signs<size>(set_, chunk, key, from);
      for (std::uint32_t i = 0; i < entry.length; ++i) {
        args_.gradient[entry.offset + i] = finite_from_float<Element>(from[i]);
      }
    });
  }

 private:
  static constexpr int size = Codec::chunk_size;

  void transform_tensor(tensor_record const& record, int first, int levels) const
  {
    std::uint64_t const begin  = record.first_chunk * size;
    std::uint64_t const length = record.chunks * size;
    std::uint64_t const span   = std::uint64_t{1} << (first + levels);
    // Spans are independent; few and long ones are cut across their columns instead.
    std::uint64_t const whole =
      std::max<std::uint64_t>(span, std::min<std::uint64_t>(length, 4096));
    std::uint64_t const pieces  = length / whole;
    std::uint64_t const columns = first < 10 || pieces > 64 ? 1 : (std::uint64_t{1} << first) / 256;
    parallel_for(threads_, pieces * columns, [&](std::uint64_t i) {
      std::uint64_t const at = begin + i / columns * whole;
      full_pass(set_, args_.rotated, at, at + whole, first, levels, i % columns, columns);
    });
  }

  int threads_;
  instruction_set set_;
  exchange_args<Codec, Element> const& args_;
};

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::rotate_tensors, cpu_work<Codec, Element> const& work)
{
  cpu_tensor_rotation<Codec, Element>{work.threads, work.instructions, work.args}.forward();
  return {};
}

template <class Codec, class Element>
[[nodiscard]] status run_stage(stage::rotate_tensors_back, cpu_work<Codec, Element> const& work)
{
  cpu_tensor_rotation<Codec, Element>{work.threads, work.instructions, work.args}.backward();
  return {};
}

//! @name Kernels of full_hadamard
//! 32 coordinates a thread.
//! @{
struct full_forward_kernel : kernel_of_threads<&cuda_tuning::pass_threads> {
  int pass;
  TERSUM_RUNS(full_forward_pass(ctx, args, pass))
};

struct full_backward_kernel : kernel_of_threads<&cuda_tuning::pass_threads> {
  int pass;
  TERSUM_RUNS(full_backward_pass(ctx, args, pass))
};
//! @}

template <class Executor, class Codec, class Element>
void run_stage(stage::rotate_tensors, launch_list<Executor, Codec, Element>& launches)
{
  std::uint64_t const threads = launches.plan().chunks() * (Codec::chunk_size / 32);
  for (int pass = 0; pass < full_passes(launches.plan()); ++pass) {
    launches.threads(full_forward_kernel{{}, pass}, threads);
  }
}

template <class Executor, class Codec, class Element>
void run_stage(stage::rotate_tensors_back, launch_list<Executor, Codec, Element>& launches)
{
  std::uint64_t const threads = launches.plan().chunks() * (Codec::chunk_size / 32);
  for (int pass = full_passes(launches.plan()) - 1; pass >= 0; --pass) {
    launches.threads(full_backward_kernel{{}, pass}, threads);
  }
}

}  // namespace tersum::inline v0::detail
