// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! Device memory and the shared memory of a block, with a record of what was written, and by whom.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace tersum::simulator {

//! @name Generic addresses
//! Those of device memory are addresses of the host; the others begin where no host address is.
//! @{
inline constexpr std::uint64_t shared_window = std::uint64_t{1} << 56;
inline constexpr std::uint64_t local_window  = std::uint64_t{2} << 56;
inline constexpr std::uint64_t param_window  = std::uint64_t{3} << 56;
//! Of memory that is mapped once more; no address of the host is as large.
inline constexpr std::uint64_t mapped_window = std::uint64_t{1} << 52;
//! @}

enum class memory_kind { device, managed, pinned };

//! @brief What somebody notes of the accesses to an allocation; it ends with the allocation.
struct access_notes {
  static inline std::mutex guard;  //!< Threads launch kernels that share allocations.
  virtual ~access_notes() = default;
  //! The host has written so many bytes from this one on.
  virtual void forget(std::uint64_t byte, std::size_t bytes) = 0;
};

//! @brief One allocation. Its address is a multiple of 256; one byte past its end is already outside.
class allocation {
 public:
  allocation(std::size_t bytes, memory_kind kind);

  [[nodiscard]] std::uint64_t begin() const { return reinterpret_cast<std::uint64_t>(data_.get()); }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  [[nodiscard]] memory_kind kind() const { return kind_; }
  [[nodiscard]] bool holds(std::uint64_t address, std::size_t bytes) const
  {
    return address >= begin() && bytes <= bytes_ && address - begin() <= bytes_ - bytes;
  }

  //! Whether all of the bytes have been written. The host writes what it can reach unseen.
  [[nodiscard]] bool written(std::uint64_t address, std::size_t bytes) const
  {
    if (!written_) { return true; }
    std::uint8_t const* const flags = written_.get() + (address - begin());
    for (std::size_t i = 0; i < bytes; ++i) {
      if (flags[i] == 0) { return false; }
    }
    return true;
  }
  void mark_written(std::uint64_t address, std::size_t bytes) const;

  //! The same, by the host.
  void mark_written_by_host(std::uint64_t address, std::size_t bytes) const;

  [[nodiscard]] std::unique_ptr<access_notes>& notes() const { return notes_; }

 private:
  struct release {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, release> data_;
  std::unique_ptr<std::uint8_t[]> written_;  // a flag a byte
  mutable std::unique_ptr<access_notes> notes_;
  std::size_t bytes_;
  memory_kind kind_;
};

//! @brief All allocations of the process. Threads may use it at the same time.
class global_memory {
 public:
  [[nodiscard]] static global_memory& get();

  //! Null where the host has no such memory.
  void* allocate(std::size_t bytes, memory_kind kind);

  //! False where it is no allocation's address.
  bool free(void const* address);

  //! The allocation that holds a byte, or null.
  [[nodiscard]] allocation const* find(std::uint64_t address) const;

  //! @brief Reserves addresses for memory that is mapped once more, as a library does with the memory of several ranks.
  //! @param places  Each of 4 GiB.
  [[nodiscard]] std::uint64_t reserve(std::size_t places);

  //! Maps an allocation to a place that is reserved.
  void map(std::uint64_t place, void* memory);

  void unmap(std::uint64_t place);

  //! The address for which one stands that is mapped; any other one itself. Throws `fault` where nothing is mapped.
  [[nodiscard]] std::uint64_t behind_mapping(std::uint64_t address) const;

  //! Changes whenever one is freed: what `find` told before may be gone.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

 private:
  mutable std::shared_mutex guard_;
  std::map<std::uint64_t, allocation> allocations_;  // by address
  std::atomic<std::uint64_t> generation_{1};
  std::map<std::uint64_t, std::uint64_t> mapped_;  // by the high half of the address
  std::uint64_t next_mapping_ = mapped_window >> 32;
};

//! @brief Who accesses shared memory, and when: epochs end with barriers of the block, turns with those of the warp.
struct access_time {
  std::uint32_t epoch;
  std::uint32_t turn;
  std::uint16_t thread;
};

//! @brief The shared memory of the block that runs. Addresses begin at `first`, as on sm_90, where the system has a KiB.
class shared_memory {
 public:
  static constexpr std::uint64_t first = 1024;

  //! @param granule  bytes of the narrowest access, a power of two: races are looked for in such pieces
  //! @param copied   Whether there are bulk copies out of it.
  shared_memory(std::size_t bytes, unsigned granule, bool copied);

  //! Another block: nothing of it is written yet.
  void begin_block(std::uint32_t epoch)
  {
    first_epoch_ = epoch;
    for (auto& granules : hidden_) { granules.clear(); }
  }

  [[nodiscard]] std::byte* data(std::uint64_t address) { return data_.data() + (address - first); }
  [[nodiscard]] std::size_t size() const { return data_.size(); }
  [[nodiscard]] bool holds(std::uint64_t address, std::size_t bytes) const
  {
    return address >= first && bytes <= size() && address - first <= size() - bytes;
  }

  //! Throws `fault` where it reads what was never written, or what another thread wrote with no barrier between.
  void read(std::uint64_t address, std::size_t bytes, access_time when);

  //! Throws `fault` where another thread read or wrote it with no barrier between. Updates are atomic: they may meet each
  //! other, and find something written.
  void write(std::uint64_t address, std::size_t bytes, access_time when, bool update = false);

  //! @name Bulk copies, which read through another proxy
  //! @{

  //! What a thread has written so far is there for copies that begin behind a barrier.
  void show(access_time when);

  //! Throws `fault` where a copy that this thread issues would read what it must not. It reads until it ends.
  void begin_copy(std::uint64_t address, std::size_t bytes, access_time when);
  void end_copy(std::uint64_t address, std::size_t bytes, access_time when);
  //! @}

 private:
  // What was last done to one granule.
  struct record {
    std::uint32_t write_epoch = 0, write_turn = 0;
    std::uint32_t read_epoch = 0, read_turn = 0;
    std::uint16_t writer = 0, reader = 0;
    bool updated = false, lanes_read = false, warps_read = false;  // several of them
    bool shown               = false;  // what was written, by the writer
    std::uint32_t show_epoch = 0, show_turn = 0;
  };
  struct copy {
    std::uint64_t address;
    std::size_t bytes;
    std::uint16_t thread;
  };

  std::vector<std::byte> data_;
  std::vector<record> records_;
  unsigned shift_;
  std::uint32_t first_epoch_ = 1;
  std::vector<copy> copies_;
  // Granules that each thread has written since it last showed any.
  std::vector<std::vector<std::uint32_t>> hidden_;
};

}  // namespace tersum::simulator
