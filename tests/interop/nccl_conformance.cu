// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One rank of the tests over NCCL, a process: RANK RANKS FILE.

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <interop/nccl_conformance.hpp>
#include <string>
#include <thread>

namespace {

namespace tests = tersum::tests;

int failures = 0;
int me       = 0;
int ranks    = 1;

void expect(bool ok, char const* name, char const* what)
{
  if (ok) { return; }
  ++failures;
  std::printf("rank %d of %d: %s: %s\n", me, ranks, name, what);
}

ncclUniqueId meet(std::string const& file)
{
  ncclUniqueId id{};
  if (me == 0) {
    ncclGetUniqueId(&id);
    std::ofstream(file + ".new", std::ios::binary).write(id.internal, sizeof id.internal);
    std::filesystem::rename(file + ".new", file);
  }
  while (!std::filesystem::exists(file)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::ifstream(file, std::ios::binary).read(id.internal, sizeof id.internal);
  return id;
}

ncclComm_t connect(std::string const& file, bool blocking)
{
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking     = blocking ? 1 : 0;
  ncclComm_t out      = nullptr;
  auto const result   = ncclCommInitRankConfig(&out, ranks, meet(file), me, &config);
  expect(result == ncclSuccess || result == ncclInProgress, "connect", "NCCL does not begin");
  return out;
}

}  // namespace

int main(int argc, char** argv)
{
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) { return std::puts("skipped: no device"), 77; }
  if (argc < 4) { return std::fprintf(stderr, "usage: RANK RANKS FILE\n"), 2; }
  me    = std::atoi(argv[1]);
  ranks = std::atoi(argv[2]);
  // From 2.30 on NCCL lets two ranks share a device, and they reach one another if they seem to be on one host.
  int version              = 0;
  bool const shares_memory = ncclGetVersion(&version) == ncclSuccess && version >= 23000;
  if (shares_memory && ranks <= 2) { unsetenv("NCCL_HOSTID"); }
  tests::nccl_rank on{.rank = me, .ranks = ranks, .brief = ranks > 2};
  if (cudaSetDevice(me % devices) != cudaSuccess || cudaStreamCreate(&on.stream) != cudaSuccess) {
    return 1;
  }
  on.communicator = connect(argv[3], true);
  failures += tests::check_nccl_transport(on) + tests::check_nccl_codecs(on);
  tests::symmetric_shape const symmetric{.must_run = shares_memory && ranks == 2 && devices == 1};
  failures += tests::check_nccl_symmetric(on, symmetric) + tests::check_nccl_fused(on, symmetric) +
              tests::check_nccl_symmetric_shards(on, symmetric);
  ncclCommDestroy(on.communicator);
  if (ranks > 1) {
    on.communicator = connect(std::string(argv[3]) + ".alone", false);
    failures += tests::check_nccl_absence(on, std::chrono::seconds(3), std::chrono::seconds(8));
  }
  if (failures == 0) { std::printf("rank %d of %d: ok\n", me, ranks); }
  return failures == 0 ? 0 : 1;
}
