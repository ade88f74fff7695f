// Speed of recurrent layers beside attention: a prompt and single tokens through models of random
// weights with about as many parameters, one after the other in every round.
//
// usage: recurrent_bench [--device NAME] [--prompt N] [--tokens N] [--rounds N] [--width N]
// The best round of each counts.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "llm/gguf/gguf_writer.h"
#include "llm/model/model.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

struct Options {
  std::string device = "cpu";
  int64_t prompt = 2048, tokens = 16, width = 512;
  int rounds = 3;
};

// A model file with random weights, removed with the object.
class RandomModel {
 public:
  RandomModel(std::string architecture, int64_t width, int64_t layers)
      : architecture_(std::move(architecture)), width_(width) {
    file_.set("general.architecture", architecture_);
    set("block_count", layers);
    set("embedding_length", width);
    set("context_length", 1 << 20);
    set("attention.head_count", width / 64);
    set("attention.head_count_kv", width / 64);
    set("feed_forward_length", 11 * width / 4);
    file_.set(architecture_ + ".attention.layer_norm_rms_epsilon", 1e-5f);
    file_.set("tokenizer.ggml.model", "no_vocab");
    add("token_embd.weight", {kVocabulary, width});
    add("output.weight", {kVocabulary, width});
    add("output_norm.weight", {width}, 0.5, 1);
  }
  ~RandomModel() { std::filesystem::remove(path_); }
  RandomModel(const RandomModel&) = delete;

  static constexpr int64_t kVocabulary = 256;
  void set(const std::string& key, int64_t value) {
    file_.set(architecture_ + "." + key, static_cast<uint32_t>(value));
  }
  // Uniform in `around` +- size; a size of 0: so that products keep the size of their input.
  void add(const std::string& name, const Shape& shape, double size = 0, double around = 0) {
    if (size == 0) size = std::sqrt(3.0 / static_cast<double>(shape[-1]));
    std::uniform_real_distribution<float> draw(static_cast<float>(around - size),
                                               static_cast<float>(around + size));
    auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(shape.elements()));
    for (float& each : *values) each = draw(random_);
    parameters_ += shape.elements();
    file_.add_tensor(name, shape, DType::f32, [values](const GgufWriter::Sink& sink) {
      sink(std::as_bytes(std::span(*values)));
    });
  }
  void feed_forward(const std::string& prefix, const char* norm) {
    add(prefix + norm, {width_}, 0.5, 1);
    add(prefix + "ffn_gate.weight", {11 * width_ / 4, width_});
    add(prefix + "ffn_up.weight", {11 * width_ / 4, width_});
    add(prefix + "ffn_down.weight", {width_, 11 * width_ / 4});
  }
  const std::string& name() const { return architecture_; }
  int64_t parameters() const { return parameters_; }
  GgufFile open() {
    path_ = (std::filesystem::temp_directory_path() /
             fmt::format("prism_recurrent_bench_{}_{}.gguf", architecture_, std::random_device()()))
                .string();
    file_.write(path_);
    return GgufFile::open(path_);
  }

 private:
  std::string architecture_, path_;
  int64_t width_, parameters_ = 0;
  GgufWriter file_;
  std::mt19937 random_{7};
};

std::string layer(int64_t i) { return fmt::format("blk.{}.", i); }

std::unique_ptr<RandomModel> attention_model(int64_t width) {
  auto model = std::make_unique<RandomModel>("llama", width, 4);
  for (int64_t i = 0; i < 4; ++i) {
    model->add(layer(i) + "attn_norm.weight", {width}, 0.5, 1);
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"})
      model->add(layer(i) + name + ".weight", {width, width});
    model->feed_forward(layer(i), "ffn_norm.weight");
  }
  return model;
}

void set_ssm(RandomModel& model, int64_t inner, int64_t keys, int64_t rank, int64_t groups) {
  model.set("ssm.conv_kernel", 4);
  model.set("ssm.inner_size", inner);
  model.set("ssm.state_size", keys);
  model.set("ssm.time_step_rank", rank);
  model.set("ssm.group_count", groups);
}

std::unique_ptr<RandomModel> mamba_model(int64_t width) {
  const int64_t inner = 2 * width, keys = 16, rank = width / 16, layers = 7;
  auto model = std::make_unique<RandomModel>("mamba", width, layers);
  set_ssm(*model, inner, keys, rank, 0);
  for (int64_t i = 0; i < layers; ++i) {
    model->add(layer(i) + "attn_norm.weight", {width}, 0.5, 1);
    model->add(layer(i) + "ssm_in.weight", {2 * inner, width});
    model->add(layer(i) + "ssm_conv1d.weight", {inner, 4});
    model->add(layer(i) + "ssm_conv1d.bias", {inner}, 0.1);
    model->add(layer(i) + "ssm_x.weight", {rank + 2 * keys, inner});
    model->add(layer(i) + "ssm_dt.weight", {inner, rank});
    model->add(layer(i) + "ssm_dt.bias", {inner}, 1, -3);
    model->add(layer(i) + "ssm_a", {inner, keys}, 1, -2);
    model->add(layer(i) + "ssm_d", {inner}, 0.5, 1);
    model->add(layer(i) + "ssm_out.weight", {width, inner});
  }
  return model;
}

std::unique_ptr<RandomModel> mamba2_model(int64_t width) {
  const int64_t inner = 2 * width, keys = 128, heads = inner / 64, layers = 7;
  auto model = std::make_unique<RandomModel>("mamba2", width, layers);
  set_ssm(*model, inner, keys, heads, 1);
  for (int64_t i = 0; i < layers; ++i) {
    model->add(layer(i) + "attn_norm.weight", {width}, 0.5, 1);
    model->add(layer(i) + "ssm_in.weight", {2 * inner + 2 * keys + heads, width});
    model->add(layer(i) + "ssm_conv1d.weight", {inner + 2 * keys, 4});
    model->add(layer(i) + "ssm_conv1d.bias", {inner + 2 * keys}, 0.1);
    model->add(layer(i) + "ssm_dt.bias", {heads}, 1, -3);
    model->add(layer(i) + "ssm_a", {heads}, 1, -2);
    model->add(layer(i) + "ssm_d", {heads}, 0.5, 1);
    model->add(layer(i) + "ssm_norm.weight", {1, inner}, 0.5, 1);
    model->add(layer(i) + "ssm_out.weight", {width, inner});
  }
  return model;
}

std::unique_ptr<RandomModel> delta_model(int64_t width) {
  const int64_t inner = 2 * width, keys = 128, heads = inner / 128, groups = heads / 2, layers = 3;
  const int64_t mixed = inner + 2 * groups * keys;
  auto model = std::make_unique<RandomModel>("qwen35", width, layers);
  set_ssm(*model, inner, keys, heads, groups);
  model->set("attention.recurrent_layers", 1);
  for (int64_t i = 0; i < layers; ++i) {
    model->add(layer(i) + "attn_norm.weight", {width}, 0.5, 1);
    model->add(layer(i) + "attn_qkv.weight", {mixed, width});
    model->add(layer(i) + "attn_gate.weight", {inner, width});
    model->add(layer(i) + "ssm_beta.weight", {heads, width});
    model->add(layer(i) + "ssm_alpha.weight", {heads, width});
    model->add(layer(i) + "ssm_conv1d.weight", {mixed, 4});
    model->add(layer(i) + "ssm_dt.bias", {heads}, 1, -3);
    model->add(layer(i) + "ssm_a", {heads}, 1, -2);
    model->add(layer(i) + "ssm_norm.weight", {128}, 0.5, 1);
    model->add(layer(i) + "ssm_out.weight", {width, inner});
    model->feed_forward(layer(i), "post_attention_norm.weight");
  }
  return model;
}

struct Timed {
  std::unique_ptr<RandomModel> file;
  Model model;
  double prompt_seconds = 1e30, token_seconds = 1e30;
};

double seconds_of(const std::function<void()>& work) {
  const auto begun = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

void run(const Options& options) {
  const Device device = Device::named(options.device);
  std::vector<Timed> models;
  for (const auto make : {attention_model, mamba_model, mamba2_model, delta_model}) {
    auto file = make(options.width);
    const GgufFile opened = file->open();
    const int64_t context = options.prompt + options.tokens * (options.rounds + 1) + 1;
    Model model = Model::load(opened, {.placement = place_on(opened, device, context, DType::f32)});
    models.push_back({std::move(file), std::move(model)});
  }
  std::vector<int32_t> prompt;
  for (int64_t i = 0; i < options.prompt; ++i)
    prompt.push_back(static_cast<int32_t>(i * i % RandomModel::kVocabulary));
  for (int round = 0; round <= options.rounds; ++round)  // the first only warms up
    for (Timed& each : models) {
      const double prompt_time =
          seconds_of([&] { each.model.prefill(0, 0, prompt).to_vector<float>(); });
      const double token_time = seconds_of([&] {
        for (int64_t i = 0; i < options.tokens; ++i)
          each.model
              .prefill(0, static_cast<int32_t>(options.prompt + i), std::span(prompt).first(1))
              .to_vector<float>();
      });
      if (round == 0) continue;
      each.prompt_seconds = std::min(each.prompt_seconds, prompt_time);
      each.token_seconds = std::min(each.token_seconds, token_time);
    }
  fmt::print("{:<10} {:>12} {:>16} {:>12} {:>16} {:>12}\n", "model", "parameters",
             "prompt tokens/s", "of attention", "single tokens/s", "of attention");
  const auto rate = [](double tokens, double seconds) { return tokens / seconds; };
  for (const Timed& each : models) {
    const auto share = [](double mine, double other) { return other / mine; };
    fmt::print("{:<10} {:>12} {:>16.0f} {:>12.2f} {:>16.0f} {:>12.2f}\n", each.file->name(),
               each.file->parameters(),
               rate(static_cast<double>(options.prompt), each.prompt_seconds),
               share(each.prompt_seconds, models[0].prompt_seconds),
               rate(static_cast<double>(options.tokens), each.token_seconds),
               share(each.token_seconds, models[0].token_seconds));
  }
}

}  // namespace
}  // namespace prism::llm

int main(int argc, char** argv) {
  prism::llm::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--device") options.device = value;
    if (name == "--prompt") options.prompt = std::atoll(value.c_str());
    if (name == "--tokens") options.tokens = std::atoll(value.c_str());
    if (name == "--width") options.width = std::atoll(value.c_str());
    if (name == "--rounds") options.rounds = std::atoi(value.c_str());
  }
  try {
    prism::llm::run(options);
  } catch (const prism::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
