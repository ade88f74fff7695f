// How much memory a language model takes: estimated from its sizes, or computed from its file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/device.h"
#include "prism/element_type.h"
#include "prism/llm/gguf.h"

#pragma GCC visibility push(default)

namespace prism::llm {

// Rows of a prompt that are worked on at once: what activations are counted for.
inline constexpr int64_t kPromptBatch = 512;
// Tokens of a cache where nobody says more and the model was trained for as many.
inline constexpr int64_t kDefaultContext = 8192;

struct InferenceMemory {
  uint64_t model_bytes = 0;
  uint64_t kv_cache_bytes = 0;
  uint64_t activation_bytes = 0;
  uint64_t total_bytes = 0;  // of the three
  double total_gb() const { return static_cast<double>(total_bytes) / (1 << 30); }
};

// A decoder with a gated feed-forward block and an output apart from the embedding, all of it in
// elements of so many bytes: (4096, 14336, 32, 32000, 32, 8, 4096, 4) is a Mistral 7B in f32.
// Throws kInvalidArgument for sizes that are not positive, or heads that do not divide.
InferenceMemory estimate_inference_memory(int64_t hidden, int64_t intermediate, int64_t layers,
                                          int64_t vocab, int64_t heads, int64_t kv_heads,
                                          int64_t sequence, int64_t bytes);

// The sizes that memory and speed follow from, as a file states them.
struct ModelSizes {
  std::string architecture, name;
  int64_t layers = 0, hidden = 0, feed_forward = 0, heads = 0, vocabulary = 0;
  int64_t context = 0;                       // that the model was trained for
  int64_t experts = 0, experts_used = 0;     // of a mixture; 0 for others
  int64_t key_length = 0, value_length = 0;  // of a head
  std::vector<int64_t> kv_heads;             // of each layer
  uint64_t parameters = 0;
};
// Throws kNotFound or kCorruptFile naming the key that is missing or absurd.
ModelSizes model_sizes(const GgufFile& file);

struct LayerMemory {
  uint64_t weight_bytes = 0;  // without the experts
  uint64_t expert_bytes = 0;  // of a mixture
  uint64_t kv_bytes = 0;
};

// What each part of a model takes on a device, as that device stores it.
struct MemoryNeed {
  std::vector<LayerMemory> layers;
  uint64_t embedding_bytes = 0;
  uint64_t output_bytes = 0;  // norm and product to logits; where it is the embedding, that again
  bool is_output_tied = false;
  uint64_t activation_bytes = 0;  // of one batch of a prompt, whatever layers the device has

  uint64_t weight_bytes() const;  // all layers, embedding and output; a tied output counts once
  uint64_t kv_bytes() const;
  uint64_t total_bytes() const;
};
// On the CPU weights lie as in the file, elsewhere in planes. batch_rows: of a prompt, worked on at
// once. Throws kInvalidArgument for a KV type
// other than f32, f16, bf16 and q8_0, and for heads that a q8_0 cache cannot hold.
MemoryNeed memory_need(const GgufFile& file, const ModelSizes& sizes, ElementType kv_type,
                       int64_t context, const Device& device, int64_t batch_rows = kPromptBatch);

// What a loaded model takes on one device.
struct ModelMemory {
  Device device;
  uint64_t weight_bytes = 0;  // on the CPU: of the mapped file
  uint64_t cache_bytes = 0;
  uint64_t work_bytes = 0;  // of the plans made so far
};

}  // namespace prism::llm

#pragma GCC visibility pop
