// Writes the scores and the normalisation of unigram tokenizers.
#include "llm/convert/hf_unigram.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/printable.h"
#include "llm/convert/hf_pre_tokenizer.h"
#include "llm/tokenizer/text_encoder.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

constexpr float kUnusedScore = -10000;  // of ids without a piece

[[noreturn]] void refuse(const JsonView& part, const char* needed) {
  throw Error(ErrorCode::kNotSupported,
              fmt::format("tokenizer.json: {} is {}; Unigram needs {}", part.path(),
                          printable(part.json().dump().substr(0, 200)), needed));
}

struct Normalisation {
  std::vector<uint8_t> map;
  bool prefix = false, merges_spaces = false;
};

void read_normalizer(const JsonView& normalizer, Normalisation& to) {
  for (const JsonView& each : rules_of(normalizer, "normalizers")) {
    const std::string type = each["type"].string();
    if (type == "Precompiled" && to.map.empty()) {
      const auto map = from_base64(each["precompiled_charsmap"].string_or(""));
      if (!map)
        throw Error(ErrorCode::kCorruptFile,
                    "tokenizer.json: precompiled_charsmap has characters that base64 lacks");
      to.map.assign(map->begin(), map->end());
    } else if (type == "Replace" && each["pattern"]["Regex"].string_or("") == " {2,}")
      to.merges_spaces = true;
    else if (type == "Strip")
      to.merges_spaces = true;
    else
      refuse(each, "Precompiled, Replace of spaces or Strip");
  }
}

void read_pre_tokenizer(const JsonView& splitter, Normalisation& to) {
  bool has_marks = false;
  for (const JsonView& each : rules_of(splitter, "pretokenizers")) {
    const std::string type = each["type"].string();
    if (type == "WhitespaceSplit") {
      to.merges_spaces = true;
    } else if (type == "Metaspace" && each["replacement"].string_or("") == kSpaceMark) {
      has_marks = true;
      to.prefix = each["prepend_scheme"].string_or("always") != "never" &&
                  each["add_prefix_space"].boolean_or(true);
    } else {
      refuse(each, "Metaspace with U+2581, and WhitespaceSplit before it");
    }
  }
  if (!has_marks) refuse(splitter, "Metaspace with U+2581");
}

void write(const Normalisation& rules, const std::vector<float>& scores, GgufWriter& to) {
  to.set("tokenizer.ggml.model", "t5");
  to.set("tokenizer.ggml.pre", "default");
  to.set("tokenizer.ggml.scores", scores);
  to.set("tokenizer.ggml.add_space_prefix", rules.prefix);
  to.set("tokenizer.ggml.remove_extra_whitespaces", rules.merges_spaces);
  if (!rules.map.empty()) to.set("tokenizer.ggml.precompiled_charsmap", rules.map);
}

}  // namespace

void write_unigram(const JsonView& json, HfVocabulary& vocabulary, GgufWriter& to) {
  const JsonView model = json["model"];
  if (model["byte_fallback"].boolean_or(false)) refuse(model["byte_fallback"], "none");
  std::vector<float> scores(static_cast<size_t>(vocabulary.size()), kUnusedScore);
  int64_t id = 0;
  for (const Json& each : model["vocab"].json().items()) {
    const std::vector<JsonView> pair = JsonView(each, "model.vocab").items();
    if (pair.size() != 2)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("tokenizer.json: model.vocab[{}] is no pair of text and score", id));
    vocabulary.add(pair[0].string(), id);
    scores[static_cast<size_t>(id++)] = static_cast<float>(pair[1].number(-1e30, 1e30));
  }
  Normalisation rules;
  read_normalizer(json["normalizer"], rules);
  read_pre_tokenizer(json["pre_tokenizer"], rules);
  write(rules, scores, to);
}

void write_sentence_piece_model(const SentencePieceModel& model, HfVocabulary& vocabulary,
                                GgufWriter& to) {
  std::vector<float> scores(static_cast<size_t>(vocabulary.size()), kUnusedScore);
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePieceModel::Piece& piece = model.pieces[id];
    vocabulary.add(piece.text, static_cast<int64_t>(id));
    vocabulary.set_type(static_cast<int64_t>(id), piece.type);
    scores[id] = std::isfinite(piece.score) ? piece.score : 0;
  }
  Normalisation rules;
  rules.map.assign(model.character_map.begin(), model.character_map.end());
  rules.prefix = model.add_space_prefix;
  rules.merges_spaces = model.remove_extra_spaces;
  write(rules, scores, to);
  if (!model.is_unigram) {
    to.set("tokenizer.ggml.model", "llama");
    to.remove("tokenizer.ggml.precompiled_charsmap");
  }
}

}  // namespace prism::llm
