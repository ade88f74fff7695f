// Compares all-MiniLM-L6-v2, converted from its published weights, with embeddings computed in
// float64 (../shared/expected/minilm.jsonl), on every device.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "llm/gguf/quantise_file.h"
#include "prism/error.h"
#include "prism/llm/embedder.h"
#include "prism/llm/gguf.h"
#include "prism/llm/tokenizer.h"
#include "support/devices/devices.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::llm {
namespace {

struct Expected {
  std::vector<std::string> texts;
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<double>> embeddings;
};

Expected expected() {
  Expected all;
  std::ifstream in(test::shared_dir() / "expected" / "minilm.jsonl");
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json each = nlohmann::json::parse(line);
    all.texts.push_back(each["text"]);
    all.ids.push_back(each["ids"]);
    all.embeddings.push_back(each["embedding"]);
  }
  return all;
}

double cosine(std::span<const float> a, std::span<const double> b) {
  double dot = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    dot += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    bb += b[i] * b[i];
  }
  return dot / std::sqrt(aa * bb);
}

// The model in the cache folder; empty: fetching it was not possible.
std::string embedder_path() {
  try {
    return resolve_model("minilm-f32");
  } catch (const Error& error) {
    std::cout << error.what() << "\n";
    return "";
  }
}

class MiniLm : public testing::Test {
 protected:
  void SetUp() override {
    path_ = embedder_path();
    expected_ = expected();
    if (path_.empty() || expected_.texts.empty())
      GTEST_SKIP() << "needs all-MiniLM-L6-v2 from PyPI and ../shared/expected/minilm.jsonl";
  }
  // The smallest cosine over all texts.
  double worst(Embedder& embedder) {
    const std::vector<float> rows = embedder.embed(expected_.texts);
    const auto width = static_cast<size_t>(embedder.dimension());
    EXPECT_EQ(rows.size(), width * expected_.texts.size());
    double least = 1;
    for (size_t i = 0; i < expected_.texts.size(); ++i)
      least = std::min(least,
                       cosine(std::span(rows).subspan(i * width, width), expected_.embeddings[i]));
    return least;
  }
  std::string path_;
  Expected expected_;
};

TEST_F(MiniLm, TokensAreThoseOfItsTokenizer) {
  const Tokenizer tokenizer = Tokenizer::from(GgufFile::open(path_));
  for (size_t i = 0; i < expected_.texts.size(); ++i)
    EXPECT_EQ(tokenizer.encode(expected_.texts[i]), expected_.ids[i]) << expected_.texts[i];
}

TEST_F(MiniLm, EmbeddingsAreRightOnEveryDevice) {
  const GgufFile file = GgufFile::open(path_);
  const test::TemporaryFolder folder;
  std::map<std::string, std::string> paths = {{"F32", path_}};
  for (const char* type : {"F16", "Q8_0"}) {
    paths[type] = folder / (std::string(type) + ".gguf");
    quantise_file(file, paths[type], quantise_mix(type));
  }
  std::set<std::string> checksums;
  for (const Device& device : test::every_device()) {
    for (const auto& [type, path] : paths) {
      Embedder embedder = Embedder::open({.model = path, .device = device.id()});
      EXPECT_EQ(embedder.dimension(), 384);
      EXPECT_EQ(embedder.max_tokens(), 256);
      EXPECT_GE(worst(embedder), type == "Q8_0" ? 0.999 : 0.9999) << device.id() << " " << type;
      checksums.insert(embedder.checksum());
    }
  }
  EXPECT_EQ(checksums.size(), paths.size());
}

// In any order and company a text has the same embedding, and only its first 256 tokens count.
TEST_F(MiniLm, BatchesAndLongTexts) {
  Embedder embedder = Embedder::open({.model = path_, .device = "cpu"});
  const auto width = static_cast<size_t>(embedder.dimension());
  std::string words;
  for (int i = 0; i < 254; ++i) words += "cat ";
  std::vector<std::string> texts;
  for (int i = 0; i < 90; ++i)
    texts.push_back(words.substr(0, 4 * static_cast<size_t>(i % 45 + 1)));
  texts.push_back(words);
  texts.push_back(words + "dog dog dog");
  size_t last = 0;
  const std::vector<float> all = embedder.embed(texts, [&](size_t done, size_t of) {
    EXPECT_GT(done, last);
    EXPECT_EQ(of, texts.size());
    last = done;
    return true;
  });
  EXPECT_EQ(last, texts.size());
  EXPECT_EQ(embedder.tokens(texts.back()), 259);
  const auto row = [&](size_t i) { return std::span(all).subspan(i * width, width); };
  for (const size_t i : {0, 44, 89, 90, 91}) {
    const std::vector<float> alone = embedder.embed(std::span(&texts[i], 1));
    EXPECT_GE(cosine(row(i), std::vector<double>(alone.begin(), alone.end())), 1 - 1e-6) << i;
  }
  EXPECT_TRUE(std::ranges::equal(row(3), row(48)));
  EXPECT_GE(cosine(row(91), std::vector<double>(row(90).begin(), row(90).end())), 1 - 1e-9);
  EXPECT_THROW(embedder.embed(texts, [](size_t, size_t) { return false; }), Error);
}

}  // namespace
}  // namespace prism::llm
