// Writes Hugging Face folders with the names of transformers.
#include "support/models/hf_files.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "prism/device.h"
#include "prism/io.h"
#include "prism/ops/elementwise.h"
#include "prism/tensor.h"
#include "support/paths.h"

namespace prism::test {

namespace {

using json = nlohmann::json;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

std::vector<HfModel> hf_models() {
  std::vector<HfModel> models;
  const json all =
      json::parse(content_of(source_dir() / "tests" / "data" / "hf" / "expected.json"));
  for (const auto& [name, each] : all.items()) {
    HfModel model;
    model.name = name;
    model.config = each["config"].dump();
    for (const auto& [tensor, lengths] : each["tensors"].items())
      model.tensors[tensor] = Shape(std::span<const int64_t>(lengths.get<std::vector<int64_t>>()));
    model.tokens = each["tokens"].get<std::vector<int32_t>>();
    model.expected = each["expected"].get<std::vector<float>>();
    models.push_back(std::move(model));
  }
  return models;
}

HfModel hf_model(const std::string& name) {
  for (HfModel& each : hf_models())
    if (each.name == name) return each;
  throw std::runtime_error("expected.json has no model " + name);
}

std::vector<float> hf_values(const std::string& name, const Shape& shape) {
  uint64_t seed = 0xcbf29ce484222325;
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  const bool is_vector = shape.rank() <= 1;
  const bool is_norm = name.ends_with("weight") &&
                       (name.find("norm") != name.npos || name.find("Norm") != name.npos);
  const double scale = is_vector ? 0.25
                       : name.find("embed") == name.npos
                           ? 3 / std::sqrt(static_cast<double>(shape[-1]))
                           : 1;
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t x = seed + (i + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    x ^= x >> 31;
    const double u = static_cast<double>(x >> 40) / (1 << 23) - 1;
    values[i] = static_cast<float>(u * scale + (is_vector && is_norm ? 1 : 0));
  }
  return values;
}

std::string byte_level_tokenizer(int64_t vocabulary) {
  json tokens = json::object();
  tokens["<s>"] = 1;
  tokens["</s>"] = 2;
  tokens["%&"] = 3;
  for (int64_t id = 0; id < vocabulary; ++id)
    if (id == 0 || id > 3) tokens[std::string(1, static_cast<char>('!' + (id == 0 ? 0 : id)))] = id;
  return json{
      {"model",
       {{"type", "BPE"}, {"vocab", tokens}, {"merges", json::array({json::array({"%", "&"})})}}},
      {"added_tokens",
       {{{"id", 1}, {"content", "<s>"}, {"special", true}},
        {{"id", 2}, {"content", "</s>"}, {"special", true}}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"post_processor", nullptr}}
      .dump();
}

std::string word_piece_tokenizer(int64_t vocabulary) {
  json tokens = json::object();
  const char* const special[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  json added = json::array();
  for (int id = 0; id < 5; ++id) {
    tokens[special[id]] = id;
    added.push_back({{"id", id}, {"content", special[id]}, {"special", true}});
  }
  for (int64_t id = 5; id < vocabulary; ++id)
    tokens[fmt::format("{}{}", id % 2 ? "##" : "", static_cast<char>('!' + id))] = id;
  return json{{"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"vocab", tokens}}},
              {"added_tokens", added},
              {"normalizer", {{"type", "BertNormalizer"}, {"lowercase", true}}},
              {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
              {"post_processor",
               {{"type", "BertProcessing"},
                {"cls", json::array({"[CLS]", 2})},
                {"sep", json::array({"[SEP]", 3})}}}}
      .dump();
}

HfTestFolder::HfTestFolder(const HfModel& model, DType type)
    : path_(std::filesystem::temp_directory_path() /
            fmt::format("prism-hf-{:08x}", std::random_device{}())) {
  std::filesystem::create_directories(path_);
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, shape] : model.tensors) {
    const Tensor values = from_vector(hf_values(name, shape), shape, Device::cpu());
    tensors.emplace(name, type == DType::f32 ? values : cast(values, type));
  }
  save_safetensors(path("model.safetensors"), tensors);
  write("config.json", model.config);
  const json config = json::parse(model.config);
  const int64_t vocabulary =
      (config.contains("text_config") ? config["text_config"] : config)["vocab_size"];
  write("tokenizer.json", model.name.starts_with("bert") ? word_piece_tokenizer(vocabulary)
                                                         : byte_level_tokenizer(vocabulary));
}

HfTestFolder::~HfTestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void HfTestFolder::write(const std::string& file, const std::string& content) const {
  std::filesystem::create_directories((path_ / file).parent_path());
  std::ofstream(path_ / file, std::ios::binary) << content;
}

std::string HfTestFolder::read(const std::string& file) const { return content_of(path_ / file); }

}  // namespace prism::test
