// Verifies a whole model file: what loading checks, and every value of every tensor.
#pragma once

#include <cstdint>
#include <functional>

#include "llm/gguf/verify_file.h"
#include "prism/llm/gguf.h"

namespace prism::llm {

// Does everything that loading does, except that the weights stay views of the file. Throws what
// loading throws.
void check_loads(const GgufFile& file);

// The checks of verify_file, and those of a load: hyperparameters, the tensors that the
// architecture needs and their shapes, the tokenizer. An architecture that Prism cannot run is a
// note; the rest is checked all the same.
VerifyResult verify_model(const GgufFile& file,
                          const std::function<void(uint64_t done, uint64_t all)>& progress = {});

}  // namespace prism::llm
