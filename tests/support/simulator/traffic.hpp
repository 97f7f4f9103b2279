// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Counts what the statements of a launch ask of memory.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tersum::simulator {

//! @brief Accesses of global memory in one direction. A request is a statement of a warp that accesses any, a sector 32 bytes
//! whose address is a multiple of 32.
struct access_counts {
  std::uint64_t requests = 0;
  std::uint64_t sectors =
    0;  //!< Of each request: what the L2 cache is asked for if nothing lies before it.
  std::uint64_t bytes = 0;  //!< Of each request, each byte once: what it uses of its sectors.
  std::uint64_t distinct_sectors =
    0;  //!< Of the launch: what memory must move even with the best cache.
};

//! @brief Accesses of shared memory. A wavefront gives each of the 32 banks one word of four bytes.
struct shared_counts {
  std::uint64_t requests = 0;
  std::uint64_t wavefronts =
    0;  //!< One at least for every 32 lanes, or 16 with 8 bytes a lane, or 8 with 16 bytes.
  std::uint64_t conflicts = 0;  //!< Wavefronts beyond those.
};

//! @brief Counts the accesses of one launch. Updates count as stores.
class traffic_counter {
 public:
  access_counts loads, stores;
  shared_counts shared;

  //! A lane of the statement that runs accesses global memory.
  void reach_global(std::uint64_t address, std::size_t bytes, bool reads);

  //! A lane of it accesses shared memory.
  void reach_shared(unsigned lane, std::uint64_t address, std::size_t bytes);

  //! The statement has done what it does.
  void end_statement()
  {
    if (!sectors_.empty()) { end_global(); }
    if (!words_.empty()) { end_shared(); }
  }

 private:
  struct used_sector {
    std::uint64_t number;
    std::uint32_t bytes;  // bit b: byte b is used
  };
  struct shared_word {
    unsigned group;  // of the lanes that are served together
    std::uint64_t number;
  };
  // Bits for 64 neighbouring sectors.
  struct touched_sectors {
    std::uint64_t read = 0, written = 0;
  };

  void end_global();
  void end_shared();

  bool reads_ = false;
  std::vector<used_sector> sectors_;  // of the statement
  std::vector<shared_word> words_;    // likewise
  std::unordered_map<std::uint64_t, touched_sectors> touched_;
};

}  // namespace tersum::simulator
