// Trainable GPTs as model files.
#pragma once

#include <string>

#include "llm/gguf/gguf_writer.h"
#include "llm/train/gpt.h"
#include "prism/llm/gguf.h"

namespace prism::llm {

// The metadata that tells readers the model's shape, under the architecture `llama`.
void write_shape(const GptShape& shape, const std::string& name, GgufWriter& to);

// Adds the weights in f32. The tensors are read when the file is written.
void add_weights(Gpt& model, GgufWriter& to);

// The shape of a file's model. Throws kNotSupported, naming the reason, for an architecture other
// than `llama` and for layers that Gpt lacks: experts, biases, scaled rotations.
GptShape shape_of(const GgufFile& file);

// Gives the model the file's weights, which may be quantised. Throws kCorruptFile for a missing
// tensor or one of another shape.
void load_weights(const GgufFile& file, Gpt& model);

}  // namespace prism::llm
