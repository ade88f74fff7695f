// Tiny Hugging Face folders, made by code, and what transformers computes for their weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "prism/dtype.h"
#include "prism/shape.h"

namespace prism::test {

// A model of tests/data/hf/expected.json, which make_expected.py wrote.
struct HfModel {
  std::string name;
  std::string config;  // config.json
  std::map<std::string, Shape> tensors;
  std::vector<int32_t> tokens;
  std::vector<float> expected;  // logits of the last token; without logits: the mean hidden state
};
std::vector<HfModel> hf_models();
HfModel hf_model(const std::string& name);

// The same values as make_expected.py's value().
std::vector<float> hf_values(const std::string& name, const Shape& shape);

// A folder for tests, removed at the end.
class HfTestFolder {
 public:
  explicit HfTestFolder(const HfModel& model, DType type = DType::f32);
  ~HfTestFolder();
  HfTestFolder(const HfTestFolder&) = delete;
  HfTestFolder& operator=(const HfTestFolder&) = delete;

  std::string path(const std::string& file = "") const { return (path_ / file).string(); }
  void write(const std::string& file, const std::string& content) const;
  std::string read(const std::string& file) const;

 private:
  std::filesystem::path path_;
};

// tokenizer.json files with this many tokens.
std::string byte_level_tokenizer(int64_t vocabulary);
std::string word_piece_tokenizer(int64_t vocabulary);

}  // namespace prism::test
