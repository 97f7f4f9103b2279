// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The text of a PTX module, cut into variables, kernels and statements. Nothing is interpreted here.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tersum::simulator {

//! @brief A variable of a module or a kernel, or a parameter.
struct ptx_variable {
  std::string_view space{};  //!< ".shared", ".global", ".const", ".local" or ".param"
  std::string_view name{};
  bool outside        = false;           //!< `.extern`: its size is that of the launch
  std::uint64_t align = 1;               //!< bytes
  std::uint64_t bytes = 0;               //!< 0 for one that is outside
  std::vector<std::uint8_t> contents{};  //!< initial bytes; empty for zeros
};

struct ptx_statement {
  std::string_view guard{};  //!< the predicate, with '!' before it where negated; "" for none
  std::string_view opcode{};
  std::vector<std::string_view> operands{};
  std::string_view text{};
  unsigned line  = 0;  //!< in the module, from 1
  unsigned scope = 0;  //!< 0 in the body of the kernel; each inner block has a number of its own
};

struct ptx_label {
  std::string_view name;
  std::size_t at;  //!< index of the statement after it
};

//! @brief A register that an inner block declares, and hides one of the kernel.
struct ptx_register {
  std::string_view name;
  unsigned scope;
};

struct ptx_body {
  std::vector<ptx_variable> parameters;
  std::vector<ptx_variable> variables;  //!< shared and local ones of the kernel alone
  std::vector<ptx_register> registers;
  std::vector<ptx_statement> statements;
  std::vector<ptx_label> labels;
  std::uint64_t most_threads = 1024;  //!< of a block, by `.maxntid`
};

struct ptx_kernel {
  std::string_view name;
  std::string_view text;  //!< from the list of parameters to the brace that ends the body
  unsigned line = 0;      //!< of its first character
};

struct ptx_module {
  std::vector<ptx_variable> variables;
  std::vector<ptx_kernel> kernels;
};

//! @brief Blanks the comments of a module.
[[nodiscard]] std::string without_comments(std::string_view text);

//! @brief Cuts a module without comments; the text must outlive the result. Throws `fault`.
[[nodiscard]] ptx_module parse_module(std::string_view text);

//! @brief Cuts one kernel of it. Throws `fault`.
[[nodiscard]] ptx_body parse_kernel(ptx_kernel const& kernel);

//! @brief A number as PTX writes it: decimal, hexadecimal, or the bits of a float (0f..., 0d...); false where it is none.
[[nodiscard]] bool parse_number(std::string_view text, std::uint64_t& value);

}  // namespace tersum::simulator
