// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

// expected: a codec of all_reduce_mean for a part of a bucket

#include <tersum/presets.hpp>
#include <tersum/two_level_codec.hpp>

tersum::two_level_codec const codec{tersum::presets::powersgd_r4};
