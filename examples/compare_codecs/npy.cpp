// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The `.npy` reader: a magic string, a Python dictionary in ASCII, then the raw numbers.

#include "npy.hpp"
#include "text.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <ios>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace compare_codecs {

static_assert(std::endian::native == std::endian::little, "the numbers are read as they lie");

namespace {

struct npy_header {
  std::optional<std::string_view> type;  // what stands between the quotes of 'descr'
  bool has_order           = false;      // 'fortran_order' was read; a vector has only one order
  bool has_shape           = false;
  std::uint64_t dimensions = 0;
  std::uint64_t count      = 0;  // the last extent, the only one of a vector
};

// Reads the subset of Python literals that NumPy writes, spaces anywhere, keys in any order.
class npy_header_reader {
 public:
  explicit npy_header_reader(std::string_view text) : rest_{text} {}

  // Empty when all went well, otherwise what is wrong with the header.
  [[nodiscard]] std::string read(npy_header& header)
  {
    std::string const malformed = "has a malformed .npy header";
    if (!take('{')) { return malformed; }
    bool comma = true;
    while (!take('}')) {
      auto const key = comma ? take_string() : std::nullopt;
      if (!key || !take(':')) { return malformed; }
      if (*key == "descr" && !header.type) {
        if (take('[')) { return "holds records instead of float32 or float16"; }
        header.type = take_string();
        if (!header.type) { return malformed; }
      } else if (*key == "fortran_order" && !header.has_order) {
        if (!take_word("True") && !take_word("False")) { return malformed; }
        header.has_order = true;
      } else if (*key == "shape" && !header.has_shape) {
        if (!take_shape(header)) { return malformed; }
      } else {
        return malformed;
      }
      comma = take(',');
    }
    skip_space();
    bool const complete = header.type && header.has_order && header.has_shape;
    return complete && rest_.empty() ? "" : malformed;
  }

 private:
  void skip_space()
  {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }

  bool take_word(std::string_view word)
  {
    skip_space();
    if (!rest_.starts_with(word)) { return false; }
    rest_.remove_prefix(word.size());
    return true;
  }

  bool take(char c) { return take_word({&c, 1}); }

  std::optional<std::string_view> take_string()
  {
    skip_space();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) { return std::nullopt; }
    auto const end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) { return std::nullopt; }
    auto const content = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return content;
  }

  bool take_number(std::uint64_t& number)
  {
    skip_space();
    auto const [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc{}) { return false; }
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }

  bool take_shape(npy_header& header)
  {
    if (!take('(')) { return false; }
    bool comma = true;
    while (!take(')')) {
      if (!comma || !take_number(header.count)) { return false; }
      ++header.dimensions;
      comma = take(',');
    }
    header.has_shape = true;
    return header.dimensions != 1 || comma;  // (5) is a number, (5,) a shape
  }

  std::string_view rest_;
};

// The bytes before the dictionary: magic, version, length of the dictionary.
struct npy_preamble {
  std::uint64_t bytes        = 0;  // of the preamble itself
  std::uint64_t header_bytes = 0;
};

or_error<npy_preamble> read_preamble(std::istream& in)
{
  constexpr std::string_view magic = "\x93NUMPY";
  std::array<char, 12> raw{};
  auto const byte = [&raw](std::size_t i) {
    return std::uint64_t{static_cast<unsigned char>(raw[i])};
  };

  in.read(raw.data(), 10);
  bool const has_magic = in.gcount() >= 6 && std::string_view{raw.data(), 6} == magic;
  if (!has_magic) { return {.error = "is not an .npy file"}; }
  if (in.gcount() < 10) { return {.error = "is cut short inside its header"}; }
  if (byte(6) < 1 || byte(6) > 3 || byte(7) != 0) {
    return {.error = "has .npy format version " + std::to_string(byte(6)) + "." +
                     std::to_string(byte(7)) + ", only 1.0, 2.0 and 3.0 are read"};
  }
  if (byte(6) == 1) { return {.value = {.bytes = 10, .header_bytes = byte(8) | byte(9) << 8}}; }
  in.read(raw.data() + 10, 2);
  if (in.gcount() < 2) { return {.error = "is cut short inside its header"}; }
  return {.value = {.bytes        = 12,
                    .header_bytes = byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24}};
}

// Errors of this function do not name the file yet.
or_error<std::vector<float>> read_npy_stream(std::istream& in, std::uint64_t file_bytes)
{
  auto const preamble = read_preamble(in);
  if (!preamble) { return {.error = preamble.error}; }
  auto const [preamble_bytes, header_bytes] = preamble.value;
  if (file_bytes < preamble_bytes || header_bytes > file_bytes - preamble_bytes) {
    return {.error = "is cut short inside its header"};
  }
  std::string text(header_bytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(header_bytes));
  if (!in) { return {.error = "cannot be read to its end"}; }
  npy_header header;
  if (auto error = npy_header_reader{text}.read(header); !error.empty()) {
    return {.error = error};
  }
  bool const is_half = header.type == "<f2";
  if (!is_half && header.type != "<f4") {
    return {.error = "has dtype " + in_quotes(header.type.value_or("")) +
                     ", only little-endian '<f4' and '<f2' are read"};
  }
  if (header.dimensions != 1) {
    return {.error = "is " + std::to_string(header.dimensions) + "-D, a gradient is 1-D"};
  }
  auto const data_bytes          = file_bytes - preamble_bytes - header_bytes;
  std::uint64_t const item_bytes = is_half ? 2 : 4;
  if (header.count > data_bytes / item_bytes) {
    return {.error = "is cut short: its header announces " + std::to_string(header.count) +
                     " coordinates, its data hold " + std::to_string(data_bytes / item_bytes)};
  }
  if (auto const extra = data_bytes - header.count * item_bytes; extra != 0) {
    return {.error = "has " + std::to_string(extra) + " bytes after its last coordinate"};
  }

  std::vector<float> values(header.count);
  if (is_half) {
    std::vector<std::uint16_t> halves(header.count);
    in.read(reinterpret_cast<char*>(halves.data()), static_cast<std::streamsize>(data_bytes));
    std::transform(halves.begin(), halves.end(), values.begin(), float_from_half);
  } else {
    in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(data_bytes));
  }
  if (!in) { return {.error = "cannot be read to its end"}; }
  auto const bad = std::find_if_not(
    values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  if (bad != values.end()) {
    return {.error =
              "has a NaN or an infinity at coordinate " + std::to_string(bad - values.begin())};
  }
  return {.value = std::move(values)};
}

}  // namespace

float float_from_half(std::uint16_t bits) noexcept
{
  std::uint32_t const sign      = (bits & 0x8000u) << 16;
  std::uint32_t const magnitude = (bits & 0x7fffu) << 13;
  if ((bits & 0x7c00u) == 0x7c00u) {  // infinity or NaN
    return std::bit_cast<float>(sign | 0x7f800000u | magnitude);
  }
  // Both formats now agree but for the exponent bias, 127 against 15; subnormals come out normal.
  return std::bit_cast<float>(sign | magnitude) * 0x1p112f;
}

or_error<std::vector<float>> read_npy(std::filesystem::path const& file)
{
  auto const name = file.string() + " ";
  std::error_code error;
  auto const status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) { return {.error = name + "does not exist"}; }
  if (!std::filesystem::is_regular_file(status)) { return {.error = name + "is not a file"}; }
  auto const bytes = std::filesystem::file_size(file, error);
  if (error) { return {.error = name + "cannot be read: " + error.message()}; }
  std::ifstream in{file, std::ios::binary};
  if (!in) { return {.error = name + "cannot be opened: " + std::strerror(errno)}; }
  auto result = read_npy_stream(in, bytes);
  if (!result) { result.error.insert(0, name); }
  return result;
}

}  // namespace compare_codecs
