// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! All calls on arrays: docs/primitives.md.

#pragma once

#include <tersum/device/chunk_norms.hpp>
#include <tersum/device/orthogonalize.hpp>
#include <tersum/device/power_iteration.hpp>
#include <tersum/device/quantize.hpp>
#include <tersum/device/reduce.hpp>
#include <tersum/device/rotate.hpp>
#include <tersum/device/select_chunks.hpp>
