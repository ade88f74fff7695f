// Copies of a model's file that differ from it in some tensors or keys.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "llm/gguf/gguf_writer.h"
#include "prism/llm/gguf.h"
#include "support/run_program.h"

namespace prism::test {

// A copy without some tensors, with others in their place and other metadata.
struct Variant {
  std::set<std::string> without = {};
  std::map<std::string, std::vector<float>> values = {};  // of the tensor's shape
  std::map<std::string, std::pair<Shape, std::vector<float>>> added = {};
  std::function<void(llm::GgufWriter&)> change = {};
  std::string architecture = "";  // in place of the file's
};

// Writes the copies of one file, which must outlive it.
class Variants {
 public:
  explicit Variants(const llm::GgufFile& file) : file_(file) {}
  llm::GgufFile open(const Variant& variant);

 private:
  const llm::GgufFile& file_;
  TemporaryFolder folder_;
  int count_ = 0;
};

}  // namespace prism::test
