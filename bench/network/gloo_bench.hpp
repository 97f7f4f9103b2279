// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The network benchmark over Gloo.

#pragma once

#include <tersum/interop/gloo.hpp>

#include <network/exchange.hpp>

namespace tersum::network {

using gloo_bench = bench<gloo_transport>;

//! Runs the presets that the build chose (TERSUM_BENCH_PRESETS), fp16 first. bench/CMakeLists.txt writes it.
void run_presets(gloo_bench& b);

}  // namespace tersum::network
