// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The network benchmark over MPI.

#pragma once

#include <tersum/interop/mpi.hpp>

#include <network/exchange.hpp>

namespace tersum::network {

using mpi_bench = bench<mpi_transport>;

//! Runs the presets that the build chose (TERSUM_BENCH_PRESETS), fp16 first. bench/CMakeLists.txt writes it.
void run_presets(mpi_bench& b);

}  // namespace tersum::network
