// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Messages over Gloo, and a parameter server that they serve, in so many processes as the argument says.

#include <tersum_server/interop/gloo_messages.hpp>

#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <server/messages.hpp>
#include <string>
#include <vector>

namespace {

int on_rank(std::string const& folder, int rank, int size)
{
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  auto device         = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  int failures = 0;
  {
    tersum::gloo_messages over{context};
    failures = tersum::tests::check_messages(over);
    // Who disconnects ends the messages of all.
    gloo::BarrierOptions all(context);
    gloo::barrier(all);
  }
  gloo::BarrierOptions all(context);
  gloo::barrier(all);
  tersum::gloo_messages nowhere{nullptr};
  return failures + (nowhere.check().message == "context is a null pointer" ? 0 : 1);
}

}  // namespace

int main(int argc, char** argv)
{
  std::signal(SIGPIPE, SIG_IGN);
  int const size = argc > 1 ? std::atoi(argv[1]) : 3;
  auto folder    = (std::filesystem::temp_directory_path() / "tersum-gloo-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) { return std::printf("no temporary folder\n"), 1; }
  std::vector<pid_t> processes;
  for (int rank = 0; rank < size; ++rank) {
    pid_t const process = fork();
    if (process == 0) {
      int const failures = on_rank(folder, rank, size);
      std::fflush(nullptr);
      _exit(failures == 0 ? 0 : 1);
    }
    processes.push_back(process);
  }
  int bad = 0;
  for (pid_t const process : processes) {
    int how = 0;
    waitpid(process, &how, 0);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) { ++bad; }
  }
  std::filesystem::remove_all(folder);
  return bad == 0 ? 0 : 1;
}
