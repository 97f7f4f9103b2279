// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Ranks that are processes of one test, which meet over Gloo.

#pragma once

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tersum::tests {

//! The folder in which ranks meet, while `meeting` lasts.
inline std::string gloo_store;

//! Calls body() with a folder in which ranks meet; what main returns where body() gives the number of ranks that went wrong.
template <class Body>
[[nodiscard]] int meeting(Body const& body)
{
  std::signal(SIGPIPE, SIG_IGN);  // Gloo writes to the sockets of ranks that are dead
  gloo_store = (std::filesystem::temp_directory_path() / "tersum-gloo-XXXXXX").string();
  if (mkdtemp(gloo_store.data()) == nullptr) { return std::printf("no temporary folder\n"), 1; }
  int const bad = body();
  std::filesystem::remove_all(gloo_store);
  return bad == 0 ? 0 : 1;
}

//! The context of the ranks that meet under this name.
[[nodiscard]] inline std::shared_ptr<gloo::Context> connect(std::string const& name,
                                                            int rank,
                                                            int size)
{
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  auto device         = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore files(gloo_store);
  gloo::rendezvous::PrefixStore store(name, files);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  return context;
}

//! Starts so many processes, each of which does body(rank), the number of its failures.
template <class Body>
[[nodiscard]] std::vector<pid_t> start_ranks(int size, Body const& body)
{
  std::fflush(nullptr);
  std::vector<pid_t> processes;
  for (int rank = 0; rank < size; ++rank) {
    processes.push_back(fork());
    if (processes.back() == 0) {
      int const failures = body(rank);
      std::fflush(nullptr);
      _exit(failures == 0 ? 0 : 1);
    }
  }
  return processes;
}

//! Whether a process ended with 0 or, if it shall, by SIGKILL.
[[nodiscard]] inline bool has_ended(int how, bool killed)
{
  return killed ? WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL
                : WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

//! Runs body(rank) in so many processes; how many of them ended otherwise than they should.
template <class Body>
[[nodiscard]] int run_ranks(int size, int killed, Body const& body)
{
  auto const processes = start_ranks(size, body);
  int bad              = 0;
  for (int rank = 0; rank < size; ++rank) {
    int how = 0;
    waitpid(processes[static_cast<std::size_t>(rank)], &how, 0);
    if (!has_ended(how, rank == killed)) { ++bad; }
  }
  return bad;
}

}  // namespace tersum::tests
