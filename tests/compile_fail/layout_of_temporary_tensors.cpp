// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A plan of tensors that are gone at the end of the line.
// expected: tersum: layout.tensors must live as long as the plan, and a temporary does not

#include <tersum/presets.hpp>

#include <vector>

std::vector<tersum::tensor> tensors_of_my_model();

auto const plan =
  tersum::presets::fp16.plan({.coordinates = 100, .tensors = tensors_of_my_model()}, {});
