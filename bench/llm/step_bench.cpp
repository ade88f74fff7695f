// The time of each step while long prompts are read and other texts decode, with the limit that the
// server sets.
//
// usage: step_bench [MODEL] [--device NAME] [--limit SECONDS] [--prompts N] [--tokens N]
// Two texts decode; after 20 steps N prompts of so many tokens come at once. Prints the steps with
// parts of prompts by their length, in time and in processor time (for PRISM_THREADS=1 on a busy
// machine; an asterisk: the step made a plan), and when each prompt had its first token.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "llm/model/model.h"
#include "prism/llm/language_model.h"

namespace prism::llm {
namespace {

struct Options {
  std::string model, device = "cpu";
  double limit = 0.1;
  int64_t prompts = 3, tokens = 1500;
};

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begun) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
}

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto next = [&]() -> std::string { return i + 1 < count ? words[++i] : ""; };
    if (word == "--device")
      options.device = next();
    else if (word == "--limit")
      options.limit = std::strtod(next().c_str(), nullptr);
    else if (word == "--prompts")
      options.prompts = std::strtoll(next().c_str(), nullptr, 10);
    else if (word == "--tokens")
      options.tokens = std::strtoll(next().c_str(), nullptr, 10);
    else
      options.model = word;
  }
  return options;
}

void bench(const Options& o) {
  LoadOptions load;
  load.fit.device = o.device;
  load.fit.context = o.tokens + 512;
  load.slots = o.prompts + 2;
  LanguageModel model = LanguageModel::load(o.model, load);
  model.set_step_limit(o.limit);
  std::mt19937 random(1);
  const auto prompt = [&](int64_t tokens) {
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < tokens; ++i)
      ids.push_back(static_cast<int32_t>(100 + random() % 10000));
    return ids;
  };
  GenerationOptions options;
  options.sampler.temperature = 0;
  options.ignore_end = true;
  options.max_tokens = 400;
  std::vector<int64_t> written(2);
  for (int64_t& each : written)
    model.add(prompt(16), options, [&each](const TextPiece&) { return ++each < 400; });
  for (int i = 0; i < 20; ++i) model.step();
  options.max_tokens = 1;
  int64_t left = o.prompts;
  const auto begun = Clock::now();
  std::vector<double> first_ms;
  for (int64_t i = 0; i < o.prompts; ++i)
    model.add(prompt(o.tokens), options, [&](const TextPiece&) {
      first_ms.push_back(ms_since(begun));
      return --left >= 0;
    });
  const int64_t before = written[0];
  std::vector<double> steps;
  std::string processor;
  while (left > 0) {
    const auto start = Clock::now();
    const std::clock_t ticks = std::clock();
    const size_t plans = model.model().plans();
    model.step();
    steps.push_back(ms_since(start));
    processor += fmt::format(" {:.0f}{}", 1e3 * double(std::clock() - ticks) / CLOCKS_PER_SEC,
                             model.model().plans() == plans ? "" : "*");
  }
  std::cout << "steps (ms):";
  for (const double each : steps) std::cout << fmt::format(" {:.0f}", each);
  std::cout << "\nprocessor time (ms):" << processor;
  std::vector<double> sorted = steps;
  std::ranges::sort(sorted);
  const auto at = [&](double part) {
    return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))];
  };
  std::cout << fmt::format(
      "\n{} steps: median {:.0f} ms, 90% {:.0f}, longest {:.0f}; {} above {:.0f} ms\n",
      steps.size(), at(0.5), at(0.9), sorted.back(),
      std::ranges::count_if(steps, [&](double each) { return each > o.limit * 1e3; }),
      o.limit * 1e3);
  std::cout << fmt::format("a decoding text got {} tokens; first tokens of the prompts (ms):",
                           written[0] - before);
  for (const double each : first_ms) std::cout << fmt::format(" {:.0f}", each);
  std::cout << fmt::format("; {:.0f} prompt tokens/s\n",
                           static_cast<double>(o.prompts * o.tokens) / (ms_since(begun) / 1e3));
}

}  // namespace
}  // namespace prism::llm

int main(int count, char** words) {
  try {
    prism::llm::bench(prism::llm::parse(count, words));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
