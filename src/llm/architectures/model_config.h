// All hyperparameters of a model, checked.
#pragma once

#include "llm/architectures/architecture.h"

namespace prism::llm {

// Those of read_config and those of the file's architecture. Throws kCorruptFile if one that
// follows from others is NaN, infinite or too large for f32.
Config model_config(const GgufFile& file, const Architecture& architecture);

}  // namespace prism::llm
