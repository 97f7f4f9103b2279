// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

#include "conformance/all_pairs.hpp"

using namespace tersum::tests::pairs;

TEST_CASE("[conformance] chunkers and rotators go with all other roles, or say why not")
{
  try_roles<of_chunks, of_rotation>(chunkers{}, rotators{});
  try_roles<of_chunks, of_coding>(chunkers{}, coders{});
  try_roles<of_chunks, of_rounds>(chunkers{}, forms{});
  try_roles<of_chunks, of_losses>(chunkers{}, feedbacks{});
  try_roles<of_chunks, of_units>(chunkers{}, metrics{});
  try_roles<of_rotation, of_coding>(rotators{}, coders{});
  try_roles<of_rotation, of_rounds>(rotators{}, forms{});
  try_roles<of_rotation, of_losses>(rotators{}, feedbacks{});
}
