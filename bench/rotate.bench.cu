// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

#include <tersum/range/global_range.hpp>
#include <tersum/rotate/no_rotation.hpp>
#include <tersum_baselines/full_hadamard.hpp>
//! @file
//! What a rotation costs on a CUDA device, as part of what a rank computes before its codes travel (`rotate_local`), of
//! saturating codes of 4 bits that differ in their rotator only, as in table 6 of Han et al. (HotNets'24); and the full one
//! alone, with the norms that come with it (`rotate`). Rotations of chunks are not alone: they stay on the chip.

#include "support/cuda_bench.cuh"

namespace {

using namespace tersum_bench;

template <class Rotator>
using codec =
  tersum::codec<tersum::fixed_chunks<1024>,
                Rotator,
                tersum::summed_codes<tersum::global_range<tersum::no_headroom>,
                                     tersum::stochastic_quantizer<4, tersum::independent>,
                                     tersum::saturating_sum<4>>,
                tersum::in_wire>;

template <class Codec>
void add_codec(std::string_view name, Codec const& codec)
{
  auto const add_part = [&](std::string_view operation, part what) {
    for (std::uint64_t const n : sizes()) {
      add(operation, name, "float", n, [=](benchmark::State& state) {
        local_bench<cuda_backend, Codec, float>{codec, {}, n}.template run<false>(state, what);
      });
    }
  };
  add_part("rotate_local", part::local);
  if (Codec::rotates_all) { add_part("rotate", part::norms); }
}

[[maybe_unused]] bool const registered = [] {
  if (!find_device()) { return false; }
  add_codec("full", codec<tersum::full_hadamard>{});
#if defined(TERSUM_BENCH_ALL_ROTATORS)
  add_codec("none", codec<tersum::no_rotation>{});
  add_codec("partial_1024", codec<tersum::partial_hadamard<1024>>{});
#endif
  return true;
}();

}  // namespace
