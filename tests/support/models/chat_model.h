// A small model with a chat template.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace prism::test {

// Writes a copy of the model file into the folder, with a template that joins the contents of the
// messages, and with these further metadata values. Returns its path.
std::string with_template(const std::string& path, const std::filesystem::path& folder,
                          const std::vector<std::pair<std::string, std::string>>& values = {});

// Writes a copy with these tokens for filling in the middle: prefix, suffix and middle.
std::string with_fill_tokens(const std::string& path, const std::filesystem::path& folder,
                             const std::array<uint32_t, 3>& tokens);

}  // namespace prism::test
