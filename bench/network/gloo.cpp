// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One rank of the network benchmark over Gloo, started by run.sh in a network namespace.

#include <tersum/interop/gloo.hpp>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <exception>
#include <network/exchange.hpp>

//! In place of the C library's, for the thread in which Gloo waits for its sockets. While another thread holds the lock of a
//! connection, that thread asks again and again (Pair::handleEvents tries the lock, and returns). Where it has interrupted the other
//! on the same core, neither goes on before the next tick of the scheduler, 4 ms with 250 Hz. So who has asked four times in a row
//! without work sleeps for 20 microseconds.
extern "C" int epoll_wait(int set, epoll_event* events, int most, int milliseconds)
{
  auto const now = [] {
    timespec at{};
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1'000'000'000L + at.tv_nsec;
  };
  thread_local long returned = 0;
  thread_local int idle      = 0;
  // Reading a message takes longer than a microsecond.
  idle = now() - returned < 1000 ? idle + 1 : 0;
  if (idle >= 3) {
    timespec const pause{0, 20'000};
    nanosleep(&pause, nullptr);
    idle = 0;
  }
  long const found = syscall(SYS_epoll_wait, set, events, most, milliseconds);
  returned         = now();
  return static_cast<int>(found);
}

int main(int argc, char** argv)
{
  using namespace tersum;
  if (argc < 5 + network::options::least) {
    std::fprintf(stderr,
                 "usage: RANK RANKS FOLDER ADDRESS COORDINATES STEPS MBIT PIECES [CODEC]\n");
    return 2;
  }
  prctl(PR_SET_TIMERSLACK, 1);    // nanoseconds, of all threads that come
  std::signal(SIGPIPE, SIG_IGN);  // Gloo writes to the sockets of ranks that are dead
  try {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = argv[4];
    auto device         = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore files(argv[3]);
    std::vector<std::unique_ptr<network::any_transport const>> over;
    for (std::size_t lane = 0; lane < network::lanes; ++lane) {
      gloo::rendezvous::PrefixStore store(std::to_string(lane), files);
      auto context =
        std::make_shared<gloo::rendezvous::Context>(std::atoi(argv[1]), std::atoi(argv[2]));
      context->connectFullMesh(store, device);
      over.push_back(std::make_unique<network::forgotten<gloo_transport> const>(
        context, std::chrono::seconds(120)));
    }
    network::bench b({argc - 5, argv + 5}, std::move(over));
    run_presets(b);
  } catch (std::exception const& error) {  // Gloo throws while it connects
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
