// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Cutting PTX.

#include "fault.hpp"
#include "ptx.hpp"
#include "ptx_reader.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace tersum::simulator {

namespace {

std::string_view trimmed(std::string_view text)
{
  while (!text.empty() && is_space(text.front())) { text.remove_prefix(1); }
  while (!text.empty() && is_space(text.back())) { text.remove_suffix(1); }
  return text;
}

// Cut at the commas that are in no brackets.
std::vector<std::string_view> split(std::string_view text)
{
  std::vector<std::string_view> result;
  int depth         = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    char const c = i < text.size() ? text[i] : ',';
    if (c == '{' || c == '[') { ++depth; }
    if (c == '}' || c == ']') { --depth; }
    if ((c == ',' && depth == 0) || i == text.size()) {
      result.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (result.size() == 1 && result[0].empty()) { result.clear(); }
  return result;
}

std::uint64_t number(std::string_view text)
{
  std::uint64_t value = 0;
  if (!parse_number(trimmed(text), value)) { fail("PTX: '", text, "' is not a number"); }
  return value;
}

std::uint64_t bytes_of_type(std::string_view type)
{
  std::uint64_t bits = 0;
  auto const digits  = type.find_first_of("0123456789");
  if (digits == std::string_view::npos ||
      std::from_chars(type.data() + digits, type.data() + type.size(), bits).ec != std::errc{}) {
    fail("PTX: ", type, " is not the type of a variable");
  }
  return bits / 8;
}

// After the space: `.align 16 .b8 name[4] = {...}`, up to what ends it.
ptx_variable variable(std::string_view space, std::string_view text)
{
  ptx_variable result{.space = space};
  reader in{text, 1};
  std::uint64_t size = 0;
  while (in.next() == '.') {
    auto const word = in.word();
    if (word == ".align") {
      result.align = number(in.word());
    } else if (word != ".ptr" && word != ".global" && word != ".shared") {
      size         = bytes_of_type(word);
      result.align = std::max(result.align, size);
    }
  }
  result.name  = in.word();
  result.bytes = size;
  if (!in.at_end() && in.next() == '[') {
    auto const count = trimmed(in.bracketed('[', ']'));
    result.bytes     = count.empty() ? 0 : size * number(count);
  }
  if (!in.at_end() && in.next() == '=') {
    in.skip(1);
    auto const values = in.next() == '{' ? in.bracketed('{', '}') : in.rest();
    for (auto const value : split(values)) {
      std::uint64_t const bits = number(value);
      for (unsigned k = 0; k < size; ++k) {
        result.contents.push_back(static_cast<std::uint8_t>(bits >> (8 * k)));
      }
    }
  }
  return result;
}

void parse_registers(std::string_view list, unsigned scope, ptx_body& to)
{
  reader in{list, 1};
  in.word();  // the type
  for (auto const name : split(list.substr(in.position()))) {
    to.registers.push_back({name, scope});
  }
}

ptx_statement statement(std::string_view text, unsigned line, unsigned scope)
{
  ptx_statement result{.text = trimmed(text), .line = line, .scope = scope};
  auto rest = result.text;
  if (rest[0] == '@') {
    auto const end = std::find_if(rest.begin(), rest.end(), is_space);
    auto const to  = static_cast<std::size_t>(end - rest.begin());
    result.guard   = rest.substr(1, to - 1);
    rest           = trimmed(rest.substr(to));
  }
  auto const end  = std::find_if(rest.begin(), rest.end(), is_space);
  auto const to   = static_cast<std::size_t>(end - rest.begin());
  result.opcode   = rest.substr(0, to);
  result.operands = split(trimmed(rest.substr(to)));
  return result;
}

}  // namespace

bool parse_number(std::string_view text, std::uint64_t& value)
{
  bool const negative = !text.empty() && text[0] == '-';
  if (negative) { text.remove_prefix(1); }
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && std::isalpha(static_cast<unsigned char>(text[1]))) {
    if (std::string_view{"xXfFdD"}.find(text[1]) == std::string_view::npos) { return false; }
    base = 16;
    text.remove_prefix(2);
  }
  if (!text.empty() && text.back() == 'U') { text.remove_suffix(1); }
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) { return false; }
  if (negative) { value = 0 - value; }
  return true;
}

std::string without_comments(std::string_view text)
{
  std::string result{text};
  for (std::size_t at = 0; at + 1 < result.size(); ++at) {
    if (result[at] != '/' || (result[at + 1] != '/' && result[at + 1] != '*')) { continue; }
    bool const line       = result[at + 1] == '/';
    std::size_t const end = result.find(line ? "\n" : "*/", at + 2);
    std::size_t const to  = std::min(line ? end : end + 2, result.size());
    for (; at < to; ++at) {
      if (result[at] != '\n') { result[at] = ' '; }
    }
  }
  return result;
}

ptx_module parse_module(std::string_view text)
{
  ptx_module result;
  reader in{text, 1};
  bool outside = false;
  while (!in.at_end()) {
    auto const word = in.word();
    if (word == ".version" || word == ".target" || word == ".address_size") {
      in.until('\n');
    } else if (word == ".extern") {
      outside = true;
    } else if (word == ".visible" || word == ".weak") {
    } else if (word == ".entry") {
      auto const name         = in.word();
      unsigned const line     = in.line();
      std::size_t const begin = in.position();
      in.bracketed('(', ')');
      while (in.next() != '{') { in.skip(1); }
      in.bracketed('{', '}');
      result.kernels.push_back({name, text.substr(begin, in.position() - begin), line});
    } else if (word == ".global" || word == ".const" || word == ".shared") {
      result.variables.push_back(variable(word, in.until(';')));
      result.variables.back().outside = outside;
      outside                         = false;
    } else {
      fail("PTX line ", in.line(), ": ", word, " is not known outside of kernels");
    }
  }
  return result;
}

ptx_body parse_kernel(ptx_kernel const& kernel)
{
  ptx_body result;
  reader in{kernel.text, kernel.line};
  for (auto const text : split(in.bracketed('(', ')'))) {
    auto const space = reader{text, 1}.word();
    result.parameters.push_back(variable(space, text.substr(space.size())));
  }
  while (in.next() != '{') {
    auto const directive = in.word();
    if (directive == ".maxntid" || directive == ".reqntid") {
      result.most_threads = 1;
      for (bool more = true; more; more = in.next() == ',' && !in.word().empty()) {
        result.most_threads *= number(in.word());
      }
    } else if (directive != ".minnctapersm" && directive != ".maxnreg") {
      fail("PTX line ", in.line(), ": ", directive, " of a kernel is not known");
    } else {
      in.word();
    }
  }
  in.skip(1);
  std::vector<unsigned> scopes{0};
  unsigned last_scope = 0;
  for (; !scopes.empty();) {
    char const sign = in.next();
    if (sign == '{' || sign == '}' || sign == ';') {
      in.skip(1);
      if (sign == '{') { scopes.push_back(++last_scope); }
      if (sign == '}') { scopes.pop_back(); }
      continue;
    }
    unsigned const line = in.line();
    auto const word     = in.peek();
    if (word == ".reg") {
      in.word();
      parse_registers(in.until(';'), scopes.back(), result);
    } else if (word == ".shared" || word == ".local") {
      in.word();
      result.variables.push_back(variable(word, in.until(';')));
    } else if (word == ".pragma") {
      in.until(';');
    } else if (word[0] == '.') {
      fail("PTX line ", line, ": ", word, " in a kernel is not known");
    } else {
      reader ahead = in;
      ahead.word();
      if (word[0] != '@' && ahead.next() == ':') {
        in = ahead;
        in.skip(1);
        result.labels.push_back({word, result.statements.size()});
      } else {
        result.statements.push_back(statement(in.until(';'), line, scopes.back()));
      }
    }
  }
  return result;
}

}  // namespace tersum::simulator
