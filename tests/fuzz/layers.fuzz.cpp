// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Fuzzes the reader of layers.csv: matrices that cover the gradient, or a sentence. Two bytes are the gradient's length.

#include "examples/compare_codecs/gradient_sets.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace {

//! In memory, where there is such a place.
struct temporary_folder {
  std::filesystem::path path;

  temporary_folder()
  {
    std::filesystem::path const memory = "/dev/shm";
    auto const place =
      std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
    path = place / ("tersum_layers." + std::to_string(getpid()));
    std::filesystem::create_directory(path);
  }
  temporary_folder(temporary_folder const&) = delete;
  ~temporary_folder()
  {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
  static temporary_folder const folder;
  if (size < 2) { return -1; }
  std::uint64_t const coordinates = static_cast<std::uint64_t>(data[0]) << 8 | data[1];
  {
    std::ofstream file(folder.path / "layers.csv", std::ios::binary);
    file.write(reinterpret_cast<char const*>(data + 2), static_cast<std::streamsize>(size - 2));
  }
  auto const read = compare_codecs::read_layers(folder.path, coordinates);
  if (!read || read.value.empty()) { return 0; }
  std::uint64_t end = 0;
  for (auto const& layer : read.value) {
    if (layer.offset != end || layer.rows == 0 || layer.columns == 0) { std::abort(); }
    end += layer.rows * layer.columns;
  }
  if (end != coordinates) { std::abort(); }
  return 0;
}
