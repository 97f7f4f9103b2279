// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The functions of the CUDA runtime, called as the code that nvcc generates calls them.

#include "launch_report.hpp"
#include "run_ptx.hpp"

#include <doctest/doctest.h>

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFunction(
  void**, char const*, char*, char const*, int, uint3*, uint3*, dim3*, dim3*, int*);
}

// The functions on the host that stand for kernels: only their addresses count. The second one waits for the kernel before.
static char const add_one = 0, add_one_after = 0;

template <class T>
static void append(std::string& to, T value)
{
  to.append(reinterpret_cast<char const*>(&value), sizeof(value));
}

// As nvcc writes it: headers, then text that zeros follow.
static std::string make_fat_binary(std::string text)
{
  text.resize((text.size() + 8) / 8 * 8);
  std::string entry;
  append(entry, std::uint16_t{1});  // PTX
  append(entry, std::uint16_t{257});
  append(entry, std::uint32_t{64});  // bytes of this header
  append(entry, std::uint64_t{text.size()});
  entry.resize(64);
  std::string result;
  append(result, std::uint32_t{0xba55ed50});
  append(result, std::uint16_t{1});
  append(result, std::uint16_t{16});
  append(result, std::uint64_t{entry.size() + text.size()});
  return result + entry + text;
}

static void register_kernel(char const& function, std::string const& body)
{
  struct {
    int magic, version;
    void const* data;
    void* rest;
  } wrapper{0x466243b1, 1, nullptr, nullptr};
  auto const binary   = make_fat_binary(tersum::simulator::one_kernel(body));
  wrapper.data        = binary.data();
  void** const module = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterFunction(
    module, &function, nullptr, "k", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
}

static void register_kernels()
{
  static bool const done = [] {
    std::string const add =
      "ld.global.u32 %r1, [%mine]; add.s32 %r2, %r1, 1; st.global.u32 [%mine], %r2;";
    register_kernel(add_one, add);
    register_kernel(add_one_after, "griddepcontrol.wait;" + add);
    return true;
  }();
  CHECK(done);
}

static cudaError_t launch(std::uint32_t* words,
                          unsigned threads,
                          cudaStream_t on,
                          std::size_t shared = 0)
{
  register_kernels();
  void* arguments[] = {&words};
  return cudaLaunchKernel(&add_one, {1, 1, 1}, {threads, 1, 1}, arguments, shared, on);
}

// With an attribute.
static cudaError_t launch_with(cudaLaunchAttributeID id,
                               int value,
                               char const& function,
                               std::uint32_t* words,
                               cudaStream_t on,
                               unsigned blocks = 1)
{
  register_kernels();
  void* arguments[] = {&words};
  cudaLaunchAttribute attribute{};
  attribute.id = id;
  // They lie in the same place.
  attribute.val.programmaticStreamSerializationAllowed = attribute.val.cooperative = value;
  cudaLaunchConfig_t config{};
  config.gridDim  = {blocks, 1, 1};
  config.blockDim = {32, 1, 1};
  config.stream   = on;
  config.attrs    = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelExC(&config, &function, arguments);
}

// 32 words of 7 on the device.
class words {
 public:
  words()
  {
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&data_), 128) == cudaSuccess);
    std::vector<std::uint32_t> const sevens(32, 7);
    REQUIRE(cudaMemcpy(data_, sevens.data(), 128, cudaMemcpyHostToDevice) == cudaSuccess);
  }
  words(words const&)            = delete;
  words& operator=(words const&) = delete;
  ~words() { CHECK(cudaFree(data_) == cudaSuccess); }

  [[nodiscard]] std::uint32_t* data() const { return data_; }
  [[nodiscard]] bool all(std::uint32_t value) const
  {
    std::vector<std::uint32_t> got(32);
    REQUIRE(cudaMemcpy(got.data(), data_, 128, cudaMemcpyDeviceToHost) == cudaSuccess);
    return got == std::vector<std::uint32_t>(32, value);
  }

 private:
  std::uint32_t* data_ = nullptr;
};

class stream {
 public:
  explicit stream(unsigned flags = cudaStreamNonBlocking)
  {
    REQUIRE(cudaStreamCreateWithFlags(&stream_, flags) == cudaSuccess);
  }
  stream(stream const&)            = delete;
  stream& operator=(stream const&) = delete;
  ~stream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

TEST_CASE("[simulator] a cooperative launch has no more blocks than are resident together")
{
  words const w;
  stream const on;
  constexpr auto together = cudaLaunchAttributeCooperative;
  int yes = 0, blocks = 0;
  CHECK(cudaDeviceGetAttribute(&yes, cudaDevAttrCooperativeLaunch, 0) == cudaSuccess);
  CHECK(yes == 1);
  CHECK(launch_with(together, 1, add_one, w.data(), on) == cudaSuccess);
  CHECK(w.all(8));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &add_one, 32, 0) == cudaSuccess);
  CHECK(blocks == 32);
  CHECK(launch_with(together, 1, add_one, w.data(), on, 33) == cudaErrorCooperativeLaunchTooLarge);
  CHECK(w.all(8));
  CHECK(launch_with(together, 0, add_one, w.data(), on, 33) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("[simulator] launches that overlap the kernel before must wait for it")
{
  words const w;
  stream const on;
  constexpr auto overlap = cudaLaunchAttributeProgrammaticStreamSerialization;
  CHECK(launch_with(overlap, 1, add_one_after, w.data(), on) == cudaSuccess);
  CHECK(launch_with(overlap, 0, add_one, w.data(), on) == cudaSuccess);
  CHECK(w.all(9));
  CHECK(launch_with(cudaLaunchAttributePriority, 0, add_one, w.data(), on) ==
        cudaErrorNotSupported);
  CHECK(launch_with(cudaLaunchAttributeProgrammaticEvent, 0, add_one_after, w.data(), on) ==
        cudaErrorNotSupported);
  cudaGetLastError();

  cudaGraph_t graph        = nullptr;
  cudaGraphExec_t runnable = nullptr;
  CHECK(cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(launch(w.data(), 32, on) == cudaSuccess);
  CHECK(launch_with(overlap, 1, add_one_after, w.data(), on) == cudaSuccess);
  CHECK(cudaStreamEndCapture(on, &graph) == cudaSuccess);
  CHECK(cudaGraphInstantiate(&runnable, graph, 0) == cudaSuccess);
  CHECK(cudaGraphLaunch(runnable, on) == cudaSuccess);
  CHECK(cudaStreamSynchronize(on) == cudaSuccess);
  CHECK(w.all(11));
  CHECK(cudaGraphExecDestroy(runnable) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);

  // After this the device is broken: in a process of its own.
  pid_t const child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    close(STDERR_FILENO);
    _exit(launch_with(overlap, 1, add_one, w.data(), on) == cudaErrorLaunchFailure ? 0 : 1);
  }
  int ended = 0;
  REQUIRE(waitpid(child, &ended, 0) == child);
  CHECK(ended == 0);
}

TEST_CASE("[simulator] kernels are launched with limits")
{
  words const w;
  stream const on;
  CHECK(launch(w.data(), 32, on) == cudaSuccess);
  CHECK(launch(w.data(), 0, on) == cudaErrorInvalidConfiguration);
  CHECK(launch(w.data(), 1025, on) == cudaErrorInvalidConfiguration);
  CHECK(launch(w.data(), 32, on, 49 * 1024) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(&add_one, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 * 1024) ==
        cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(&add_one, cudaFuncAttributeMaxDynamicSharedMemorySize, 49 * 1024) ==
        cudaSuccess);
  CHECK(launch(w.data(), 32, on, 49 * 1024) == cudaSuccess);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(w.all(9));
}

TEST_CASE(
  "[simulator] a file has a line for each launch, which says whether it is between a profiler's marks")
{
  words const w;
  stream const on;
  std::string const name = "tersum-counts-" + std::to_string(getpid());
  std::string const path = (std::filesystem::temp_directory_path() / name).string();
  setenv("TERSUM_SIMULATED_COUNTS", path.c_str(), 1);
  CHECK(launch(w.data(), 32, on) == cudaSuccess);
  CHECK(cudaProfilerStart() == cudaSuccess);
  CHECK(launch(w.data(), 32, on) == cudaSuccess);
  CHECK(launch(w.data(), 32, on) == cudaSuccess);
  CHECK(cudaProfilerStop() == cudaSuccess);
  unsetenv("TERSUM_SIMULATED_COUNTS");
  CHECK(launch(w.data(), 32, on) == cudaSuccess);
  // A block of 32 threads, whose warp reads and writes 128 bytes in four sectors; statements stand between.
  std::ifstream file{path};
  std::string line, marks;
  while (std::getline(file, line)) {
    marks += line.substr(0, 2);
    CHECK(line.substr(2, 7) == "1\t32\t0\t");
    CHECK(line.substr(line.find('\t', 9)) == "\t0\t1\t4\t128\t4\t1\t4\t128\t4\t0\t0\t0\tk");
  }
  CHECK(marks == "0\t1\t1\t");
  std::remove(path.c_str());
}

TEST_CASE("[simulator] a table sums up the launches of each kernel")
{
  words const w;
  stream const on;
  setenv("TERSUM_SIMULATED_PROFILE", "1", 1);
  CHECK(launch(w.data(), 32, on) == cudaSuccess);
  CHECK(launch(w.data(), 32, on) == cudaSuccess);
  unsetenv("TERSUM_SIMULATED_PROFILE");
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  tersum::simulator::launch_report::get().print(file);
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  // The heading, and one line: two launches, of two requests of four full sectors each.
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  std::istringstream line{text.substr(text.find('\n') + 1)};
  std::vector<std::string> cells{std::istream_iterator<std::string>{line}, {}};
  REQUIRE(cells.size() == 20);
  CHECK(cells[0] == "2");
  cells.erase(cells.begin(), cells.begin() + 2);
  CHECK(cells == std::vector<std::string>{"0",
                                          "|",
                                          "2",
                                          "4.00",
                                          "100%",
                                          "|",
                                          "2",
                                          "4.00",
                                          "100%",
                                          "|",
                                          "512",
                                          "256",
                                          "256",
                                          "|",
                                          "0",
                                          "0",
                                          "|",
                                          "k"});
}

TEST_CASE("[simulator] what a kernel does wrong, all later calls tell")
{
  words const w;
  CHECK(launch(w.data() + 1, 32, nullptr) == cudaErrorLaunchFailure);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  CHECK(launch(w.data(), 32, nullptr) == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(cudaDeviceReset() == cudaSuccess);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("[simulator] copies are held to allocations and their kind")
{
  words const w, v;
  std::uint32_t host[33] = {};
  CHECK(cudaMemcpy(host, w.data(), 132, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(host, w.data(), 128, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(w.data(), host, 128, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(nullptr, w.data(), 4, cudaMemcpyDefault) == cudaErrorInvalidValue);
  CHECK(cudaMemset(host, 0, 4) == cudaErrorInvalidValue);
  CHECK(cudaMemset(w.data(), 0, 128) == cudaSuccess);
  CHECK(cudaMemcpy(v.data(), w.data(), 128, cudaMemcpyDefault) == cudaSuccess);
  CHECK(v.all(0));
  CHECK(cudaFree(host) == cudaErrorInvalidValue);
  cudaPointerAttributes about{};
  CHECK(cudaPointerGetAttributes(&about, w.data() + 31) == cudaSuccess);
  CHECK(about.type == cudaMemoryTypeDevice);
  CHECK(cudaPointerGetAttributes(&about, host) == cudaSuccess);
  CHECK(about.type == cudaMemoryTypeUnregistered);
  cudaGetLastError();
}

TEST_CASE("[simulator] a capture records, and its graph does the work each time")
{
  words const w;
  stream const on, beside;
  cudaEvent_t fork = nullptr, join = nullptr;
  REQUIRE(cudaEventCreate(&fork) == cudaSuccess);
  REQUIRE(cudaEventCreate(&join) == cudaSuccess);
  CHECK(cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(launch(w.data(), 32, on) == cudaSuccess);
  CHECK(cudaEventRecord(fork, on) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(beside, fork, 0) == cudaSuccess);
  CHECK(launch(w.data(), 32, beside) == cudaSuccess);
  CHECK(cudaEventRecord(join, beside) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(on, join, 0) == cudaSuccess);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(on, &graph) == cudaSuccess);
  CHECK(w.all(7));  // nothing is done yet
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  CHECK(cudaGraphLaunch(executable, on) == cudaSuccess);
  CHECK(cudaGraphLaunch(executable, on) == cudaSuccess);
  CHECK(w.all(11));
  CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaEventDestroy(fork) == cudaSuccess);
  CHECK(cudaEventDestroy(join) == cudaSuccess);
}

TEST_CASE("[simulator] what a capture forbids")
{
  words const w;
  stream const on, beside, blocking{cudaStreamDefault};
  cudaGraph_t graph  = nullptr;
  std::uint32_t host = 0;
  void* memory       = nullptr;
  cudaEvent_t event  = nullptr;
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  CHECK(cudaStreamEndCapture(on, &graph) == cudaErrorIllegalState);
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) ==
        cudaErrorStreamCaptureUnsupported);

  auto const breaks = [&](cudaError_t expected, auto const& call) {
    REQUIRE(cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal) == cudaSuccess);
    CHECK(call() == expected);
    CHECK(cudaStreamEndCapture(on, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(graph == nullptr);
  };
  breaks(cudaErrorStreamCaptureUnsupported, [&] { return cudaMalloc(&memory, 4); });
  breaks(cudaErrorStreamCaptureUnsupported,
         [&] { return cudaMemcpy(&host, w.data(), 4, cudaMemcpyDeviceToHost); });
  breaks(cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamSynchronize(on); });
  breaks(cudaErrorStreamCaptureUnsupported, [&] { return cudaDeviceSynchronize(); });
  breaks(cudaErrorStreamCaptureIsolation, [&] {
    CHECK(cudaEventRecord(event, beside) == cudaSuccess);
    return cudaStreamWaitEvent(on, event, 0);
  });

  CHECK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cudaMalloc(&memory, 4) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaSuccess);
  CHECK(launch(w.data(), 32, nullptr) == cudaErrorStreamCaptureImplicit);
  CHECK(cudaStreamEndCapture(blocking, &graph) == cudaErrorStreamCaptureInvalidated);

  CHECK(cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(cudaEventRecord(event, on) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(beside, event, 0) == cudaSuccess);
  CHECK(cudaStreamEndCapture(beside, &graph) == cudaErrorStreamCaptureUnmatched);
  CHECK(cudaStreamEndCapture(on, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(cudaEventRecord(event, on) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(beside, event, 0) == cudaSuccess);
  CHECK(cudaStreamEndCapture(on, &graph) == cudaErrorStreamCaptureUnjoined);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
  cudaGetLastError();
  CHECK(w.all(7));
}
