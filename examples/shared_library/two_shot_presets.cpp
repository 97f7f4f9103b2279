// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Presets whose codes are decoded, added and encoded again, on the host.

#include "host_device.hpp"
#include "presets.hpp"

namespace shared_library {

made_codec make_two_shot(tersum_options const& options)
{
  return make_named<host_device>([](auto const& visit) { for_each_two_shot_preset(visit); },
                                 options);
}

}  // namespace shared_library
