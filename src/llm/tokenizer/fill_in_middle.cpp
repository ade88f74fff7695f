// Finds the tokens for filling in the middle, and writes prompts with them.
#include "llm/tokenizer/fill_in_middle.h"

#include <initializer_list>
#include <string_view>

namespace prism::llm {
namespace {

int32_t find_token(const GgufFile& file, const Tokenizer& tokenizer,
                   std::initializer_list<const char*> keys,
                   std::initializer_list<const char*> texts) {
  for (const char* key : keys) {
    const int64_t id = file.integer_or(key, -1);
    if (id >= 0 && id < static_cast<int64_t>(tokenizer.size())) return static_cast<int32_t>(id);
  }
  for (const char* text : texts)
    if (const int32_t id = tokenizer.find(text); id >= 0) return id;
  return -1;
}

}  // namespace

std::optional<FillInMiddle> FillInMiddle::of(const GgufFile& gguf, const Tokenizer& tokenizer) {
  FillInMiddle fill;
  // Qwen, StarCoder, Granite, Code Llama, DeepSeek and GLM, in this order.
  fill.prefix = find_token(gguf, tokenizer,
                           {"tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"},
                           {"<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>", "▁<PRE>", "<PRE>",
                            "<｜fim▁begin｜>", "<|code_prefix|>"});
  fill.suffix = find_token(gguf, tokenizer,
                           {"tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"},
                           {"<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>", "▁<SUF>", "<SUF>",
                            "<｜fim▁hole｜>", "<|code_suffix|>"});
  fill.middle = find_token(gguf, tokenizer,
                           {"tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"},
                           {"<|fim_middle|>", "<fim_middle>", "<fim-middle>", "▁<MID>", "<MID>",
                            "<｜fim▁end｜>", "<|code_middle|>"});
  fill.repository = find_token(gguf, tokenizer, {"tokenizer.ggml.fim_rep_token_id"},
                               {"<|repo_name|>", "<|fim_repo|>", "<repo_name>", "<reponame>"});
  fill.file = find_token(gguf, tokenizer, {"tokenizer.ggml.fim_sep_token_id"},
                         {"<|file_sep|>", "<file_sep>"});
  if (fill.prefix < 0 || fill.suffix < 0 || fill.middle < 0) return std::nullopt;
  return fill;
}

std::vector<int32_t> FillInMiddle::prompt(const Tokenizer& tokenizer, const Parts& parts) const {
  std::vector<int32_t> tokens;
  const auto add = [&](std::string_view text) {
    const std::vector<int32_t> more =
        tokenizer.encode(text, {.add_special = false, .parse_special = false});
    tokens.insert(tokens.end(), more.begin(), more.end());
  };
  if (tokenizer.adds_bos() && tokenizer.bos() >= 0) tokens.push_back(tokenizer.bos());
  if (repository >= 0 && !parts.others.empty()) {
    tokens.push_back(repository);
    add("project\n");
  }
  for (const OtherFile& each : parts.others) {
    if (file >= 0) tokens.push_back(file);
    add(each.name + "\n" + each.text + "\n");
  }
  if (file >= 0 && !parts.others.empty()) {
    tokens.push_back(file);
    add("file\n");
  }
  tokens.push_back(prefix);
  add(parts.before);
  tokens.push_back(suffix);
  add(parts.after);
  tokens.push_back(middle);
  if (!parts.begun.empty()) add(parts.begun);
  return tokens;
}

}  // namespace prism::llm
