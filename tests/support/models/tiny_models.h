// A tiny model of many architectures, with a tokenizer, for tests that only need valid files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/models/tiny_model.h"

namespace prism::test {

// Widths are multiples of 256, so that every block type can hold the weights. Its file has every
// hyperparameter that the architecture reads. The same seed gives the same file.
std::unique_ptr<TinyModel> tiny_model(const std::string& architecture, uint32_t seed = 1);
// The architectures that it makes.
std::vector<std::string> tiny_architectures();

}  // namespace prism::test
