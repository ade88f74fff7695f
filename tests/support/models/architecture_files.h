// Tiny models of many architectures with the logits of an independent engine, from ../shared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace prism::test {

struct ArchitectureFile {
  std::string name;  // "olmo2-dense"
  std::string path;
  std::vector<int32_t> tokens;
  std::vector<float> logits;  // [tokens, vocabulary]
};

// All of them in the order of their names, unpacked once for the process; empty if the archive or
// the programs tar and xz do not exist.
const std::vector<ArchitectureFile>& architecture_files();

}  // namespace prism::test
