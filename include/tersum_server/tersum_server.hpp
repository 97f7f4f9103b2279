// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A parameter server and its workers, over messages between threads of one process. <tersum_server/interop/mpi_messages.hpp> and
//! <tersum_server/interop/gloo_messages.hpp> have messages over MPI and Gloo.

#pragma once

#include <tersum_server/loopback_messages.hpp>
#include <tersum_server/message_header.hpp>
#include <tersum_server/message_transport.hpp>
#include <tersum_server/parameter_server.hpp>
#include <tersum_server/parameter_worker.hpp>
#include <tersum_server/served_plan.hpp>
