// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Statements of PTX to instructions.

#include "fault.hpp"
#include "memory.hpp"
#include "program.hpp"
#include "warp.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <unordered_map>

namespace tersum::simulator {

namespace {

constexpr std::string_view special_names[] = {
  "%tid.x",       "%tid.y",       "%tid.z",      "%ntid.x",   "%ntid.y",      "%ntid.z",
  "%ctaid.x",     "%ctaid.y",     "%ctaid.z",    "%nctaid.x", "%nctaid.y",    "%nctaid.z",
  "%laneid",      "%warpid",      "%envreg1",    "%envreg2",  "%lanemask_eq", "%lanemask_lt",
  "%lanemask_le", "%lanemask_gt", "%lanemask_ge"};
static_assert(std::size(special_names) == static_cast<std::size_t>(special::count));

constexpr std::uint64_t align_up(std::uint64_t offset, std::uint64_t align)
{
  return (offset + align - 1) / align * align;
}

std::string demangled(std::string_view name)
{
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> const text{
    abi::__cxa_demangle(std::string{name}.c_str(), nullptr, nullptr, &status), &std::free};
  return status == 0 ? text.get() : std::string{name};
}

// Updates are always strong; unless they say otherwise they are relaxed, for the device.
void set_order(instruction& i, std::string_view opcode)
{
  bool const updates = opcode.starts_with("atom.") || opcode.starts_with("red.");
  bool const fences  = opcode.starts_with("fence.") || opcode.starts_with("membar.");
  if (!updates && !fences && !opcode.starts_with("ld.") && !opcode.starts_with("st.")) { return; }
  if (updates) { i.order = memory_order::relaxed; }
  if (fences) { i.order = memory_order::acq_rel; }
  i.scope = memory_scope::device;
  while (!opcode.empty()) {
    auto const end  = std::min(opcode.find('.', 1), opcode.size());
    auto const part = opcode.substr(0, end);
    if (part == ".relaxed" || part == ".volatile") { i.order = memory_order::relaxed; }
    if (part == ".acquire") { i.order = memory_order::acquire; }
    if (part == ".release") { i.order = memory_order::release; }
    if (part == ".acq_rel") { i.order = memory_order::acq_rel; }
    if (part == ".cta") { i.scope = memory_scope::block; }
    if (part == ".gpu" || part == ".gl") { i.scope = memory_scope::device; }
    if (part == ".sys" || part == ".volatile") { i.scope = memory_scope::system; }
    opcode.remove_prefix(end);
  }
}

class decoder {
 public:
  decoder(ptx_kernel const& kernel, module_symbols const& symbols)
  {
    result_.name   = demangled(kernel.name);
    result_.source = parse_kernel(kernel);
    result_.slots  = slot_of(special::count);
    for (std::uint32_t i = 0; i < std::size(special_names); ++i) {
      names_.emplace(special_names[i], slot_of(special{i}));
    }
    place_variables(kernel, symbols);
    for (auto const& label : result_.source.labels) {
      labels_.emplace(label.name, static_cast<std::uint32_t>(label.at));
    }
  }

  program decode()
  {
    for (auto const& statement : result_.source.statements) {
      try {
        result_.code.push_back(instruction_of(statement));
      } catch (fault const& f) {
        fail(f.what(),
             "; PTX line ",
             statement.line,
             ", ",
             statement.text,
             ", of the kernel ",
             result_.name);
      }
    }
    return std::move(result_);
  }

 private:
  void place_variables(ptx_kernel const& kernel, module_symbols const& symbols)
  {
    for (auto const& parameter : result_.source.parameters) {
      auto const offset = align_up(result_.parameter_bytes, parameter.align);
      result_.parameter_offsets.push_back(offset);
      result_.parameter_bytes = offset + parameter.bytes;
      symbols_.emplace(parameter.name, offset);
    }
    auto const place_shared = [&](ptx_variable const& v) {
      auto const offset = align_up(result_.static_shared, v.align);
      symbols_.emplace(v.name, shared_memory::first + offset);
      result_.static_shared = offset + v.bytes;
    };
    for (auto const& v : result_.source.variables) {
      if (v.space == ".shared") { place_shared(v); }
      if (v.space == ".local") {
        auto const offset = align_up(result_.local_bytes, v.align);
        symbols_.emplace(v.name, offset);
        result_.local_bytes = offset + v.bytes;
      }
    }
    for (bool const outside : {false, true}) {  // memory of the launch lies behind all other
      for (std::size_t i = 0; i < symbols.variables->size(); ++i) {
        auto const& v = (*symbols.variables)[i];
        if (v.outside != outside) { continue; }
        if (v.space != ".shared") {
          symbols_.emplace(v.name, (*symbols.addresses)[i]);
        } else if (kernel.text.find(v.name) != std::string_view::npos) {
          place_shared(v);
        }
      }
    }
  }

  std::uint32_t constant(std::uint64_t value)
  {
    auto const [at, is_new] = constants_.emplace(value, result_.slots);
    if (is_new) { result_.constants.emplace_back(result_.slots++, value); }
    return at->second;
  }

  // Whether the scope has a register of this name, perhaps by `%r<40>`, which declares %r0 to %r39.
  [[nodiscard]] bool declares(std::string_view name, unsigned scope) const
  {
    auto const& all = result_.source.registers;
    return std::any_of(all.begin(), all.end(), [&](ptx_register const& r) {
      auto const bracket = std::min(r.name.find('<'), r.name.size());
      if (r.scope != scope || !name.starts_with(r.name.substr(0, bracket))) { return false; }
      if (bracket == r.name.size()) { return r.name == name; }
      std::uint64_t number = 0, count = 0;
      return parse_number(name.substr(bracket), number) &&
             parse_number(r.name.substr(bracket + 1, r.name.size() - bracket - 2), count) &&
             number < count;
    });
  }

  std::uint32_t register_slot(std::string_view name, unsigned scope)
  {
    bool const hidden     = scope != 0 && declares(name, scope);
    std::string const key = hidden ? sentence(name, "#", scope) : std::string{name};
    if (!hidden && names_.count(key) == 0 && !declares(name, 0)) { fail(name, " is not known"); }
    auto const [at, is_new] = names_.emplace(key, result_.slots);
    if (is_new) { ++result_.slots; }
    return at->second;
  }

  std::uint32_t source(std::string_view text, unsigned scope)
  {
    std::uint64_t value = 0;
    if (text == "WARP_SZ") { return constant(warp_lanes); }
    if (parse_number(text, value)) { return constant(value); }
    if (auto const symbol = symbols_.find(text); symbol != symbols_.end()) {
      return constant(symbol->second);
    }
    return register_slot(text, scope);
  }

  std::uint32_t destination(std::string_view text, unsigned scope)
  {
    return text == "_" ? result_.slots++ : register_slot(text, scope);
  }

  void add(instruction& to, std::uint32_t slot)
  {
    if (to.operands == to.slots.size()) { fail("too many operands"); }
    to.slots[to.operands++] = slot;
  }

  void add_address(instruction& to, std::string_view text, unsigned scope)
  {
    if (text.size() < 2 || text.front() != '[') { fail(text, " is not an address"); }
    text            = text.substr(1, text.size() - 2);
    auto const plus = text.find('+');
    if (plus != std::string_view::npos) {
      if (std::count(to.what->form.begin(), to.what->form.end(), 'a') > 1) {
        fail("an offset where there are several addresses");
      }
      std::uint64_t offset = 0;
      if (!parse_number(text.substr(plus + 1), offset)) { fail(text, " is not an address"); }
      to.offset = static_cast<std::int64_t>(offset);
    }
    add(to, source(text.substr(0, plus), scope));
  }

  template <class Add>
  static void each_of(std::string_view braced, unsigned count, Add const& add_one)
  {
    if (braced.size() < 2 || braced.front() != '{') { fail(braced, " is not a vector"); }
    braced         = braced.substr(1, braced.size() - 2);
    unsigned found = 0;
    while (!braced.empty()) {
      auto const end  = std::min(braced.find(','), braced.size());
      auto const name = braced.substr(0, end);
      auto const from = std::min(name.find_first_not_of(' '), name.size());
      add_one(name.substr(from, name.find_last_not_of(' ') + 1 - from));
      ++found;
      braced.remove_prefix(std::min(end + 1, braced.size()));
    }
    if (count != 0 && found != count) { fail("a vector of ", found, " where ", count, " belong"); }
  }

  instruction instruction_of(ptx_statement const& s)
  {
    std::string opcode{s.opcode};
    if (opcode.starts_with("mov.")) {  // one name for three things
      bool const packs   = s.operands.size() == 2 && s.operands[1].starts_with('{');
      bool const unpacks = s.operands.size() == 2 && s.operands[0].starts_with('{');
      opcode             = (packs ? "pack" : unpacks ? "unpack" : "mov") + opcode.substr(3);
    }
    operation const& what = find_operation(opcode);
    instruction i;
    i.what   = &what;
    i.run    = what.run;
    i.source = &s;
    i.number = static_cast<std::uint32_t>(result_.code.size());
    set_order(i, s.opcode);
    if (!s.guard.empty()) {
      i.negated = s.guard[0] == '!';
      i.guard   = register_slot(s.guard.substr(i.negated ? 1 : 0), s.scope);
    }
    if (s.operands.size() != what.form.size()) { fail("it has ", s.operands.size(), " operands"); }
    for (std::size_t k = 0; k < what.form.size(); ++k) {
      auto const text = s.operands[k];
      switch (what.form[k]) {
        case 'd': add(i, destination(text, s.scope)); break;
        case 'p': {
          auto const bar = text.find('|');
          add(i, destination(text.substr(0, bar), s.scope));
          add(i, destination(bar == text.npos ? "_" : text.substr(bar + 1), s.scope));
          break;
        }
        case 'D':
          each_of(text, what.count, [&](auto t) { add(i, destination(t, s.scope)); });
          break;
        case 'S': each_of(text, 0, [&](auto t) { add(i, source(t, s.scope)); }); break;
        case 'm': i.members = i.operands; [[fallthrough]];
        case 's': add(i, source(text, s.scope)); break;
        case 'a': add_address(i, text, s.scope); break;
        case 't': {
          auto const label = labels_.find(text);
          if (label == labels_.end()) { fail("there is no label ", text); }
          i.target = label->second;
          break;
        }
        default: fail("operands of this form");
      }
      if (std::string_view{"dpD"}.find(what.form[k]) != std::string_view::npos) {
        i.destinations = i.operands;
      }
    }
    result_.copies_shared = result_.copies_shared || opcode.starts_with("cp.async.bulk.global.");
    if (what.bytes != 0 && (what.where == space::shared || what.where == space::generic)) {
      result_.shared_granule = std::min<unsigned>(result_.shared_granule, what.bytes);
    }
    return i;
  }

  program result_;
  std::unordered_map<std::string, std::uint32_t> names_;
  std::unordered_map<std::uint64_t, std::uint32_t> constants_;
  std::unordered_map<std::string_view, std::uint64_t> symbols_;
  std::unordered_map<std::string_view, std::uint32_t> labels_;
};

}  // namespace

program decode(ptx_kernel const& kernel, module_symbols const& symbols)
{
  return decoder{kernel, symbols}.decode();
}

}  // namespace tersum::simulator
