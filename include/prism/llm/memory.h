// The memory a language model needs: estimated from its sizes, or computed from its file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/device.h"
#include "prism/element_type.h"
#include "prism/llm/gguf.h"

#pragma GCC visibility push(default)

namespace prism::llm {

// The default number of prompt tokens per batch, which determines the activation memory.
inline constexpr int64_t kPromptBatch = 512;
// The default context, unless the model was trained for less.
inline constexpr int64_t kDefaultContext = 8192;

struct InferenceMemory {
  uint64_t model_bytes = 0;
  uint64_t kv_cache_bytes = 0;
  uint64_t activation_bytes = 0;
  uint64_t total_bytes = 0;  // sum of the three
  double total_gb() const { return static_cast<double>(total_bytes) / (1 << 30); }
};

// Estimates a decoder with gated feed-forward blocks and an untied output, with `bytes` per
// element: (4096, 14336, 32, 32000, 32, 8, 4096, 4) is a Mistral 7B in f32. Throws kInvalidArgument
// for sizes below 1, or heads that do not divide evenly.
InferenceMemory estimate_inference_memory(int64_t hidden, int64_t intermediate, int64_t layers,
                                          int64_t vocab, int64_t heads, int64_t kv_heads,
                                          int64_t sequence, int64_t bytes);

// The sizes that determine memory and speed, read from a file.
struct ModelSizes {
  std::string architecture, name;
  int64_t layers = 0, hidden = 0, feed_forward = 0, heads = 0, vocabulary = 0;
  int64_t decoder_layers = 0;                // those of `layers` that follow an encoder
  int64_t context = 0;                       // context the model was trained for
  int64_t experts = 0, experts_used = 0;     // 0 without a mixture of experts
  int64_t key_length = 0, value_length = 0;  // elements per head
  std::vector<int64_t> kv_heads;             // per layer
  uint64_t parameters = 0;
};
// Throws kNotFound or kCorruptFile naming the key that is missing or invalid.
ModelSizes model_sizes(const GgufFile& file);

struct LayerMemory {
  uint64_t weight_bytes = 0;  // without experts
  uint64_t expert_bytes = 0;  // mixture of experts only
  uint64_t kv_bytes = 0;
  uint64_t state_bytes = 0;  // what recurrent layers remember of one text
};

// The memory each part of a model needs on a device, in that device's layout.
struct MemoryNeed {
  std::vector<LayerMemory> layers;
  uint64_t embedding_bytes = 0;
  uint64_t output_bytes = 0;  // final norm and output matrix (a copy of a tied embedding)
  bool is_output_tied = false;
  uint64_t activation_bytes = 0;  // for one prompt batch, independent of the number of layers

  uint64_t weight_bytes() const;  // layers, embedding and output; a tied output counts once
  uint64_t kv_bytes() const;
  uint64_t state_bytes() const;  // with the blocks that a cache for one text has
  uint64_t total_bytes() const;
};
// The CPU uses the file's layout; other devices store blocks in their own. batch_rows: prompt
// tokens per batch. Throws kInvalidArgument for a KV cache type other than f32, f16, bf16 and q8_0,
// and for a head size that q8_0 cannot store.
MemoryNeed memory_need(const GgufFile& file, const ModelSizes& sizes, ElementType kv_type,
                       int64_t context, const Device& device, int64_t batch_rows = kPromptBatch);

// The memory a loaded model uses on one device.
struct ModelMemory {
  Device device;
  uint64_t weight_bytes = 0;  // on the CPU: of the memory-mapped file
  uint64_t cache_bytes = 0;
  uint64_t work_bytes = 0;  // of the plans created so far
};

}  // namespace prism::llm

#pragma GCC visibility pop
