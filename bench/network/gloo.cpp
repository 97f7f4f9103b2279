// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! One rank of the network benchmark over Gloo, started by run.sh in a network namespace.

#include <tersum/interop/gloo.hpp>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

#include <csignal>
#include <exception>
#include <network/exchange.hpp>

int main(int argc, char** argv)
{
  using namespace tersum;
  if (argc < 5 + network::options::least) {
    std::fprintf(stderr,
                 "usage: RANK RANKS FOLDER ADDRESS COORDINATES STEPS MBIT PIECES [CODEC]\n");
    return 2;
  }
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
