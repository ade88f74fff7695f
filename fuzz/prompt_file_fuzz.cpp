// Fuzzes the files of the prompt cache: each is refused, or read and the same after it was written
// again. An input also counts as a file without its checksum, so that the checks behind that are
// reached.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/fast_hash.h"
#include "llm/generate/prompt_file.h"
#include "prism/error.h"

using namespace prism;

namespace {

void read(const std::vector<std::byte>& bytes) {
  try {
    const llm::PromptFile file = llm::PromptFile::parse(bytes);
    if (file.text() != bytes) std::abort();
    if (llm::PromptFile::key(file.layout, file.parent, file.tokens).size() != 64) std::abort();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptFile) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* const first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first, first + size);
  read(bytes);
  const std::string hash = fast_hash(bytes);
  for (const char digit : hash) bytes.push_back(static_cast<std::byte>(digit));
  read(bytes);
  return 0;
}
