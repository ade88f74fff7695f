// A model with a trainable LoRA adapter. Its own weights stay as they are in the file, quantised.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "llm/model/config.h"
#include "llm/model/weights.h"
#include "prism/llm/gguf.h"
#include "prism/nn/layers.h"
#include "prism/nn/module.h"

namespace prism::llm {

struct LoraOptions {
  int64_t rank = 16;
  double alpha = 32;       // the change is multiplied by alpha / rank
  double dropout = 0;      // of the adapters' inputs
  bool recompute = false;  // layers are computed again for the gradient, to save memory
  // Beginnings of the names of matrices: "attn" are all of attention, "ffn_down" is one in each
  // layer, "output" the output. Routers and the matrices of experts must be named in full. Empty:
  // those of the feed-forward layers, or of attention if experts take their place.
  std::vector<std::string> matrices = {"attn", "ffn"};
};

class LoraModel : public nn::Module {
 public:
  // The factors `a` are random, from prism::seed(), the factors `b` zero: the model begins as it
  // is. context: the longest sequence. Throws kNotSupported for an architecture without gradients,
  // kInvalidArgument if no matrix has such a name, and as Model::load.
  LoraModel(const GgufFile& file, const LoraOptions& options, const Device& device,
            int64_t context);

  // tokens: i32 [sequences, length]. wanted: i32, rows of all sequences one after the other; empty:
  // all. Result: f32 [wanted rows, vocabulary].
  Tensor logits(const Tensor& tokens, const Tensor& wanted = {});
  void visit(nn::Members& visitor) override;  // "blk.0.attn_q.weight.lora_a"
  // Writes the adapter as a file for LoraAdapter and for llama.cpp.
  void write(const std::string& path) const;

  const Config& config() const { return config_; }
  uint64_t base_bytes() const { return weights_.bytes; }
  size_t matrices() const { return pairs_.size(); }

 private:
  struct Pair {
    Linear* linear;
    Tensor a, b;
  };
  std::vector<Linear*> chosen();
  void check_gradients();

  LoraOptions options_;
  Device device_;
  DType compute_;  // of the products with the adapter; its parameters are f32
  std::unique_ptr<Architecture> architecture_;
  Config config_;
  Weights weights_;
  std::vector<RopeTables> ropes_;
  std::vector<Pair> pairs_;
  nn::Dropout dropout_;
};

}  // namespace prism::llm
