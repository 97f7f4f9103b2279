// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! The codecs on the CPU.

#include "codecs.hpp"
#include "cuda_device.hpp"
#include "named_codecs.hpp"
#include "named_forms.hpp"

#include <tersum/version.hpp>

namespace compare_codecs {

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

std::span<codec_entry const> list_exchanges()
{
  static std::vector<codec_entry> const entries = [] {
    std::vector<codec_entry> list(list_codecs().begin(), list_codecs().end());
    for_each_served_form([&](std::string_view name, std::string_view summary, auto const&) {
      list.push_back({name, summary, false, true});
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
  if (settings.cuda) {
    for (auto const& entry : list_exchanges()) {
      if (entry.name == name && entry.cpu_only) { return {{}, "runs on the CPU only"}; }
    }
    return run_on_cuda(name, gradients, layers, settings);
  }
  for (auto const run :
       {run_served, run_summed, run_choosing, run_low_rank, run_two_shot, run_older}) {
    run_outcome outcome = run(name, gradients, layers, settings);
    if (outcome.error != no_such_codec) { return outcome; }
  }
  return {{}, std::string{no_such_codec}};
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
