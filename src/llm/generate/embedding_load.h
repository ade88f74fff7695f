// How a model is loaded to embed many texts at once.
#pragma once

#include "prism/llm/language_model.h"

namespace prism::llm {

// Sets batch_rows, slots and, for models that were trained for short texts, the context: the cache
// then holds the texts of a whole batch, each in its full length.
void set_embedding_load(const GgufFile& file, LoadOptions& load);

}  // namespace prism::llm
