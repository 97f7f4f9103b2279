// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What probe.hpp declares, over the transports that the build found.

#include "probe.hpp"

#if defined(ADVISE_WITH_MPI)
#include <tersum/interop/mpi.hpp>
#endif
#if defined(ADVISE_WITH_GLOO)
#include <tersum/interop/gloo.hpp>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#endif
#include <tersum/interop/probe_network.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace advise {

namespace {

template <class Transport>
or_error<probed> measure(Transport const& over)
{
  std::vector<std::byte> scratch(std::size_t{1} << 25);
  or_error<probed> found{.value = {.ranks = over.size(), .rank = over.rank()}};
  auto const outcome = tersum::probe_network(over, scratch, found.value.net);
  if (!outcome.ok()) { found.error = std::string{outcome.message}; }
  if (found && over.size() < 2) { found.error = "a probe needs two ranks at least"; }
  return found;
}

or_error<probed> over_mpi()
{
#if defined(ADVISE_WITH_MPI)
  MPI_Init(nullptr, nullptr);
  auto found = measure(tersum::mpi_transport{MPI_COMM_WORLD});
  MPI_Finalize();
  return found;
#else
  return {.error = "this program was built without MPI"};
#endif
}

or_error<probed> over_gloo([[maybe_unused]] options const& chosen)
{
#if defined(ADVISE_WITH_GLOO)
  if (chosen.store.empty()) { return {.error = "a probe over Gloo needs --store DIR"}; }
  gloo::transport::tcp::attr attributes;
  attributes.hostname = chosen.address;
  gloo::rendezvous::FileStore store(chosen.store.string());
  auto context = std::make_shared<gloo::rendezvous::Context>(chosen.rank, chosen.where.ranks);
  auto device  = gloo::transport::tcp::CreateDevice(attributes);
  context->connectFullMesh(store, device);
  return measure(tersum::gloo_transport{context, std::chrono::seconds(60)});
#else
  return {.error = "this program was built without Gloo"};
#endif
}

}  // namespace

or_error<probed> probe(options const& chosen)
{
  return chosen.probe == "mpi" ? over_mpi() : over_gloo(chosen);
}

}  // namespace advise
