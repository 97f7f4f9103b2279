// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A consumer's parameter server, by the target tersum::server.

#include <tersum_server/tersum_server.hpp>

std::size_t const bytes = sizeof(tersum::message_header);
