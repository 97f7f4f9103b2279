// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Kernels written by hand for the tests of the simulator.

#pragma once

#include "fault.hpp"
#include "launch.hpp"
#include "memory.hpp"
#include "modules.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace tersum::simulator {

//! @brief The PTX of a kernel `k` of one pointer, which is in %out, with the thread in %tid and out + 4 thread in %mine.
[[nodiscard]] inline std::string one_kernel(std::string const& body)
{
  return R"(.version 9.0
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry k(.param .u64 k_param_0)
{
  .reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .f32 %f<20>; .reg .b64 %rd<20>;
  .reg .b32 %tid; .reg .b32 %at; .reg .b64 %out, %mine;
  ld.param.u64 %out, [k_param_0];   // comments are left out
  mov.u32 %tid, %tid.x;
  shl.b32 %at, %tid, 2;
  mad.wide.u32 %mine, %tid, 4, %out;
)" + body +
         "\n  ret;\n}\n";
}

//! @brief Device memory of words, freed at the end.
class device_words {
 public:
  explicit device_words(std::size_t count)
    : count_{count}, data_{static_cast<std::uint32_t*>(
                       global_memory::get().allocate(4 * count, memory_kind::device))}
  {
  }
  device_words(device_words const&)            = delete;
  device_words& operator=(device_words const&) = delete;
  ~device_words() { global_memory::get().free(data_); }

  [[nodiscard]] std::uint32_t* data() const { return data_; }
  [[nodiscard]] std::vector<std::uint32_t> read() const { return {data_, data_ + count_}; }
  void write(std::vector<std::uint32_t> const& words) const
  {
    auto const at = reinterpret_cast<std::uint64_t>(data_);
    global_memory::get().find(at)->mark_written_by_host(at, 4 * words.size());
    std::copy(words.begin(), words.end(), data_);
  }

 private:
  std::size_t count_;
  std::uint32_t* data_;
};

//! @brief Runs the kernel with `threads` threads a block on `words` fresh words, which it returns. `counts` is what the launch did.
inline std::vector<std::uint32_t> run_words(std::string const& body,
                                            std::uint32_t threads,
                                            std::size_t words,
                                            std::size_t shared    = 0,
                                            std::uint32_t blocks  = 1,
                                            launch_counts* counts = nullptr,
                                            bool overlaps         = false)
{
  loaded_module module{one_kernel(body)};
  device_words const memory{words};
  auto const address = reinterpret_cast<std::uint64_t>(memory.data());
  std::vector<std::byte> parameters(sizeof(address));
  std::memcpy(parameters.data(), &address, sizeof(address));
  auto const done = run_kernel(module.kernel("k"),
                               {{blocks, 1, 1}, {threads, 1, 1}, shared, overlaps},
                               parameters,
                               counts != nullptr);
  if (counts != nullptr) { *counts = done; }
  return memory.read();
}

//! @brief What is wrong with a kernel, or "".
inline std::string fault_of(std::string const& body,
                            std::uint32_t threads = 32,
                            std::size_t words     = 64,
                            std::size_t shared    = 4096,
                            std::uint32_t blocks  = 1,
                            bool overlaps         = false)
{
  try {
    run_words(body, threads, words, shared, blocks, nullptr, overlaps);
    return {};
  } catch (fault const& f) {
    return f.what();
  }
}

}  // namespace tersum::simulator
