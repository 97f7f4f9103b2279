// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What the code that nvcc generates registers with the runtime: PTX, kernels and their handles on the host.

#pragma once

#include "program.hpp"

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace tersum::simulator {

//! @brief The PTX in a fat binary of nvcc, or "" where it has none that is not compressed.
[[nodiscard]] std::string ptx_of_fat_binary(void const* data);

//! @brief One module: its text, its variables in device memory, its kernels. Threads may use it at the same time.
class loaded_module {
 public:
  explicit loaded_module(std::string text);

  //! The kernel of a mangled name, decoded when it is first asked for. Throws `fault`.
  [[nodiscard]] program const& kernel(std::string const& name);

  //! Names of all kernels.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::string text_;
  ptx_module parsed_;
  std::vector<std::uint64_t> addresses_;
  std::unordered_map<std::string, program> decoded_;
  std::mutex guard_;
};

//! @brief A kernel as the host knows it; what `cudaKernel_t` points to.
struct registered_kernel {
  loaded_module* in;
  std::string name;
  int dynamic_shared_limit = 48 * 1024;  //!< `cudaFuncAttributeMaxDynamicSharedMemorySize`
};

}  // namespace tersum::simulator
