// Reads the texts of ../shared/tokenizers.
#include "support/models/tokenizer_texts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "support/paths.h"

namespace prism::test {

namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TokenizerTexts tokenizer_texts(const std::string& name) {
  const std::filesystem::path folder = shared_dir() / "tokenizers";
  TokenizerTexts result;
  result.all = read_text(folder / (name + ".inp"));
  // Texts are separated by lines that contain only the mark.
  const std::string mark = "\n__ggml_vocab_test__\n";
  for (size_t at = 0; at <= result.all.size();) {
    const size_t end = std::min(result.all.find(mark, at), result.all.size());
    result.texts.push_back(result.all.substr(at, end - at));
    at = end + mark.size();
  }
  std::istringstream lines(read_text(folder / (name + ".out")));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    result.ids.emplace_back(std::istream_iterator<int32_t>(words),
                            std::istream_iterator<int32_t>());
  }
  return result;
}

}  // namespace prism::test
