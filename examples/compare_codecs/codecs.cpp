// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The codecs on the CPU.

#include "codecs.hpp"
#include "cuda_device.hpp"
#include "run_exchange.hpp"

#include <tersum/execute/cpu/parallel_for.hpp>
#include <tersum/tersum.hpp>

#include <chrono>

namespace compare_codecs {

namespace {

//! @brief The host's memory, clock and executor.
struct cpu_device {
  class buffer {
   public:
    explicit buffer(std::size_t bytes) : words_(bytes / sizeof(tersum::word4) + 1) {}
    [[nodiscard]] std::byte* data() const
    {
      return reinterpret_cast<std::byte*>(const_cast<tersum::word4*>(words_.data()));
    }

   private:
    std::vector<tersum::word4> words_;
  };

  tersum::cpu_executor executor;

  [[nodiscard]] buffer allocate(std::size_t bytes) const { return buffer{bytes}; }
  void upload(void* to, void const* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }
  void download(void* to, void const* from, std::size_t bytes) const
  {
    std::memcpy(to, from, bytes);
  }

  void copy(std::byte* to, float const* from, std::size_t bytes) const
  {
    auto const source         = reinterpret_cast<std::byte const*>(from);
    constexpr std::size_t cut = 1 << 18;
    tersum::detail::parallel_for(executor.threads, (bytes + cut - 1) / cut, [&](std::uint64_t i) {
      std::memcpy(to + i * cut, source + i * cut, std::min(cut, bytes - i * cut));
    });
  }

  template <class Prepare, class Work>
  [[nodiscard]] double best_ns(int repeat, Prepare const& prepare, Work const& work) const
  {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < repeat; ++i) {
      prepare();
      auto const begin = std::chrono::steady_clock::now();
      work();
      best = std::min(
        best,
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
    }
    return best;
  }
};

}  // namespace

std::span<codec_entry const> list_codecs()
{
  static std::vector<codec_entry> const entries = [] {
    std::vector<codec_entry> list;
    for_each_codec([&]<class Codec>(std::string_view name, std::string_view summary, Codec const&) {
      list.push_back({name, summary, tersum::is_low_rank<Codec>});
    });
    return list;
  }();
  return entries;
}

std::string_view library_version()
{
#define TERSUM_TEXT_OF(number) #number
#define TERSUM_TEXT(number)    TERSUM_TEXT_OF(number)
  return TERSUM_TEXT(TERSUM_VERSION_MAJOR) "." TERSUM_TEXT(TERSUM_VERSION_MINOR) "." TERSUM_TEXT(
    TERSUM_VERSION_PATCH);
}

std::string device_problem(bool cuda) { return cuda ? cuda_problem() : std::string{}; }

run_outcome run_codec(std::string_view name,
                      std::vector<std::vector<float>> const& gradients,
                      std::vector<layer> const& layers,
                      run_settings const& settings)
{
  if (settings.cuda) { return run_on_cuda(name, gradients, layers, settings); }
  return run_named(
    cpu_device{.executor = {.threads = settings.threads}}, name, gradients, layers, settings);
}

#if !defined(TERSUM_EXAMPLE_CUDA)

std::string cuda_problem()
{
  return "this program was built without CUDA, so --device cuda cannot be used";
}

run_outcome run_on_cuda(std::string_view,
                        std::vector<std::vector<float>> const&,
                        std::vector<layer> const&,
                        run_settings const&)
{
  return {{}, cuda_problem()};
}

#endif

}  // namespace compare_codecs
