// Prompt and decode speed of a model on a device, without tokenization and sampling on the host.
//
// usage: model_bench MODEL [--device NAME] [--prompt N[,N...]] [--decode N] [--depth D[,D...]]
//        [--batch ROWS] [--sequences N] [--kv f16|f32|q8_0] [--json] [--explain] [--explain-prompt]
//        [--steps]
// --prompt: tokens in one batch (default 512,2048; 0: none); --decode: tokens generated greedily
// (default 128; 0: none), from each depth (default 0); --sequences: decoded at once; --explain: the
// plan of a decode step, --explain-prompt: the plans of the prompts, --steps: adds the time of each
// step (of a decode step if neither is given).
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "llm/model/decode.h"
#include "llm/model/model.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Options {
  std::string model, device = "auto", kv = "f16";
  std::vector<int64_t> prompts = {512, 2048}, depths = {0};
  int64_t decode = 128, batch = 2048, sequences = 1;
  bool json = false, explain = false, explain_prompt = false, steps = false;
};

std::vector<int64_t> numbers(const std::string& text) {
  std::vector<int64_t> values;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find(',', at);
    if (end == std::string::npos) end = text.size();
    values.push_back(std::strtoll(text.substr(at, end - at).c_str(), nullptr, 10));
    at = end + 1;
  }
  return values;
}

std::optional<Options> parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto next = [&]() -> std::string { return i + 1 < count ? words[++i] : ""; };
    if (word == "--device")
      options.device = next();
    else if (word == "--prompt")
      options.prompts = numbers(next());
    else if (word == "--decode")
      options.decode = numbers(next()).at(0);
    else if (word == "--depth")
      options.depths = numbers(next());
    else if (word == "--batch")
      options.batch = numbers(next()).at(0);
    else if (word == "--sequences")
      options.sequences = numbers(next()).at(0);
    else if (word == "--kv")
      options.kv = next();
    else if (word == "--json")
      options.json = true;
    else if (word == "--explain")
      options.explain = true;
    else if (word == "--explain-prompt")
      options.explain_prompt = true;
    else if (word == "--steps")
      options.steps = true;
    else if (word.starts_with("--") || !options.model.empty())
      return std::nullopt;
    else
      options.model = word;
  }
  if (options.model.empty()) return std::nullopt;
  return options;
}

std::vector<int32_t> some_tokens(int64_t count, int64_t vocabulary) {
  std::vector<int32_t> tokens;
  uint32_t state = 12345;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    tokens.push_back(static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(vocabulary)));
  }
  return tokens;
}

struct Line {
  std::string what;
  int64_t tokens = 0, depth = 0;
  double seconds = 0;
};

int run(const Options& options) {
  const auto opened = Clock::now();
  const GgufFile file = GgufFile::open(options.model);
  const Device device = Device::named(options.device);
  const int64_t longest = *std::ranges::max_element(options.depths) + options.decode + 8;
  const int64_t context = std::max(longest, *std::ranges::max_element(options.prompts) + 8);
  const auto loading = Clock::now();
  Model model = Model::load(
      file, {.placement = place_on(file, device, context,
                                   ElementType::from_name(options.kv).value_or(DType::f16)),
             .slots = options.sequences,
             .batch_rows = options.batch});
  device.queue().wait();
  const double load_seconds = seconds_since(loading);
  const int64_t vocabulary = model.config().vocabulary;
  if (!options.json)
    fmt::print("{} on {} ({})\nload {:.3f} s, whole start {:.3f} s\n", options.model, device.id(),
               device.name(), load_seconds, seconds_since(opened));

  std::vector<Line> lines;
  const auto prompt = [&](std::span<const int32_t> tokens) {
    const Tensor logits = model.prefill(0, 0, tokens);
    return logits.slice(1, 0, 1).to_vector<float>();  // waits
  };
  for (const int64_t length : options.prompts) {
    if (length <= 0) continue;
    const std::vector<int32_t> tokens = some_tokens(length, vocabulary);
    const auto first = Clock::now();
    prompt(tokens);
    const double first_seconds = seconds_since(first);
    prompt(tokens);  // recorded
    double best = 1e30;
    for (int round = 0; round < 5; ++round) {
      const auto start = Clock::now();
      prompt(tokens);
      best = std::min(best, seconds_since(start));
      if (round >= 1 && best > 2) break;
    }
    lines.push_back({"prompt", length, 0, best});
    if (!options.json)
      fmt::print("prompt {:5}: {:9.1f} tokens/s ({:.2f} ms; the first {:.1f} ms)\n", length,
                 static_cast<double>(length) / best, best * 1e3, first_seconds * 1e3);
  }

  DecodeLoop loop(model);
  for (const int64_t depth : options.depths) {
    if (options.decode <= 0) break;
    for (int64_t slot = 0; depth > 0 && slot < options.sequences; ++slot)
      model.prefill(static_cast<int32_t>(slot), 0, some_tokens(depth, vocabulary));
    std::vector<DecodeLoop::Sequence> sequences;
    for (int64_t slot = 0; slot < options.sequences; ++slot)
      sequences.push_back({static_cast<int32_t>(slot), static_cast<int32_t>(depth), 1, {}});
    const auto first = Clock::now();
    loop.start(sequences);
    for (int step = 0; step < 3; ++step) loop.queue_step();
    loop.read(2);
    const double first_seconds = seconds_since(first);
    double best = 1e30;
    for (int round = 0; round < 3; ++round) {
      loop.start(sequences);
      loop.queue_step();
      const auto start = Clock::now();
      for (int64_t step = 1; step < options.decode; ++step) {
        loop.queue_step();
        loop.read(step - 1);
      }
      loop.read(options.decode - 1);
      best = std::min(best, seconds_since(start) * static_cast<double>(options.decode) /
                                static_cast<double>(options.decode - 1));
      if (best > 10) break;
    }
    const int64_t tokens = options.decode * options.sequences;
    lines.push_back({"decode", tokens, depth, best});
    if (!options.json)
      fmt::print(
          "decode {:5} from {:5}: {:9.1f} tokens/s ({:.3f} ms per step; first three {:.1f} ms)\n",
          tokens, depth, static_cast<double>(tokens) / best,
          best * 1e3 / static_cast<double>(options.decode), first_seconds * 1e3);
  }
  const BatchShape one{options.sequences, options.sequences, options.sequences, true};
  if (options.json) {
    std::string text;
    for (const Line& line : lines)
      text += fmt::format(
          "{}{{\"what\":\"{}\",\"tokens\":{},\"depth\":{},\"seconds\":{:.6f},"
          "\"tokens_per_second\":{:.2f}}}",
          text.empty() ? "" : ",", line.what, line.tokens, line.depth, line.seconds,
          static_cast<double>(line.tokens) / line.seconds);
    fmt::print("{{\"device\":\"{}\",\"name\":\"{}\",\"load_seconds\":{:.4f},\"results\":[{}]}}\n",
               device.id(), device.name(), load_seconds, text);
  } else {
    for (const ModelMemory& each : model.memory())
      fmt::print("{}: weights {:.1f} MB, cache {:.1f} MB, work {:.1f} MB\n", each.device.id(),
                 static_cast<double>(each.weight_bytes) / 1e6,
                 static_cast<double>(each.cache_bytes) / 1e6,
                 static_cast<double>(each.work_bytes) / 1e6);
  }
  if (options.explain || (options.steps && !options.explain_prompt))
    fmt::print("{}\n", model.explain(one, options.steps));
  for (const int64_t length : options.prompts)
    if (options.explain_prompt && length > 0)
      fmt::print("prompt of {}\n{}\n", length,
                 model.explain({std::min(length, options.batch), 1, 1, false}, options.steps));
  return 0;
}

}  // namespace
}  // namespace prism::llm

int main(int count, char** words) {
  const auto options = prism::llm::parse(count, words);
  if (!options) {
    std::cerr << "usage: model_bench MODEL [--device NAME] [--prompt N[,N]] [--decode N] [--depth "
                 "D[,D]] [--batch ROWS] [--sequences N] [--kv TYPE] [--json] [--explain] "
                 "[--explain-prompt] [--steps]\n";
    return 2;
  }
  try {
    return prism::llm::run(*options);
  } catch (const prism::Error& error) {
    std::cerr << "model_bench: " << error.what() << "\n";
    return 1;
  }
}
