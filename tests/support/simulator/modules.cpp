// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Fat binaries and modules.

#include "fault.hpp"
#include "memory.hpp"
#include "modules.hpp"

#include <algorithm>
#include <cstring>

namespace tersum::simulator {

std::string ptx_of_fat_binary(void const* data)
{
  // A header of 16 bytes, then entries, each with a header of its own; all sizes are bytes.
  struct header {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes;
  };
  struct entry {
    std::uint16_t kind, version;
    std::uint32_t header_bytes;
    std::uint64_t bytes;
    std::uint32_t compressed_bytes;
  };
  constexpr std::uint32_t magic = 0xba55ed50;
  constexpr std::uint16_t ptx   = 1;

  auto const* at = static_cast<char const*>(data);
  header all;
  std::memcpy(&all, at, sizeof(all));
  if (all.magic != magic) { return {}; }
  at += all.header_bytes;
  for (char const* const end = at + all.bytes; at < end;) {
    entry one;
    std::memcpy(&one, at, sizeof(one));
    char const* const text = at + one.header_bytes;
    if (one.kind == ptx && one.compressed_bytes == 0) {
      std::string_view const padded{text, one.bytes};
      return std::string{padded.substr(0, padded.find('\0'))};
    }
    at = text + one.bytes;
  }
  return {};
}

loaded_module::loaded_module(std::string text)
  : text_{without_comments(text)}, parsed_{parse_module(text_)}
{
  for (auto const& v : parsed_.variables) {
    std::uint64_t at = 0;
    if (v.space != ".shared") {
      void* const memory = global_memory::get().allocate(v.bytes, memory_kind::managed);
      if (memory == nullptr) { fail("the host has no memory for ", v.name); }
      std::memset(memory, 0, v.bytes);
      std::copy(v.contents.begin(), v.contents.end(), static_cast<std::uint8_t*>(memory));
      at = reinterpret_cast<std::uint64_t>(memory);
    }
    addresses_.push_back(at);
  }
}

program const& loaded_module::kernel(std::string const& name)
{
  std::lock_guard const lock{guard_};
  if (auto const known = decoded_.find(name); known != decoded_.end()) { return known->second; }
  auto const found = std::find_if(parsed_.kernels.begin(),
                                  parsed_.kernels.end(),
                                  [&](ptx_kernel const& k) { return k.name == name; });
  if (found == parsed_.kernels.end()) { fail("there is no PTX of the kernel ", name); }
  program decoded      = decode(*found, {&parsed_.variables, &addresses_});
  decoded.contractions = find_contractions(decoded);
  share_slots(decoded);
  return decoded_.emplace(name, std::move(decoded)).first->second;
}

std::vector<std::string> loaded_module::names() const
{
  std::vector<std::string> result;
  for (auto const& k : parsed_.kernels) { result.emplace_back(k.name); }
  return result;
}

}  // namespace tersum::simulator
