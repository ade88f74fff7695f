// Speed of recurrent layers beside attention: a prompt and a decode loop through models of random
// weights with about as many parameters, one after the other in every round.
//
// usage: recurrent_bench [--device NAME] [--kinds a,b] [--prompt N] [--tokens N] [--rounds N]
//                        [--width N] [--batch N] [--type f32|f16] [--steps prompt|token]
// kinds: llama, mamba, mamba2, qwen35, rwkv7; llama is always measured. The best round of each
// counts. --steps prints the time of each step of the plans instead of the table.
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
#include "llm/model/decode.h"
#include "llm/model/model.h"
#include "prism/dtype.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

struct Options {
  std::string device = "cpu", kinds, steps;
  int64_t prompt = 2048, tokens = 16, width = 512, batch = 512;
  int rounds = 3;
  DType type = DType::f32;  // of matrices; vectors and the scans' own weights are f32
};

// A model file with random weights, removed with the object.
class RandomModel {
 public:
  RandomModel(std::string architecture, const Options& options, int64_t layers)
      : architecture_(std::move(architecture)), width_(options.width), type_(options.type) {
    const int64_t width = width_;
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
    const auto count = static_cast<size_t>(shape.elements());
    parameters_ += shape.elements();
    // Matrices of products: the others are narrower.
    if (type_ == DType::f16 && shape.rank() == 2 && std::min(shape[0], shape[1]) > 16) {
      auto values = std::make_shared<std::vector<uint16_t>>(count);
      for (uint16_t& each : *values) each = f16_from_f32(draw(random_));
      put(name, shape, DType::f16, values);
    } else {
      auto values = std::make_shared<std::vector<float>>(count);
      for (float& each : *values) each = draw(random_);
      put(name, shape, DType::f32, values);
    }
  }
  void feed_forward(const std::string& prefix, const char* norm) {
    add(prefix + norm, {width_}, 0.5, 1);
    add(prefix + "ffn_gate.weight", {11 * width_ / 4, width_});
    add(prefix + "ffn_up.weight", {11 * width_ / 4, width_});
    add(prefix + "ffn_down.weight", {width_, 11 * width_ / 4});
  }
  int64_t width() const { return width_; }
  const std::string& name() const { return architecture_; }
  int64_t parameters() const { return parameters_; }
  int64_t bytes() const { return bytes_; }
  GgufFile open() {
    path_ = (std::filesystem::temp_directory_path() /
             fmt::format("prism_recurrent_bench_{}_{}.gguf", architecture_, std::random_device()()))
                .string();
    file_.write(path_);
    return GgufFile::open(path_);
  }

 private:
  void put(const std::string& name, const Shape& shape, DType type, auto values) {
    bytes_ += static_cast<int64_t>(std::span(*values).size_bytes());
    file_.add_tensor(name, shape, type, [values](const GgufWriter::Sink& sink) {
      sink(std::as_bytes(std::span(*values)));
    });
  }

  std::string architecture_, path_;
  int64_t width_, parameters_ = 0, bytes_ = 0;
  DType type_;
  GgufWriter file_;
  std::mt19937 random_{7};
};

std::string layer(int64_t i) { return fmt::format("blk.{}.", i); }

std::unique_ptr<RandomModel> attention_model(const Options& options) {
  const int64_t width = options.width;
  auto model = std::make_unique<RandomModel>("llama", options, 4);
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

std::unique_ptr<RandomModel> mamba_model(const Options& options) {
  const int64_t width = options.width;
  const int64_t inner = 2 * width, keys = 16, rank = width / 16, layers = 7;
  auto model = std::make_unique<RandomModel>("mamba", options, layers);
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

std::unique_ptr<RandomModel> mamba2_model(const Options& options) {
  const int64_t width = options.width;
  const int64_t inner = 2 * width, keys = 128, heads = inner / 64, layers = 7;
  auto model = std::make_unique<RandomModel>("mamba2", options, layers);
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

std::unique_ptr<RandomModel> delta_model(const Options& options) {
  const int64_t width = options.width;
  const int64_t inner = 2 * width, keys = 128, heads = inner / 128, groups = heads / 2, layers = 3;
  const int64_t mixed = inner + 2 * groups * keys;
  auto model = std::make_unique<RandomModel>("qwen35", options, layers);
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

std::unique_ptr<RandomModel> rwkv_model(const Options& options) {
  const int64_t width = options.width, wide = 11 * width / 4, layers = 5;
  auto model = std::make_unique<RandomModel>("rwkv7", options, layers);
  model->set("wkv.head_size", 64);
  model->add("output_norm.bias", {width}, 0.1);
  model->add("token_embd_norm.weight", {width}, 0.5, 1);
  model->add("token_embd_norm.bias", {width}, 0.1);
  for (int64_t i = 0; i < layers; ++i) {
    for (const char* norm : {"attn_norm", "attn_norm_2", "time_mix_ln"}) {
      model->add(layer(i) + norm + ".weight", {width}, 0.5, 1);
      model->add(layer(i) + norm + ".bias", {width}, 0.1);
    }
    for (const auto& [name, rank] :
         {std::pair("w", width / 32), {"a", width / 32}, {"v", width / 32}, {"g", width / 8}}) {
      model->add(layer(i) + "time_mix_" + name + "1.weight", {rank, width});
      model->add(layer(i) + "time_mix_" + name + "2.weight", {width, rank});
    }
    model->add(layer(i) + "time_mix_lerp_fused.weight", {6, width}, 0.5, 0.5);
    for (const char* name : {"w0", "a0", "v0", "k_k", "k_a", "r_k"})
      model->add(layer(i) + "time_mix_" + name + ".weight", {width}, 0.5, 0.5);
    for (const char* name : {"key", "value", "receptance", "output"})
      model->add(layer(i) + "time_mix_" + name + ".weight", {width, width});
    model->add(layer(i) + "channel_mix_lerp_k.weight", {width}, 0.5, 0.5);
    model->add(layer(i) + "channel_mix_key.weight", {wide, width});
    model->add(layer(i) + "channel_mix_value.weight", {width, wide});
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

std::vector<Timed> load(const Options& options) {
  using Make = std::unique_ptr<RandomModel> (*)(const Options&);
  const std::pair<const char*, Make> kinds[] = {{"llama", attention_model},
                                                {"mamba", mamba_model},
                                                {"mamba2", mamba2_model},
                                                {"qwen35", delta_model},
                                                {"rwkv7", rwkv_model}};
  const Device device = Device::named(options.device);
  std::vector<Timed> models;
  for (const auto& [name, make] : kinds) {
    const bool wanted =
        options.kinds.empty() ||
        ("," + options.kinds + ",").find(fmt::format(",{},", name)) != std::string::npos;
    if (!wanted && !models.empty()) continue;
    auto file = make(options);
    const GgufFile opened = file->open();
    const int64_t context = options.prompt + options.tokens + 2;
    Model model = Model::load(opened, {.placement = place_on(opened, device, context, options.type),
                                       .batch_rows = options.batch});
    models.push_back({std::move(file), std::move(model)});
  }
  return models;
}

void print_steps(const Options& options) {
  for (Timed& each : load(options)) {
    const bool prompt = options.steps == "prompt";
    const BatchShape shape{.rows = prompt ? std::min(options.batch, options.prompt) : 1,
                           .each_one_row = !prompt};
    each.model.explain(shape, true);  // warms up
    fmt::print("{}\n{}\n", each.file->name(), each.model.explain(shape, true));
  }
}

void run(const Options& options) {
  std::vector<Timed> models = load(options);
  std::vector<int32_t> prompt;
  for (int64_t i = 0; i < options.prompt; ++i)
    prompt.push_back(static_cast<int32_t>(i * i % RandomModel::kVocabulary));
  for (int round = 0; round <= options.rounds; ++round)  // the first only warms up
    for (Timed& each : models) {
      const double prompt_time =
          seconds_of([&] { each.model.prefill(0, 0, prompt).to_vector<float>(); });
      DecodeLoop loop(each.model);
      loop.start({{.position = static_cast<int32_t>(options.prompt), .token = 1}});
      loop.read(loop.queue_step());
      const double token_time = seconds_of([&] {
        int64_t last = 0;
        for (int64_t i = 0; i < options.tokens; ++i) last = loop.queue_step();
        loop.read(last);
      });
      if (round == 0) continue;
      each.prompt_seconds = std::min(each.prompt_seconds, prompt_time);
      each.token_seconds = std::min(each.token_seconds, token_time);
    }
  fmt::print("{:<8} {:>12} {:>16} {:>12} {:>16} {:>12} {:>16}\n", "model", "parameters",
             "prompt tokens/s", "of attention", "decode tokens/s", "of attention", "weights GB/s");
  for (const Timed& each : models) {
    const double decoded = static_cast<double>(options.tokens) / each.token_seconds;
    fmt::print("{:<8} {:>12} {:>16.0f} {:>12.2f} {:>16.0f} {:>12.2f} {:>16.0f}\n",
               each.file->name(), each.file->parameters(),
               static_cast<double>(options.prompt) / each.prompt_seconds,
               models[0].prompt_seconds / each.prompt_seconds, decoded,
               models[0].token_seconds / each.token_seconds,
               decoded * static_cast<double>(each.file->bytes()) / 1e9);
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
    if (name == "--batch") options.batch = std::atoll(value.c_str());
    if (name == "--type") options.type = value == "f16" ? prism::DType::f16 : prism::DType::f32;
    if (name == "--kinds") options.kinds = value;
    if (name == "--steps") options.steps = value;
  }
  try {
    if (options.steps.empty())
      prism::llm::run(options);
    else
      prism::llm::print_steps(options);
  } catch (const prism::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
