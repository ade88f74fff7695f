// Conversion of the tiny Hugging Face folders of tests, and what the models then compute.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/error.h"
#include "prism/llm/gguf.h"
#include "support/models/hf_files.h"

namespace prism::test {

// Converts a folder to a file inside it and opens that file. type: as of `prism model convert`.
llm::GgufFile convert(const HfTestFolder& folder, const std::string& type = "",
                      const std::string& to = "out.gguf");

// The message of a conversion that must fail with this code and leave no file.
std::string failure_of(const HfTestFolder& folder, ErrorCode code);

// On the CPU: the last logits, those of a classifier's labels, or the mean hidden state of another
// encoder.
std::vector<float> result_of(const llm::GgufFile& file, const std::vector<int32_t>& tokens);

}  // namespace prism::test
