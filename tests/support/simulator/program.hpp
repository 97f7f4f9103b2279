// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! A kernel as the simulator runs it: instructions on slots, each of which has a value for every lane of a warp.

#pragma once

#include "ptx.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tersum::simulator {

class warp;
struct instruction;

using lane_set = std::uint32_t;  //!< bit l stands for lane l

//! What an instruction does with the lanes that execute it.
using handler = void (*)(warp&, instruction const&, lane_set active);

//! What follows an instruction. Barriers and exchanges wait for the lanes that they name, `warp_together` for all.
enum class flow : std::uint8_t {
  on,
  branch,
  leave,
  warp_barrier,
  warp_exchange,
  warp_together,
  block_barrier
};
enum class space : std::uint8_t { generic, global, shared, local, param };

//! @name What an access or a fence orders, and for whom
//! Only interleaved blocks need to know: those that run one after the other see everything in order.
//! @{
enum class memory_order : std::uint8_t { weak, relaxed, acquire, release, acq_rel };
enum class memory_scope : std::uint8_t { block, device, system };
//! @}

//! @brief What an opcode means.
//!
//! `form` has a letter for each operand: d destination, D destinations in braces, p a destination and perhaps a second one
//! after '|'; s source, S sources in braces, m the set of lanes that take part; a address; t label.
struct operation {
  handler run           = nullptr;
  std::string_view form = "";
  flow then             = flow::on;
  space where           = space::generic;  //!< of memory operations
  std::uint8_t count    = 1;               //!< elements of a vector
  std::uint8_t bytes    = 0;               //!< of an element in memory
};

//! @brief The operation of an opcode. Throws `fault` for one that is not known.
[[nodiscard]] operation const& find_operation(std::string_view opcode);

struct instruction {
  operation const* what = nullptr;
  handler run           = nullptr;
  std::array<std::uint32_t, 16> slots{};  //!< of the operands, in their order
  std::uint8_t destinations   = 0;        //!< how many of the first are those
  std::uint8_t operands       = 0;
  std::uint8_t members        = 0;      //!< place in `slots` of the set of lanes
  bool negated                = false;  //!< of the guard
  std::uint32_t guard         = 0;      //!< its slot; slot 0 is no register: no guard
  std::uint32_t target        = 0;      //!< of a branch
  std::uint32_t number        = 0;      //!< its place in the program
  std::int64_t offset         = 0;      //!< of an address
  memory_order order          = memory_order::weak;
  memory_scope scope          = memory_scope::block;
  ptx_statement const* source = nullptr;
};

//! @brief What the launch decides, in slots of their own, in this order.
enum class special : std::uint32_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  envreg1,  //!< The high and the low half of the address of a cooperative launch's workspace.
  envreg2,
  lanemask_eq,
  lanemask_lt,
  lanemask_le,
  lanemask_gt,
  lanemask_ge,
  count
};

struct program {
  std::string name;  //!< demangled
  ptx_body source;
  std::vector<instruction> code;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> constants;  //!< slots and their values
  std::uint32_t slots = 0;
  std::vector<std::uint64_t> parameter_offsets;
  std::uint64_t parameter_bytes = 0;
  std::uint64_t static_shared   = 0;  //!< bytes
  std::uint64_t local_bytes     = 0;  //!< of a thread
  unsigned shared_granule = 16;     //!< bytes of the narrowest access that may go to shared memory
  bool copies_shared      = false;  //!< Whether it has bulk copies out of shared memory.
  std::vector<std::string> contractions{};  //!< what find_contractions said
};

//! The slot of a special register.
[[nodiscard]] constexpr std::uint32_t slot_of(special which)
{
  return 1 + static_cast<std::uint32_t>(which);
}

//! @brief Where variables of the module lie.
struct module_symbols {
  std::vector<ptx_variable> const* variables;
  std::vector<std::uint64_t> const* addresses;  //!< of each that is global or constant
};

//! @brief Decodes a kernel. Throws `fault`.
[[nodiscard]] program decode(ptx_kernel const& kernel, module_symbols const& symbols);

//! @brief Lets registers share slots. Results stay the same.
void share_slots(program& kernel);

//! @brief Says where a product that is not rounded by name meets a sum that is not: the compiler may round them as one.
//! One sentence each. Before slots are shared.
[[nodiscard]] std::vector<std::string> find_contractions(program const& kernel);

}  // namespace tersum::simulator
