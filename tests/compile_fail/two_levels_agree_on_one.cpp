// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

// expected: give agree_on both transports

#include <tersum/interop/plan_fingerprint.hpp>
#include <tersum/presets.hpp>
#include <tersum/single_process/loopback_transport.hpp>

tersum::status agree(tersum::loopback_transport const& all)
{
  tersum::two_level_codec const codec{tersum::presets::fp16};
  return agree_on(all, codec.plan({.coordinates = 9}, {.size = 4, .rank = 0}, 2), 1);
}
