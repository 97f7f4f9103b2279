// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Benchmarks of codecs of your own, on the CPU, beside those of the library. Link tersum::bench and benchmark::benchmark_main, and define:
//!
//!     #include <tersum_bench.hpp>
//!
//!     void tersum_bench::add_presets(operation const& what)
//!     {
//!       add_preset<float>(what, "fp16", tersum::presets::fp16);
//!       add_preset<float, tersum::half>(what, "mine", my_codec{});   // gradients of float, and of half
//!     }
//!
//! The program measures each operation that a codec has (docs/your_own.md), each beside a copy of the same memory. It takes
//! the arguments of Google Benchmark; bench/report.py and bench/plot.py read what it writes with --benchmark_out.

#pragma once

#include "support/cpu_presets.hpp"
#include "support/operation.hpp"
