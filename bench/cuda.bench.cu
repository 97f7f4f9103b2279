// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The parts of an exchange on a CUDA device, timed by events, each beside a device-to-device copy of its input.
//! Without a device there is nothing to run.

#include "support/cuda_bench.cuh"

#include <tersum/block/cuda_context.cuh>
#include <tersum/presets.hpp>

namespace {

using namespace tersum_bench;

[[maybe_unused]] bool const registered = [] {
  if (!find_device()) { return false; }
  add_presets({"encode", part::encode});
  add_presets({"encode_feedback", part::encode_feedback});
  add_presets({"local", part::local});
  add_presets({"norms", part::norms});
  add_presets({"recompress", part::recompress});
  add_presets({"decode", part::decode});
  add_presets({"reduce", part::reduce});
  add_presets({"exchange", part::exchange});
  add_presets({"pair", part::pair});
  add_presets({"pair_replayed", part::pair_replayed});
  add_presets({"pair_tensors", part::pair_tensors});
  add_presets({"pair_misaligned", part::pair_misaligned});
  return true;
}();

}  // namespace
