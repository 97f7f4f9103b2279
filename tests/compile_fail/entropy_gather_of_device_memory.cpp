// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A transport of device memory under a coder that runs on the host.
// expected: tersum: entropy_gather codes host memory, and this transport has a stream of a device

#include <tersum/interop/entropy_gather.hpp>
#include <tersum/single_process/loopback_transport.hpp>

struct of_device : tersum::loopback_transport {
  void check_stream(void*) const;
};

tersum::status gather(of_device const& over) { return tersum::entropy_gather{over, 2}.check(); }
