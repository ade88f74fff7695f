// Times the embedding of texts: every line of a file is one text.
//
// usage: embed_bench TEXTS [--model minilm] [--device cpu] [--rounds 3] [--out rows.f32]
//
// Prints texts and tokens per second of the best round. --out writes the vectors of the last round
// as raw float32 rows, so that embed_peers.py can compare them.
#include <chrono>
#include <fstream>
#include <iostream>

#include <fmt/format.h>

#include "bench_options.h"
#include "prism/error.h"
#include "prism/llm/embedder.h"

namespace prism {
namespace {

int run(const std::string& file, const BenchOptions& options) {
  std::vector<std::string> texts;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) texts.push_back(line);
  llm::Embedder embedder =
      llm::Embedder::open({.model = options.get("--model", llm::kDefaultEmbedder),
                           .device = options.get("--device", "cpu")});
  int64_t tokens = 0;
  for (const std::string& each : texts)
    tokens += std::min(embedder.tokens(each), embedder.max_tokens());
  double best = 1e30;
  std::vector<float> rows;
  for (int round = std::stoi(options.get("--rounds", "3")); round-- > 0;) {
    const auto start = std::chrono::steady_clock::now();
    rows = embedder.embed(texts);
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::cout << fmt::format("{}: {:.1f} texts/s, {:.0f} tokens/s ({} texts, {} tokens, {:.3f} s)\n",
                           embedder.title(), static_cast<double>(texts.size()) / best,
                           static_cast<double>(tokens) / best, texts.size(), tokens, best);
  if (const std::string out = options.get("--out", ""); !out.empty())
    std::ofstream(out, std::ios::binary)
        .write(reinterpret_cast<const char*>(rows.data()),
               static_cast<std::streamsize>(rows.size() * sizeof(float)));
  return 0;
}

}  // namespace
}  // namespace prism

int main(int count, char** words) {
  return prism::run_bench([&] {
    if (count < 2)
      throw prism::Error(prism::ErrorCode::kInvalidArgument, "usage: embed_bench TEXTS [options]");
    return prism::run(words[1], prism::BenchOptions(count, words, 2));
  });
}
