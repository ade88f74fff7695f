// A deterministic PassageEmbedder for tests: the sum of a random vector for each word, where some
// words have the vector of a synonym.
#pragma once

#include <cmath>
#include <map>
#include <random>

#include "prism/file_search.h"
#include "search/files/splitter.h"
#include "search/files/words.h"

namespace prism::test {

inline std::vector<float> word_vector(std::string_view text) {
  constexpr size_t kWidth = 96;
  static const std::map<std::string, std::string> synonyms = {
      {"automobil", "car"}, {"physician", "doctor"}, {"purchas", "buy"}};
  std::vector<float> sum(kWidth);
  search::each_word(text, [&](const std::string& given, size_t, size_t) {
    const auto found = synonyms.find(given);
    const std::string& word = found == synonyms.end() ? given : found->second;
    std::seed_seq seed(word.begin(), word.end());
    std::mt19937 random(seed);
    for (float& each : sum) each += static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  });
  double square = 1e-9;
  for (const float each : sum) square += static_cast<double>(each) * each;
  for (float& each : sum) each = static_cast<float>(each / std::sqrt(square));
  return sum;
}

// Adds the number of texts to `count`.
inline search::PassageEmbedder word_embedder(uint64_t* count = nullptr) {
  search::PassageEmbedder made;
  made.name = "words";
  made.width = word_vector("").size();
  made.count_tokens = search::estimated_tokens;
  made.embed = [count](std::span<const std::string> texts) {
    std::vector<std::vector<float>> vectors;
    for (const std::string& text : texts) vectors.push_back(word_vector(text));
    if (count) *count += texts.size();
    return vectors;
  };
  return made;
}

}  // namespace prism::test
