// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Costs of codecs from the results of bench/, in place of those of this machine.

#pragma once

#include <tersum/model/exchange.hpp>

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace advise {

//! @brief The seconds of each operation and codec, for each coordinate of the largest gradient of floats on one thread or on a
//! device.
class rate_table {
 public:
  //! @brief Reads the JSON of Google Benchmark, whose names are OPERATION/CODEC/float/DEVICE/n:COORDINATES...
  //! @return Empty, or a sentence.
  [[nodiscard]] std::string read(std::span<std::filesystem::path const> files);

  //! @brief Costs where encoding and decoding were both measured.
  [[nodiscard]] std::optional<tersum::model::coding> costs_of(std::string_view codec) const;

 private:
  struct rate {
    double coordinates = 0;
    double seconds     = 0;
  };
  std::map<std::string, rate> rates_;  // by OPERATION/CODEC
};

}  // namespace advise
