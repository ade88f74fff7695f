// A loaded language model: weights on their devices, a KV cache, and one plan per batch size.
//
//   const GgufFile file = GgufFile::open("model.gguf");
//   Model model = Model::load(file, {.placement = place_on(file, Device::cpu(), 2048)});
//   const std::vector<int32_t> prompt = {1, 403, 407, 261, 378};
//   Tensor logits = model.prefill(0, 0, prompt);          // [1, vocabulary], of the last token
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "llm/model/batch.h"
#include "llm/model/config.h"
#include "llm/model/kv_cache.h"
#include "llm/model/weights.h"
#include "prism/llm/adapter.h"
#include "prism/llm/gguf.h"
#include "prism/llm/memory.h"
#include "prism/llm/placement.h"
#include "prism/tensor.h"

namespace prism::llm {

struct ModelOptions {
  Placement placement;          // its context is the limit for each sequence
  int64_t slots = 1;            // sequences in the KV cache at once
  int64_t cache_positions = 0;  // that they share; 0: slots times the context
  int64_t cache_block = 0;      // positions of a block, a power of two; 0: chosen
  int64_t batch_rows = 512;     // maximum tokens per forward
  std::vector<LoraAdapter> adapters = {};
  LoadCallback progress = {};
};

// Places the whole model on one device. context 0: the context the model was trained for.
Placement place_on(const GgufFile& file, const Device& device, int64_t context = 0,
                   ElementType kv_type = DType::f16);

// Not thread-safe.
class Model {
 public:
  // Throws kNotSupported for an unknown architecture, kNotFound or kCorruptFile for an incomplete
  // file, kOutOfMemory naming the device. The file may be destroyed afterwards.
  static Model load(const GgufFile& file, const ModelOptions& options);
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  const Config& config() const;
  const Placement& placement() const;
  KvCache& cache();
  const KvCache& cache() const;
  int64_t context() const { return cache().positions(); }
  int64_t slots() const { return cache().slots(); }
  // The first of the slots for work beside the texts, which share the blocks of the KV cache. Their
  // users return the blocks (KvCache::truncate).
  int32_t side_slot() const { return static_cast<int32_t>(cache().slots()); }
  int64_t batch_rows() const;
  // Describes what the bytes of a block in the KV cache depend on beside the weights: the element
  // type, the block size, the layers, the rotation and the adapters.
  std::string cache_layout() const;
  // The most rows of a batch in which each row is computed as in a batch of `rows` rows: larger
  // ones run other kernels, whose rounding differs. Known for the CPU only; elsewhere batch_rows().
  int64_t rows_alike(int64_t rows) const;
  // The rows that a decoding step of `rows` rows computes: devices that record launches pad it.
  int64_t padded_rows(int64_t rows) const;
  // The largest number of rows below `rows` after which the time of a decoding step jumps, because
  // padding begins or other kernels run; 0: none is known.
  int64_t rows_before_jump(int64_t rows) const;

  // Runs the tokens of all parts in one batch (one part per slot; at most batch_rows() tokens in
  // total) and writes their keys and values to the KV cache. Returns the logits of the wanted rows
  // in order: f32 [wanted, vocabulary] on placement().output, or an empty Tensor if no row is
  // wanted. Does not wait for devices. Holding a result across the next forward costs a copy.
  // Throws kInvalidArgument for a slot, position or token out of range, before anything runs.
  //
  // Models with an encoder and a decoder: the part at position 0 is what the encoder sees, whole
  // and without results, and the decoder's tokens follow it, first config().start_token.
  Tensor forward(std::span<const SequencePart> parts);
  void wait();  // for the devices
  // Runs the tokens of one sequence in as many batches as they need. Returns the logits of the last
  // token, [1, vocabulary]. Where a decoder follows an encoder, the tokens at position 0 are the
  // encoder's, and the logits are those of the first token behind them.
  Tensor prefill(int32_t slot, int32_t first_position, std::span<const int32_t> tokens);
  // Same as forward, but returns the final hidden states: [wanted, width]; those of an encoder for
  // parts at position 0.
  Tensor hidden(std::span<const SequencePart> parts);
  // One embedding per text, pooled as the file specifies, or by the mean if it does not. Not
  // normalised. Uses the side slots: the texts in other slots keep their keys and values. Texts of
  // similar length share a batch. progress: see EmbedOptions.
  std::vector<std::vector<float>> embed(
      std::span<const std::vector<int32_t>> texts,
      const std::function<bool(size_t done, size_t all)>& progress = {});
  bool makes_logits() const;  // false: embeddings only
  // The numbers that the classification head of the file gives for each text, one for each label.
  // Throws kNotSupported if the file has none.
  bool classifies() const;
  std::vector<std::vector<float>> classify(
      std::span<const std::vector<int32_t>> texts,
      const std::function<bool(size_t done, size_t all)>& progress = {});

  std::vector<ModelMemory> memory() const;  // per device
  size_t plans() const;                     // created so far
  // Describes the steps of the plan for this batch shape, which is created if needed. measured:
  // runs the plan once, step by step, and reports the time of each; this overwrites the KV cache.
  std::string explain(const BatchShape& shape, bool measured = false);

  // For decode loops (decode.h).
  struct State;
  State& state() { return *state_; }

 private:
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace prism::llm
