// A language model ready to run: weights on their devices, a cache for its sequences, and a plan
// for each size of batch.
//
//   const GgufFile file = GgufFile::open("model.gguf");
//   Model model = Model::load(file, {.placement = place_on(file, Device::cpu(), 2048)});
//   const std::vector<int32_t> prompt = {1, 403, 407, 261, 378};
//   Tensor logits = model.prefill(0, 0, prompt);          // [1, vocabulary], of the last token
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "llm/model/batch.h"
#include "llm/model/config.h"
#include "llm/model/kv_cache.h"
#include "llm/model/weights.h"
#include "prism/llm/gguf.h"
#include "prism/llm/memory.h"
#include "prism/llm/placement.h"
#include "prism/tensor.h"

namespace prism::llm {

struct ModelOptions {
  Placement placement;       // its context is what each sequence may hold
  int64_t slots = 1;         // sequences that the cache keeps at once
  int64_t batch_rows = 512;  // tokens of one forward at most
  LoadCallback progress = {};
};

// All of a model on one device. context 0: what the model was trained for.
Placement place_on(const GgufFile& file, const Device& device, int64_t context = 0,
                   ElementType kv_type = DType::f16);

// Not for several threads at once.
class Model {
 public:
  // Throws kNotSupported for an unknown architecture, kNotFound and kCorruptFile for files that
  // are not whole, kOutOfMemory naming the device. The file may be let go afterwards.
  static Model load(const GgufFile& file, const ModelOptions& options);
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  const Config& config() const;
  const Placement& placement() const;
  const KvCache& cache() const;
  int64_t context() const { return cache().positions(); }
  int64_t slots() const { return cache().slots(); }
  int64_t batch_rows() const;

  // Runs the tokens of all parts at once (no two of one slot; at most batch_rows() in all) and puts
  // their keys and values into the cache, over what was there. Gives the logits of the rows that
  // are wanted, in order: f32 [wanted, vocabulary] on placement().output; an empty Tensor where
  // none are. Does not wait for devices. A result that is still held at the next forward costs a
  // copy. Throws kInvalidArgument, before anything is run, for a slot, position or token that is
  // not there.
  Tensor forward(std::span<const SequencePart> parts);
  // Tokens of one sequence, in as many batches as they need: logits of the last one, [1,
  // vocabulary]. All but the last batch give none.
  Tensor prefill(int32_t slot, int32_t first_position, std::span<const int32_t> tokens);
  // The vectors before the output product, as forward: [wanted, width].
  Tensor hidden(std::span<const SequencePart> parts);
  // One vector for each text (tokens of positions from 0, in slots from 0), pooled as the file says
  // or, where it says nothing, by the mean; not normalised.
  std::vector<std::vector<float>> embed(std::span<const std::vector<int32_t>> texts);

  std::vector<ModelMemory> memory() const;  // by device
  size_t plans() const;                     // made so far
  // The steps of the plan for such a batch, which is made if there is none yet; measured: run once,
  // step by step, with the time of each. (Runs on what the cache and the last batch hold.)
  std::string explain(const BatchShape& shape, bool measured = false);

  // For decode loops (decode.h): what plans are made from.
  struct State;
  State& state() { return *state_; }

 private:
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace prism::llm
