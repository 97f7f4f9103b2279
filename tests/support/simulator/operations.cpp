// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Looking opcodes up.

#include "operations.hpp"

#include <algorithm>
#include <array>

namespace tersum::simulator {

namespace {

// Caches and the scope of an order of memory change nothing here: accesses happen one at a time, in order.
constexpr std::array ignored{"volatile",
                             "relaxed",
                             "acquire",
                             "release",
                             "acq_rel",
                             "weak",
                             "nc",
                             "cta",
                             "gpu",
                             "sys",
                             "ca",
                             "cg",
                             "cs",
                             "lu",
                             "cv",
                             "wb",
                             "wt"};

std::string without_order(std::string_view opcode)
{
  std::string result;
  while (!opcode.empty()) {
    auto const end  = std::min(opcode.find('.', 1), opcode.size());
    auto const part = opcode.substr(0, end);
    if (part[0] != '.' ||
        std::find(ignored.begin(), ignored.end(), part.substr(1)) == ignored.end()) {
      result += part;
    }
    opcode.remove_prefix(end);
  }
  return result;
}

operation_table make_table()
{
  operation_table table;
  add_integer_operations(table);
  add_float_operations(table);
  add_conversions(table);
  add_memory_operations(table);
  add_warp_operations(table);
  return table;
}

}  // namespace

operation const& find_operation(std::string_view opcode)
{
  static operation_table const table = make_table();
  bool const of_memory               = opcode.starts_with("ld.") || opcode.starts_with("st.") ||
                         opcode.starts_with("atom.") || opcode.starts_with("red.");
  auto const found = table.find(of_memory ? without_order(opcode) : std::string{opcode});
  if (found == table.end()) { fail("the simulator does not know the opcode ", opcode); }
  return found->second;
}

}  // namespace tersum::simulator
