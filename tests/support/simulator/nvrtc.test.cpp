// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Headers for kernels, compiled by NVRTC, and the one file of them, compiled by NVRTC and nvcc: the same bytes.

#include "run_ptx.hpp"

#include <doctest/doctest.h>

#include <dlfcn.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace tersum::simulator;

namespace {

std::string text_of(std::string const& path)
{
  std::ifstream in{path};
  REQUIRE_MESSAGE(in.good(), path);
  return {std::istreambuf_iterator<char>{in}, {}};
}

// NVRTC by its functions' names, since a toolkit may come without it.
class nvrtc {
 public:
  explicit nvrtc(char const* path) : library_{dlopen(path, RTLD_NOW)} {}

  [[nodiscard]] bool exists() const { return library_ != nullptr; }

  [[nodiscard]] std::string ptx_of(std::string const& source, std::vector<char const*> options)
  {
    void* program = nullptr;
    REQUIRE(
      call("nvrtcCreateProgram", &program, source.c_str(), "kernels.cu", 0, nullptr, nullptr) == 0);
    int const status =
      call("nvrtcCompileProgram", program, static_cast<int>(options.size()), options.data());
    std::string const log = result("nvrtcGetProgramLog", program);
    REQUIRE_MESSAGE(status == 0, log);
    std::string ptx = result("nvrtcGetPTX", program);
    call("nvrtcDestroyProgram", &program);
    return ptx;
  }

 private:
  template <class... Arguments>
  int call(std::string const& name, Arguments... arguments)
  {
    auto* const function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name.c_str()));
    bool const found     = function != nullptr;
    REQUIRE_MESSAGE(found, name);
    return function(arguments...);
  }

  // What a function leaves, whose size a second one says.
  std::string result(std::string const& name, void* program)
  {
    std::size_t bytes = 0;
    REQUIRE(call(name + "Size", program, &bytes) == 0);
    std::string text(bytes, '\0');
    REQUIRE(call(name, program, text.data()) == 0);
    return text.c_str();
  }

  void* library_;
};

using words = std::vector<std::uint32_t>;

constexpr std::size_t count = 5000;  // five chunks of 1024, three of 2048, the last ones short

words gradient_of(std::uint32_t seed)
{
  words bits(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    float const v = static_cast<float>((i * 2654435761U + seed) >> 8) * 0x1p-24F - 0.5F;
    bits[i]       = std::bit_cast<std::uint32_t>(v * static_cast<float>(1 + i % 7));
  }
  return bits;
}

//! What the five kernels of a module leave.
struct left {
  words payload, mean, norms, rounded;
  bool operator==(left const&) const = default;
};

left run_all(std::string const& ptx)
{
  loaded_module module{ptx};
  device_words const gradient{count}, payload{5 * 128}, other{5 * 128}, mean{count}, norms{5},
    rounded{count / 2};
  auto const launch = [&](char const* name,
                          unsigned blocks,
                          unsigned threads,
                          std::array<std::uint64_t, 4> const& arguments) {
    program const& kernel = module.kernel(name);
    std::vector<std::byte> parameters(kernel.parameter_bytes);
    std::memcpy(parameters.data(), arguments.data(), parameters.size());
    run_kernel(kernel, {{blocks, 1, 1}, {threads, 1, 1}}, parameters);
  };
  auto const at = [](device_words const& memory) {
    return reinterpret_cast<std::uint64_t>(memory.data());
  };
  gradient.write(gradient_of(2));
  launch("compress", 2, 128, {at(gradient), count, 17, at(other)});
  gradient.write(gradient_of(1));
  launch("compress", 2, 128, {at(gradient), count, 17, at(payload)});
  launch("add", 5, 128, {at(other), 5 * 128, at(payload)});
  launch("apply", 2, 128, {at(payload), count, 17, at(mean)});
  launch("measure", 2, 128, {at(gradient), count, at(norms)});
  launch("cast", 3, 64, {at(gradient), count, 17, at(rounded)});
  return {payload.read(), mean.read(), norms.read(), rounded.read()};
}

}  // namespace

TEST_CASE("[simulator] kernels of NVRTC leave what those of nvcc leave, of headers and of one file")
{
  std::string const toolkit = TERSUM_CUDA_HEADERS, root = TERSUM_ROOT,
                    folder = TERSUM_ONE_FILE_FOLDER;
  left const of_nvcc       = run_all(text_of(folder + "/kernels_for_nvrtc.ptx"));

  // They do their work: mean and norms are those of the gradients.
  auto const first = gradient_of(1), second = gradient_of(2);
  auto const value = [](std::uint32_t bits) { return double{std::bit_cast<float>(bits)}; };
  double error = 0, size = 0;
  for (std::size_t i = 0; i < count; ++i) {
    double const mean = (value(first[i]) + value(second[i])) / 2;
    error += std::pow(value(of_nvcc.mean[i]) - mean, 2);
    size += mean * mean;
  }
  CHECK(error < 0.1 * size);
  for (std::size_t c = 0; c < 5; ++c) {
    double norm = 0;
    for (std::size_t i = 1024 * c; i < std::min(count, 1024 * (c + 1)); ++i) {
      norm += std::pow(value(first[i]), 2);
    }
    CHECK(value(of_nvcc.norms[c]) == doctest::Approx(norm).epsilon(1e-5));
  }

  nvrtc compiler{TERSUM_NVRTC};
  if (!compiler.exists()) {
    MESSAGE("no libnvrtc: what it makes of the headers is not tested");
    return;
  }
  std::string const source  = text_of(root + "/tests/support/simulator/kernels_for_nvrtc.cu");
  std::string const headers = "-I" + root + "/include", one_file = "-I" + folder,
                    cuda = "-I" + toolkit, standard = "-I" + toolkit + "/cccl";
  auto const compile = [&](std::vector<char const*> options) {
    options.insert(
      options.end(),
      {"-std=c++20", "-arch=compute_90", "-default-device", cuda.c_str(), standard.c_str()});
    return compiler.ptx_of(source, options);
  };
  CHECK(run_all(compile({headers.c_str()})) == of_nvcc);
  CHECK(run_all(compile({one_file.c_str(), "-DTERSUM_ONE_FILE"})) == of_nvcc);
}
