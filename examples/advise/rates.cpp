// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What rates.hpp declares.

#include "rates.hpp"

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

namespace advise {

namespace {

std::vector<std::string> parts_of(std::string const& name)
{
  std::vector<std::string> parts;
  std::istringstream in{name};
  for (std::string part; std::getline(in, part, '/');) { parts.push_back(part); }
  return parts;
}

}  // namespace

std::string rate_table::read(std::span<std::filesystem::path const> files)
{
  for (auto const& file : files) {
    std::ifstream in{file};
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) { return "cannot read " + file.string(); }
    std::string const all = text.str();
    // Names, and the nearest time behind each, wherever lines break.
    std::string const key = "\"name\": \"";
    std::size_t found     = 0;
    for (auto at = all.find(key); at != std::string::npos; at = all.find(key, at + 1)) {
      auto const begin = at + key.size();
      auto const name  = all.substr(begin, all.find('"', begin) - begin);
      auto const next  = all.find(key, begin);
      auto const time  = all.find("\"best_ns\":", begin);
      auto const parts = parts_of(name);
      if (time == std::string::npos || time > next || parts.size() < 5 || parts[2] != "float") {
        continue;
      }
      if (name.find("threads:") != std::string::npos &&
          name.find("threads:1/") == std::string::npos) {
        continue;
      }
      double const coordinates = std::atof(parts[4].substr(parts[4].find(':') + 1).c_str());
      double const seconds     = 1e-9 * std::strtod(all.c_str() + time + 10, nullptr);
      if (!(coordinates > 0)) { continue; }
      ++found;
      std::string operation{parts[0] == "encode_feedback" ? "encode" : parts[0]};
      rate& one = rates_[operation.append("/").append(parts[1])];
      if (coordinates >= one.coordinates) { one = {coordinates, seconds / coordinates}; }
    }
    if (found == 0) { return file.string() + " has no results of bench/"; }
  }
  return {};
}

std::optional<tersum::model::coding> rate_table::costs_of(std::string_view codec) const
{
  auto const seconds = [&](char const* operation) -> std::optional<double> {
    std::string key{operation};
    key.append("/").append(codec);
    auto const found = rates_.find(key);
    return found == rates_.end() ? std::nullopt : std::optional{found->second.seconds};
  };
  auto const encode = seconds("encode");
  auto const decode = seconds("decode");
  if (!encode || !decode) { return std::nullopt; }
  auto const reduce = seconds("recompress");
  return tersum::model::coding{.encode = *encode + seconds("norms").value_or(0),
                               .reduce = reduce ? *reduce : seconds("reduce").value_or(0),
                               .decode = *decode};
}

}  // namespace advise
