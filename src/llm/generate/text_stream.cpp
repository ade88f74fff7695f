// Converts tokens to text while they are generated.
#include <utility>

#include "base/utf8.h"
#include "prism/llm/tokenizer.h"

namespace prism::llm {

TextStream::TextStream(const Tokenizer& tokenizer, Options options)
    : tokenizer_(tokenizer), options_(options), drop_space_(options.at_start) {}

std::string TextStream::put(int32_t id) {
  std::string bytes = drop_space_ ? tokenizer_.decode({&id, 1}, options_.special)
                                  : tokenizer_.piece(id, options_.special);
  if (bytes.empty() && tokenizer_.piece(id, options_.special).empty()) return "";
  drop_space_ = false;
  open_ += bytes;
  const size_t whole = open_.size() - utf8_open_bytes(open_);
  std::string out = repair_utf8(std::string_view(open_).substr(0, whole));
  open_.erase(0, whole);
  return out;
}

std::string TextStream::finish() {
  drop_space_ = options_.at_start;
  return repair_utf8(std::exchange(open_, ""));
}

}  // namespace prism::llm
