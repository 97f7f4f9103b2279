// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The core: policies, codecs, presets, exchanges and the CPU executor. With nvcc, <tersum/tersum.cuh> adds the CUDA
//! executor. Transports are in interop/, ranks of one process in single_process/.

#pragma once

#include <tersum/chunk/allocated_chunks.hpp>
#include <tersum/chunk/fixed_chunks.hpp>
#include <tersum/chunk/random_chunks.hpp>
#include <tersum/chunk/top_chunks.hpp>
#include <tersum/codec.hpp>
#include <tersum/device/chunk_norms.hpp>
#include <tersum/device/orthogonalize.hpp>
#include <tersum/device/power_iteration.hpp>
#include <tersum/device/quantize.hpp>
#include <tersum/device/reduce.hpp>
#include <tersum/device/rotate.hpp>
#include <tersum/device/select_chunks.hpp>
#include <tersum/exchange/all_gather_values.hpp>
#include <tersum/exchange/all_reduce_mean.hpp>
#include <tersum/exchange/check_state.hpp>
#include <tersum/exchange/reduce_scatter_mean.hpp>
#include <tersum/execute/cpu_executor.hpp>
#include <tersum/feedback/decayed_feedback.hpp>
#include <tersum/feedback/difference_feedback.hpp>
#include <tersum/feedback/error_feedback.hpp>
#include <tersum/feedback/kept_by.hpp>
#include <tersum/lowrank/low_rank_codec.hpp>
#include <tersum/metric/diagonal.hpp>
#include <tersum/presets.hpp>
#include <tersum/quantize/lloyd_max.hpp>
#include <tersum/quantize/lookup_quantizer.hpp>
#include <tersum/quantize/nearest_quantizer.hpp>
#include <tersum/quantize/stochastic_quantizer.hpp>
#include <tersum/range/absmax_range.hpp>
#include <tersum/range/global_range.hpp>
#include <tersum/range/rms_range.hpp>
#include <tersum/reduce/guard_lanes.hpp>
#include <tersum/reduce/saturating_sum.hpp>
#include <tersum/reduce/widening_sum.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum/rotate/partial_hadamard.hpp>
#include <tersum/status.hpp>
#include <tersum/types.hpp>
#include <tersum/version.hpp>
