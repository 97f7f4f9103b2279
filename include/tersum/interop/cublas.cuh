// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Not yet run on a device, only compiled and linked by the tests: products of low-rank exchanges by cuBLAS. Link with cuBLAS.

#pragma once

#include <tersum/execute/cuda_executor.cuh>
#include <tersum/lowrank/detail/grouped_products.hpp>
#include <tersum/status.hpp>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tersum::inline v0 {

//! @brief A `cuda_executor` that leaves the products of paired low-rank exchanges of float to grouped GEMMs of cuBLAS.
//!
//! Use it for large ranks, where products are bound by multiply-adds. With CUBLAS_TF32_TENSOR_OP_MATH they run on tensor
//! cores, with 11 bits of each operand. A bucket's product is one call (two with feedback, whose residual is another summand;
//! another two for every 64 shapes that follow each other). All other work, and all other codecs, are left to `cuda_executor`.
//!
//! The ranks still end with equal bits, since all of them rebuild from reduced factors with this library's kernels.
//! Bits are no longer equal to those of `cpu_executor` and `cuda_executor`, nor between devices and versions of cuBLAS.
//! Between runs they are as equal as cuBLAS promises for its mode and number of streams.
struct cublas_executor : cuda_executor {
  cublasHandle_t
    handle;  //!< The caller's, on the same stream. For capture in a graph it needs a workspace of its own.
  std::span<std::byte>
    table;  //!< table_bytes(plan) bytes of device memory, aligned to 16, contents irrelevant.

  //! Bytes of `table`.
  template <class Codec>
  [[nodiscard]] static constexpr std::size_t table_bytes(plan<Codec> const& plan) noexcept
  {
    return plan.chunks() * detail::product_pointers::bytes;
  }

  //! @brief Whether the handle is on the executor's stream.
  [[nodiscard]] status check() const noexcept
  {
    cudaStream_t its = nullptr;
    if (cublasGetStream(handle, &its) != CUBLAS_STATUS_SUCCESS || its != stream) {
      return {error_code::invalid_argument,
              "handle is not on the executor's stream: call cublasSetStream(handle, stream)"};
    }
    return {};
  }

  //! A stage of an exchange: products by cuBLAS, all else as `cuda_executor` does it. *Errors*: those of `cuda_executor`; cuBLAS's
  //! own, in `status::native`; a table that is too small or misaligned.
  template <class Stage, class Codec, class Element>
  [[nodiscard]] status perform(Stage const& stage,
                               plan<Codec> const& plan,
                               detail::exchange_args<Codec, Element> const& args) const
  {
    constexpr bool multiplies =
      std::is_same_v<Stage, stage::measure> || std::is_same_v<Stage, stage::encode>;
    if constexpr (multiplies && detail::has_grouped_products<Codec, Element>) {
      if (status const s = check_table(plan); !s.ok()) { return s; }
      auto const exec = grouped(plan);
      detail::launch_list launches{exec, plan, args};
      return run_stage(stage, launches);
    } else {
      return cuda_executor::perform(stage, plan, args);
    }
  }

 private:
  template <class Codec>
  [[nodiscard]] status check_table(plan<Codec> const& plan) const noexcept
  {
    if (table.size() < table_bytes(plan)) {
      return {error_code::invalid_argument, "table is smaller than table_bytes(plan)"};
    }
    if (reinterpret_cast<std::uintptr_t>(table.data()) % 16 != 0) {
      return {error_code::invalid_argument, "table is not aligned to 16 bytes"};
    }
    return {};
  }

  template <class Codec>
  [[nodiscard]] auto grouped(plan<Codec> const& plan) const
  {
    detail::product_pointers const pointers{table.data(), plan.chunks()};
    auto const multiply =
      [*this, pointers](detail::product_groups const& groups, float const** matrices, bool adds) {
        constexpr int most = detail::product_groups::capacity;
        cublasOperation_t first[most], second[most];
        float one[most], beta[most];
        for (int i = 0; i < groups.count; ++i) {
          first[i]  = groups.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
          second[i] = CUBLAS_OP_N;
          one[i]    = 1.0f;
          beta[i]   = adds ? 1.0f : 0.0f;
        }
        cublasStatus_t const result =
          cublasSgemmGroupedBatched_64(handle,
                                       first,
                                       second,
                                       groups.m,
                                       groups.n,
                                       groups.k,
                                       one,
                                       matrices + groups.first,
                                       groups.transposed ? groups.k : groups.m,
                                       pointers.from + groups.first,
                                       groups.k,
                                       beta,
                                       pointers.to + groups.first,
                                       groups.m,
                                       groups.count,
                                       groups.size);
        return result == CUBLAS_STATUS_SUCCESS
                 ? status{}
                 : status{error_code::execution_failed,
                          "cuBLAS refused a grouped product: native is its status",
                          static_cast<int>(result)};
      };
    return detail::grouped_executor<cuda_executor, Codec, decltype(multiply)>{
      *this, plan, pointers, multiply};
  }
};

}  // namespace tersum::inline v0
