// Implements the search for special tokens and the lists of well-known ones.
#include "llm/tokenizer/special_tokens.h"

#include <algorithm>

namespace prism::llm {
namespace {

bool is_special(TokenType type, bool with_control) {
  return type == TokenType::user_defined ||
         (with_control && (type == TokenType::control || type == TokenType::unknown));
}

size_t start_of(char first, char second) {
  return static_cast<size_t>(static_cast<unsigned char>(first)) << 8 |
         static_cast<unsigned char>(second);
}

struct KnownName {
  std::string_view text;
  bool only_marked = false;
};

std::vector<int32_t> find_names(const Vocabulary& vocabulary,
                                std::initializer_list<KnownName> names) {
  std::vector<int32_t> ids;
  for (const KnownName& name : names) {
    const int32_t id = vocabulary.texts.find(name.text);
    if (id < 0) continue;
    if (name.only_marked && !is_special(vocabulary.types[static_cast<size_t>(id)], true)) continue;
    ids.push_back(id);
  }
  return ids;
}

}  // namespace

SpecialTokens::Set SpecialTokens::make_set(const Vocabulary& vocabulary, bool with_control) {
  Set set;
  std::vector<std::string_view> texts;
  for (size_t i = 0; i < vocabulary.types.size(); ++i) {
    const std::string_view text = vocabulary.texts[i];
    if (text.empty() || !is_special(vocabulary.types[i], with_control)) continue;
    texts.push_back(text);
    set.ids.push_back(static_cast<int32_t>(i));
    set.lengths[static_cast<unsigned char>(text[0])].push_back(static_cast<uint32_t>(text.size()));
    if (text.size() > 1) {
      set.starts.set(start_of(text[0], text[1]));
    } else {
      for (int next = 0; next < 256; ++next)
        set.starts.set(start_of(text[0], static_cast<char>(next)));
    }
  }
  set.texts = TextTable(std::move(texts));
  for (std::vector<uint32_t>& lengths : set.lengths) {
    std::ranges::sort(lengths, std::greater<>());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  }
  return set;
}

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary)
    : all_(make_set(vocabulary, true)), user_defined_(make_set(vocabulary, false)) {}

std::optional<SpecialMatch> SpecialTokens::find(std::string_view text, size_t at,
                                                bool with_control) const {
  const Set& set = with_control ? all_ : user_defined_;
  if (set.ids.empty()) return std::nullopt;
  for (; at < text.size(); ++at) {
    // Most positions cannot start a special token.
    if (at + 1 < text.size() && !set.starts.test(start_of(text[at], text[at + 1]))) continue;
    for (const uint32_t bytes : set.lengths[static_cast<unsigned char>(text[at])]) {
      if (bytes > text.size() - at) continue;
      const int32_t found = set.texts.find(text.substr(at, bytes));
      if (found >= 0) return SpecialMatch{at, bytes, set.ids[static_cast<size_t>(found)]};
    }
  }
  return std::nullopt;
}

std::vector<int32_t> find_turn_ends(const Vocabulary& vocabulary) {
  return find_names(vocabulary, {{"<|eot_id|>"},
                                 {"<|im_end|>"},
                                 {"<|end|>"},
                                 {"<end_of_turn>"},
                                 {"<turn|>"},
                                 {"<|endoftext|>"},
                                 {"<|end_of_text|>"},
                                 {"<EOT>", true},
                                 {"_<EOT>", true},
                                 {"[EOT]", true},
                                 {"<｜end▁of▁sentence｜>"},
                                 {"<end_of_utterance>"}});
}

std::vector<int32_t> find_generation_ends(const Vocabulary& vocabulary) {
  std::vector<int32_t> ids =
      find_names(vocabulary, {{"<|eot_id|>"},
                              {"<|im_end|>"},
                              {"<|end|>"},
                              {"<|return|>"},
                              {"<|call|>"},
                              {"<|calls|>"},
                              {"<|flush|>"},
                              {"<end_of_turn>"},
                              {"<turn|>"},
                              {"<|endoftext|>"},
                              {"<|end_of_text|>"},
                              {"<|eom_id|>"},
                              {"</s>", true},
                              {"<eos>", true},
                              {"<EOT>", true},
                              {"_<EOT>", true},
                              {"[EOT]", true},
                              {"[EOS]", true},
                              {"[e~[", true},
                              {"<end_of_utterance>"},
                              {"<|tool_response>"},
                              {"<｜end▁of▁sentence｜>"},
                              // After these, code models continue with another file.
                              {"<|fim_pad|>"},
                              {"<fim-pad>"},
                              {"<fim_pad>"},
                              {"<|fim_repo|>"},
                              {"<|repo_name|>"},
                              {"<fim-repo>"},
                              {"<reponame>"},
                              {"<|file_sep|>"}});
  // In the harmony format <|end|> closes a message, and the same turn may continue.
  const auto has = [&](std::string_view text) { return vocabulary.texts.find(text) >= 0; };
  if (has("<|call|>") || has("<|calls|>"))
    if (has("<|return|>") || has("<|flush|>")) std::erase(ids, vocabulary.texts.find("<|end|>"));
  if (has("<|tool_response>")) std::erase(ids, vocabulary.texts.find("</s>"));
  return ids;
}

}  // namespace prism::llm
