// Texts to fine-tune a model on: chats, of which only the answers are learned, or plain text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "prism/llm/gguf.h"
#include "prism/nn/data.h"

namespace prism::llm {

struct LoraSample {
  std::vector<int32_t> tokens;
  std::vector<bool> is_learned;  // by token
};

// A file of JSON lines has a chat on each line, {"messages": [{"role": "user", "content": "..."},
// ...]}, a pair {"prompt": ..., "completion": ...} (also "question" and "answer", "instruction" and
// "output"), or {"text": ...}. Chats and pairs are written with the chat template of the model, and
// the assistant's messages are learned; without a template, a pair is its prompt, a newline and the
// completion. Any other file is plain text, cut into samples of `context` tokens; all of it is
// learned. Samples are cut at `context` tokens; those without a learned token are left out, with a
// warning. Throws kInvalidArgument naming the line if one is not such an object, or if the file has
// nothing to learn.
std::vector<LoraSample> read_lora_samples(const std::string& path, const GgufFile& model,
                                          int64_t context);

struct LoraSplit {
  std::vector<LoraSample> training, validation;
};
// A random part of the samples, chosen by the seed, is for validation: `share` of them, but at
// least one unless share is 0. Throws kInvalidArgument if nothing is left to train on.
LoraSplit split_samples(std::vector<LoraSample> samples, double share, uint64_t seed);

// Batches of three i32 tensors: tokens [samples, length], padded to one of few lengths; the rows
// (of all samples one after the other) whose next token is learned; and these next tokens. The last
// two are padded by row 0 and kIgnoredToken.
inline constexpr int32_t kIgnoredToken = -100;
std::shared_ptr<nn::BatchSource> lora_source(std::vector<LoraSample> samples);

}  // namespace prism::llm
