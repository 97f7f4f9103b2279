// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The version of the library. CMake reads it from here.

#pragma once

//! @name Version
//! Below 1.0 a new minor version may change the interface or the wire format; a new patch version changes neither.
//! @{
#define TERSUM_VERSION_MAJOR 0
#define TERSUM_VERSION_MINOR 2
#define TERSUM_VERSION_PATCH 0
//! @}
