// Reads the expected texts of the small models.
#include "support/models/expected_text.h"

#include <filesystem>
#include <fstream>

#include "support/paths.h"

namespace prism::test {

ExpectedText expected_text(const std::string& name, const std::string& logits_file) {
  ExpectedText expected;
  const std::filesystem::path folder = shared_dir() / "expected";
  std::ifstream ids(folder / (name + ".ids"));
  for (int32_t id = 0; ids >> id;) expected.ids.push_back(id);
  std::ifstream logits(folder / logits_file, std::ios::binary | std::ios::ate);
  if (!logits) return expected;
  expected.logits.resize(static_cast<size_t>(logits.tellg()) / sizeof(float));
  logits.seekg(0);
  logits.read(reinterpret_cast<char*>(expected.logits.data()),
              static_cast<std::streamsize>(expected.logits.size() * sizeof(float)));
  return expected;
}

std::string shared_model(const std::string& name) {
  const std::filesystem::path path = shared_dir() / "models" / (name + ".gguf");
  return std::filesystem::exists(path) ? path.string() : std::string();
}

}  // namespace prism::test
