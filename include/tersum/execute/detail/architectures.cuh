// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The namespace of what is compiled for a list of architectures: kernels, and the executor that launches them, whose type is in the name of
//! every function on the way. So objects for unlike architectures, linked into one program, each launch kernels of their own; of equal names
//! the linker would keep one.

#pragma once

// sm_800_900 of 800, 900. A macro does not expand itself again, so TERSUM_JOIN_AGAIN names it where the next scan reads it: there are more
// scans than architectures.
#define TERSUM_JOIN(joined, next, ...) TERSUM_JOIN_##__VA_OPT__(MORE)(joined##_##next, __VA_ARGS__)
#define TERSUM_JOIN_(joined, ...)      joined
#define TERSUM_JOIN_MORE(joined, ...)  TERSUM_JOIN_AGAIN TERSUM_NOTHING()()(joined, __VA_ARGS__)
#define TERSUM_JOIN_AGAIN()            TERSUM_JOIN
#define TERSUM_NOTHING()
#define TERSUM_SCAN(...)      TERSUM_SCAN_8(TERSUM_SCAN_8(TERSUM_SCAN_8(TERSUM_SCAN_8(__VA_ARGS__))))
#define TERSUM_SCAN_8(...)    TERSUM_SCAN_4(TERSUM_SCAN_4(__VA_ARGS__))
#define TERSUM_SCAN_4(...)    TERSUM_SCAN_2(TERSUM_SCAN_2(__VA_ARGS__))
#define TERSUM_SCAN_2(...)    TERSUM_SCAN_1(TERSUM_SCAN_1(__VA_ARGS__))
#define TERSUM_SCAN_1(...)    __VA_ARGS__
#define TERSUM_JOIN_LIST(...) TERSUM_SCAN(TERSUM_JOIN(sm, __VA_ARGS__))

#if defined(__CUDA_ARCH_LIST__)
#define TERSUM_ARCHITECTURES TERSUM_JOIN_LIST(__CUDA_ARCH_LIST__)
#else
#define TERSUM_ARCHITECTURES sm_any
#endif
