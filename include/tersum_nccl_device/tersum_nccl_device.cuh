// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Collectives in kernels, over memory that NCCL maps into all ranks. They have run in the simulator only.

#pragma once

#include <tersum_nccl_device/nccl_fused.cuh>
#include <tersum_nccl_device/nccl_symmetric.cuh>
