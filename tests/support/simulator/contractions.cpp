// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Products and sums that the compiler of PTX may round as one.

#include "fault.hpp"
#include "program.hpp"

namespace tersum::simulator {

namespace {

constexpr std::size_t none = ~std::size_t{0};

// For each slot, an instruction whose product may be in it.
std::vector<std::size_t> products(program const& kernel, std::string const& type)
{
  std::vector<std::size_t> of(kernel.slots, none);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t at = 0; at < kernel.code.size(); ++at) {
      auto const& i           = kernel.code[at];
      auto const opcode       = i.source->opcode;
      bool const multiplies   = opcode == "mul." + type;
      bool const passes_it_on = opcode == "mov." + type || opcode == "neg." + type;
      if (!multiplies && !passes_it_on) { continue; }
      std::size_t const product = multiplies ? at : of[i.slots[1]];
      if (product != none && of[i.slots[0]] == none) {
        of[i.slots[0]] = product;
        changed        = true;
      }
    }
  }
  return of;
}

}  // namespace

std::vector<std::string> find_contractions(program const& kernel)
{
  std::vector<std::string> result;
  for (std::string const type : {"f32", "f64"}) {
    auto const of = products(kernel, type);
    for (auto const& i : kernel.code) {
      if (i.source->opcode != "add." + type && i.source->opcode != "sub." + type) { continue; }
      for (unsigned k = 1; k <= 2; ++k) {
        if (of[i.slots[k]] == none) { continue; }
        auto const& product = *kernel.code[of[i.slots[k]]].source;
        result.push_back(sentence("PTX lines ",
                                  product.line,
                                  " and ",
                                  i.source->line,
                                  ", ",
                                  product.text,
                                  " and ",
                                  i.source->text,
                                  ", may be rounded as one"));
      }
    }
  }
  return result;
}

}  // namespace tersum::simulator
