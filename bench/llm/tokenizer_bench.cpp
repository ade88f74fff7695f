// Load, encode and decode speed of tokenizers on one core.
//
// usage: tokenizer_bench TEXT VOCABULARY.gguf...
#include <algorithm>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>

#include <fmt/format.h>

#include "prism/error.h"
#include "prism/llm/gguf.h"
#include "prism/llm/tokenizer.h"

namespace prism::bench {
namespace {

// Processor time of the shortest of several runs, in seconds: the others were disturbed.
template <class Work>
double best_seconds(int runs, const Work& work) {
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    const std::clock_t begin = std::clock();
    work();
    best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return best;
}

void time_one(const std::string& path, const std::string& text) {
  const llm::GgufFile file = llm::GgufFile::open(path);
  const double load = best_seconds(5, [&] { llm::Tokenizer::from(file); });
  const llm::Tokenizer tokenizer = llm::Tokenizer::from(file);
  std::vector<int32_t> ids;
  const double encode = best_seconds(9, [&] { ids = tokenizer.encode(text); });
  // A prompt is short: the word cache is still empty.
  const std::string prompt = text.substr(0, 4096);
  const double first = best_seconds(5, [&] { llm::Tokenizer(tokenizer).encode(prompt); });
  std::string back;
  const double decode = best_seconds(5, [&] { back = tokenizer.decode(ids); });
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  fmt::print("{:<40} {:>7} {:>8.1f} {:>10.1f} {:>10.3f} {:>10.1f} {:>9}{}\n",
             path.substr(path.rfind('/') + 1), tokenizer.size(), load * 1e3, megabytes / encode,
             first * 1e3, megabytes / decode, ids.size(),
             back == text ? "" : "  (text not restored)");
}

}  // namespace
}  // namespace prism::bench

int main(int count, char** words) {
  if (count < 3) {
    std::cerr << "usage: tokenizer_bench TEXT VOCABULARY.gguf...\n";
    return 2;
  }
  try {
    std::ifstream in(words[1], std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    fmt::print("{:<40} {:>7} {:>8} {:>10} {:>10} {:>10} {:>9}\n", "", "tokens", "load ms",
               "encode MB/s", "4 KB ms", "decode MB/s", "ids");
    for (int i = 2; i < count; ++i) prism::bench::time_one(words[i], text);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
