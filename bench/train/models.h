// The models whose training steps bench_train times.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "prism/prism.h"

struct Training {
  std::string name;
  int64_t tokens = 0;  // in a step; 0: not a language model
  std::unique_ptr<prism::nn::Module> model;
  std::unique_ptr<prism::nn::Optimizer> optimizer;
  std::unique_ptr<prism::nn::TrainStep> step;
  std::vector<prism::Tensor> batch;
};

// On the default device, with random weights and a random batch. file: the base model of `lora`.
// Throws kInvalidArgument for an unknown name.
//   mlp       784-512-512-10, batch 128, Adam, f32
//   gpt       4 layers of 128, 12 x 64 characters, AdamW, f32: the default of examples/char_gpt.cpp
//   char_gpt  6 layers of 384, 64 x 256 characters, dropout 0.2, AdamW, bf16 products
//   gpt2      GPT-2 124M, 32 x 1,024 tokens, AdamW, bf16 products
//   lora      adapters of rank 16 for all matrices of `file`, 1 x 2,048 tokens, AdamW
Training make_training(const std::string& name, const std::string& file);
