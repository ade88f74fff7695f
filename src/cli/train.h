// `prism train`: its settings, and one function for each kind of training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command_line.h"

namespace prism::cli {

// A new model's sizes; 0 takes the value of the shape.
struct ModelSettings {
  std::string shape = "tiny", tokenizer = "bpe";  // or "chars"
  bool has_shape = false, has_tokenizer = false;  // given by the user
  int64_t vocabulary = 0, layers = 0, width = 0, heads = 0, kv_heads = 0;
  bool untied = false;  // the output has weights of its own
};

// An adapter for a model that exists (train_lora.cpp adds these options).
struct LoraSettings {
  std::string model;  // empty: no adapter
  int64_t rank = 16;
  bool has_rank = false;              // given by the user
  float alpha = 0;                    // 0: twice the rank
  std::vector<std::string> matrices;  // empty: see llm::LoraOptions
};

struct TrainSettings {
  std::string data, output, device = "auto";
  std::string full;  // a GGUF file whose weights are trained on; empty: a new model
  ModelSettings model;
  LoraSettings lora;

  // 0 and negative numbers stand for the default of the kind of training.
  int64_t steps = 0, batch = 0, context = 0, accumulate = 1, warmup = -1;
  float rate = 0, weight_decay = -1, dropout = -1, clip = 1, validation = 0.05F;
  uint64_t seed = 1;
  int64_t validate_every = 0, patience = 0;  // patience 0: no early stop
  bool detect_anomaly = false;
  bool recompute = false;
  std::string precision = "f32";  // or bf16, f16

  std::string checkpoint, log, svg;  // checkpoint empty: beside the output
  int64_t save_every = 0;
  bool resume = false, overwrite = false, quiet = false;
  int64_t samples = -1, sample_tokens = 200;  // samples -1: one, if there is a prompt for it
  std::string prompt;  // of the samples; empty: the first word of the text, nothing for an adapter
  bool has_sample_tokens = false;  // given by the user
};

// Each returns the exit status. settings.data and settings.output are not empty.
int train_gpt(const TrainSettings& settings);
int train_lora(const TrainSettings& settings);

// The options of --lora, under a heading of their own.
void add_lora_options(const Command& command, LoraSettings& settings);

}  // namespace prism::cli
