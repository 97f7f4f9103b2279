// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Messages over Gloo, and a parameter server that they serve, in so many processes as the argument says.

#include <tersum_server/interop/gloo_messages.hpp>

#include <gloo/barrier.h>

#include <cstdlib>
#include <interop/gloo_processes.hpp>
#include <server/messages.hpp>

namespace {

int on_rank(int rank, int size)
{
  auto const context = tersum::tests::connect("messages", rank, size);
  int failures       = 0;
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
  int const size = argc > 1 ? std::atoi(argv[1]) : 3;
  return tersum::tests::meeting([size] {
    return tersum::tests::run_ranks(size, -1, [size](int rank) { return on_rank(rank, size); });
  });
}
