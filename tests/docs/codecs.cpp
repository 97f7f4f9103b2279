// SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
// SPDX-License-Identifier: Apache-2.0

//! @file
//! What surrounds the code in docs/codecs.md, whose codec exchanges a gradient; and the table of what goes together, which the
//! program makes of what codecs refuse and looks for in the page.

#include "../examples/your_own/sign_quantizer.hpp"
#include "docs/page.hpp"

#include <tersum/tersum.hpp>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

// code 1

static_assert(codec.coder.range.clip == .8f);
static_assert(codec.plan({.coordinates = 1}, {.size = 127, .rank = 0}).check().ok());
static_assert(!codec.plan({.coordinates = 1}, {.size = 128, .rank = 0}).check().ok());

namespace {

using tersum::refusal_of;

template <class... T>
struct list {
};

using chunkers  = list<tersum::fixed_chunks<256>,
                      tersum::top_chunks<256>,
                      tersum::random_chunks<256>,
                      tersum::allocated_chunks<256, 2, 4, 8>>;
using feedbacks = list<tersum::no_feedback, tersum::error_feedback, tersum::difference_feedback>;
using metrics   = list<tersum::plain_metric, tersum::given_diagonal, tersum::kept_diagonal>;

template <class C, class Coder, class Form, class F, class M>
constexpr bool goes_together =
  refusal_of<C, tersum::partial_hadamard<256>, Coder, Form, F, M>().empty() ||
  refusal_of<C, tersum::no_rotation, Coder, Form, F, M>().empty();

template <class Coder, class Form, class C, class F, class M>
constexpr bool goes_with_any_chunks = false;
template <class Coder, class Form, class... C, class F, class M>
constexpr bool goes_with_any_chunks<Coder, Form, list<C...>, F, M> =
  (goes_together<C, Coder, Form, F, M> || ...);

// The names whose policies go together with the rest, in a cell.
std::string cell(std::vector<bool> const& go, std::vector<std::string> const& names)
{
  std::string listed;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (go[i]) { listed += (listed.empty() ? " " : ", ") + names[i]; }
  }
  return listed + " |";
}

// A row of the table: a form and coders of a kind, of which one has to go with the policy.
template <class Form, class... Coder, class... C, class... F, class... M>
std::string row(std::string const& start, list<C...>, list<F...>, list<M...>)
{
  using tersum::no_feedback;
  using tersum::plain_metric;
  auto const with_chunks = []<class Chunks>() {
    return (goes_together<Chunks, Coder, Form, no_feedback, plain_metric> || ...);
  };
  auto const with_feedback = []<class Kept>() {
    return (goes_with_any_chunks<Coder, Form, list<C...>, Kept, plain_metric> || ...);
  };
  auto const with_metric = []<class Units>() {
    return (goes_with_any_chunks<Coder, Form, list<C...>, no_feedback, Units> || ...);
  };
  return start +
         cell({with_chunks.template operator()<C>()...}, {"fixed", "top", "random", "allocated"}) +
         cell({with_feedback.template operator()<F>()...}, {"none", "error", "difference"}) +
         cell({with_metric.template operator()<M>()...}, {"plain", "given", "kept"});
}

template <class Form>
std::vector<std::string> rows(std::string const& name)
{
  using tracked           = tersum::summed_codes<tersum::rms_range<tersum::tracked_correlation>,
                                       tersum::stochastic_quantizer<4>,
                                       tersum::saturating_sum<4>>;
  using plain             = tersum::summed_codes<tersum::rms_range<tersum::no_headroom>,
                                     tersum::stochastic_quantizer<4>,
                                     tersum::saturating_sum<4>>;
  std::string const start = "| `" + name + "` | ";
  return {
    row<Form, tracked, plain>(start + "`summed_codes` |", chunkers{}, feedbacks{}, metrics{}),
    row<Form, tersum::scaled_codes<tersum::lloyd_max<4>>>(
      start + "`scaled_codes` |", chunkers{}, feedbacks{}, metrics{}),
    row<Form, tersum::cast<tersum::half>>(start + "`cast` |", chunkers{}, feedbacks{}, metrics{})};
}

// The rows that the page should have are in it, and no others.
void check_table(char const* page)
{
  std::ifstream file{page};
  std::string line;
  std::vector<std::string> drawn, made;
  while (std::getline(file, line)) {
    if (line.starts_with("| `") && line.find("` | fixed") != line.npos) { drawn.push_back(line); }
  }
  for (auto const& of_form : {rows<tersum::in_wire>("in_wire"),
                              rows<tersum::two_shot>("two_shot"),
                              rows<tersum::gather>("gather"),
                              rows<tersum::shard>("shard"),
                              rows<tersum::publish>("publish")}) {
    for (std::string const& row : of_form) {
      if (row.find("fixed") != row.npos) { made.push_back(row); }
    }
  }
  if (drawn != made) {
    std::puts("The table of docs/codecs.md should be:");
    for (std::string const& row : made) { std::puts(row.c_str()); }
    ++pages::faults;
  }
}

}  // namespace

int main(int, char** arguments)
{
  check_table(arguments[1]);
  // A step of .8 root mean squares loses 1 - 2/pi of normal values; feedback sends that later.
  pages::one_rank mine{codec.plan({.coordinates = 4096}, {})};
  std::vector<float> const gradient = pages::waves(4096, .37f);
  std::vector<float> average(gradient.size());
  for (int step = 0; step < 32; ++step) {
    std::vector<float> const mean = mine.mean_of(gradient);
    if (step == 0) {
      double const lost = pages::error_of(mean, gradient);
      pages::check(lost > .3 && lost < .45, "signs lose a third");
    }
    for (std::size_t i = 0; i < mean.size(); ++i) { average[i] += mean[i] / 32; }
  }
  pages::check(pages::error_of(average, gradient) < .02,
               "means with feedback average to the gradient");
  return pages::faults;
}
