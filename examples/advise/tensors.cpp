// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What tensors.hpp declares.

#include "tensors.hpp"

#include <algorithm>
#include <compare_codecs/layers.hpp>
#include <compare_codecs/text.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace advise {

namespace {

namespace fs = std::filesystem;
using compare_codecs::in_quotes;

// The largest header that is read: far more than a million tensors have.
constexpr std::uint64_t most_header = std::uint64_t{1} << 28;

// One tensor of any number of extents; false where there are more coordinates than can be counted.
bool append(std::vector<layer>& tensors, std::string name, std::vector<std::uint64_t> const& shape)
{
  layer one{.name = std::move(name), .rows = 1, .columns = 1, .offset = coordinates_of(tensors)};
  constexpr auto most = std::numeric_limits<std::uint64_t>::max() >> 8;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    auto& extent = shape.size() > 1 && k == 0 ? one.rows : one.columns;
    if (shape[k] != 0 && extent > most / shape[k]) { return false; }
    extent *= shape[k];
  }
  if (one.columns != 0 && one.rows > most / one.columns) { return false; }
  if (one.rows * one.columns > 0) { tensors.push_back(std::move(one)); }
  return true;
}

// Just as much JSON as the header of a safetensors file is made of.
class json_reader {
 public:
  explicit json_reader(std::string_view text) : rest_{text} {}

  bool take(char c)
  {
    skip();
    if (rest_.empty() || rest_[0] != c) { return false; }
    rest_.remove_prefix(1);
    return true;
  }

  std::optional<std::string> take_string()
  {
    if (!take('"')) { return std::nullopt; }
    std::string text;
    while (!rest_.empty() && rest_[0] != '"') {
      std::size_t const more = rest_[0] == '\\' && rest_.size() > 1 ? 2 : 1;
      text += more == 2 && (rest_[1] == '"' || rest_[1] == '\\' || rest_[1] == '/')
                ? std::string(1, rest_[1])
                : std::string(rest_.substr(0, more));
      rest_.remove_prefix(more);
    }
    if (!take('"')) { return std::nullopt; }
    return text;
  }

  std::optional<std::uint64_t> take_number()
  {
    skip();
    auto const digits = rest_.substr(0, rest_.find_first_not_of("0123456789"));
    auto const number = compare_codecs::parse_number<std::uint64_t>(digits);
    if (number) { rest_.remove_prefix(digits.size()); }
    return number;
  }

  // An object, a list, a string or a word, whatever is in it.
  bool skip_value(int depth = 0)
  {
    skip();
    if (rest_.empty() || depth > 64) { return false; }
    if (rest_[0] == '"') { return take_string().has_value(); }
    if (rest_[0] != '{' && rest_[0] != '[') {
      auto const end = std::min(rest_.find_first_of(",]} \t\r\n"), rest_.size());
      rest_.remove_prefix(end);
      return end > 0;
    }
    bool const object = rest_[0] == '{';
    char const close  = object ? '}' : ']';
    rest_.remove_prefix(1);
    if (take(close)) { return true; }
    do {
      if (object && (!take_string() || !take(':'))) { return false; }
      if (!skip_value(depth + 1)) { return false; }
    } while (take(','));
    return take(close);
  }

 private:
  void skip() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }

  std::string_view rest_;
};

bool read_safetensors_header(std::string_view text, std::vector<layer>& tensors)
{
  json_reader json{text};
  if (!json.take('{')) { return false; }
  if (json.take('}')) { return true; }
  do {
    auto name = json.take_string();
    if (!name || !json.take(':')) { return false; }
    if (*name == "__metadata__") {
      if (!json.skip_value()) { return false; }
      continue;
    }
    bool shaped = false;
    if (!json.take('{')) { return false; }
    do {
      auto const key = json.take_string();
      if (!key || !json.take(':')) { return false; }
      if (*key != "shape") {
        if (!json.skip_value()) { return false; }
        continue;
      }
      std::vector<std::uint64_t> shape;
      if (!json.take('[')) { return false; }
      if (!json.take(']')) {
        do {
          auto const extent = json.take_number();
          if (!extent) { return false; }
          shape.push_back(*extent);
        } while (json.take(','));
        if (!json.take(']')) { return false; }
      }
      if (!append(tensors, *name, shape)) { return false; }
      shaped = true;
    } while (json.take(','));
    if (!shaped || !json.take('}')) { return false; }
  } while (json.take(','));
  return json.take('}');
}

std::string read_safetensors(std::istream& in, std::uint64_t bytes, std::vector<layer>& tensors)
{
  std::uint64_t length = 0;  // little-endian, as this program is
  in.read(reinterpret_cast<char*>(&length), sizeof(length));
  if (!in || length > bytes - sizeof(length) || length > most_header) {
    return "is not a safetensors file: its header is longer than it";
  }
  std::string header(length, '\0');
  in.read(header.data(), static_cast<std::streamsize>(length));
  if (!in || !read_safetensors_header(header, tensors)) { return "has a malformed header"; }
  return {};
}

// The extents in the Python dictionary that an .npy file begins with.
std::optional<std::vector<std::uint64_t>> shape_of_npy(std::string_view text)
{
  auto const at = text.find("'shape':");
  if (!text.starts_with("\x93NUMPY") || at == std::string_view::npos) { return std::nullopt; }
  json_reader reader{text.substr(at + 8)};
  std::vector<std::uint64_t> shape;
  if (!reader.take('(')) { return std::nullopt; }
  while (auto const extent = reader.take_number()) {
    shape.push_back(*extent);
    if (!reader.take(',')) { break; }
  }
  if (!reader.take(')')) { return std::nullopt; }
  return shape;
}

// Members of a zip file one after the other, by their local headers.
std::string read_npz(std::istream& in, std::vector<layer>& tensors)
{
  auto const number = [](std::string_view raw, std::size_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, raw.data() + at, bytes);
    return value;
  };
  for (;;) {
    std::string head(30, '\0');
    in.read(head.data(), 30);
    if (in.gcount() < 4 || !std::string_view{head}.starts_with("PK\x03\x04")) { break; }
    auto const flags  = number(head, 6, 2);
    auto const method = number(head, 8, 2);
    auto size         = number(head, 18, 4);
    std::string name(number(head, 26, 2), '\0');
    std::string extra(number(head, 28, 2), '\0');
    in.read(name.data(), static_cast<std::streamsize>(name.size()));
    in.read(extra.data(), static_cast<std::streamsize>(extra.size()));
    if (!in) { return "is cut short"; }
    if (method != 0 || (flags & 8) != 0) {
      return "has compressed arrays, or sizes behind them: save it with numpy.savez";
    }
    if (size == 0xffffffffu && extra.size() >= 20 && number(extra, 0, 2) == 1) {
      size = number(extra, 12, 8);  // zip64: uncompressed, compressed
    }
    auto const body = in.tellg();
    std::string text(std::min<std::uint64_t>(size, 4096), '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    auto const shape = in ? shape_of_npy(text) : std::nullopt;
    if (name.ends_with(".npy")) { name.resize(name.size() - 4); }
    if (!shape || !append(tensors, name, *shape)) { return "has no array in " + in_quotes(name); }
    in.seekg(body + static_cast<std::streamoff>(size));
  }
  return {};
}

}  // namespace

std::uint64_t coordinates_of(std::vector<layer> const& tensors)
{
  return tensors.empty() ? 0 : tensors.back().offset + tensors.back().rows * tensors.back().columns;
}

or_error<std::vector<layer>> read_tensors(fs::path const& given)
{
  std::error_code error;
  bool const folder = fs::is_directory(given, error);
  auto const file   = folder ? given / "layers.csv" : given;
  auto const name   = file.string() + " ";
  if (!fs::is_regular_file(file, error)) { return {.error = name + "does not exist"}; }
  if (file.extension() == ".csv") { return compare_codecs::read_layers_file(file); }
  std::ifstream in{file, std::ios::binary};
  if (!in) { return {.error = name + "cannot be opened"}; }
  or_error<std::vector<layer>> tensors;
  if (file.extension() == ".safetensors") {
    tensors.error = read_safetensors(in, fs::file_size(file, error), tensors.value);
  } else if (file.extension() == ".npz") {
    tensors.error = read_npz(in, tensors.value);
  } else {
    tensors.error = "is neither .csv, .safetensors nor .npz";
  }
  if (tensors && tensors.value.empty()) { tensors.error = "has no tensors"; }
  if (!tensors) { tensors.error.insert(0, name); }
  return tensors;
}

}  // namespace advise
