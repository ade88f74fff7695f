// Reads the settings of sentence-transformers.
#include "llm/convert/sentence_settings.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kNotSupported, fmt::format("modules.json: {}", what));
}

uint32_t pooling_of(const HfFolder& folder, const std::string& path) {
  const std::optional<Json> config = folder.json(path + "/config.json");
  if (!config) refuse(fmt::format("names {}/config.json, which is missing", printable(path)));
  uint32_t pooling = 0;
  // Newer files name one kind.
  if (const JsonView mode = JsonView(*config)["pooling_mode"]) {
    const std::string name = mode.is_string() ? mode.string() : mode.json().dump();
    pooling = name == "mean" ? 1 : name == "cls" ? 2 : name == "lasttoken" ? 3 : 0;
    if (pooling != 0) return pooling;
    refuse(
        fmt::format("pooling_mode is {}; supported are mean, cls and lasttoken", printable(name)));
  }
  for (const auto& [key, value] : JsonView(*config).members()) {
    if (!key.starts_with("pooling_mode_") || !value.boolean_or(false)) continue;
    const uint32_t found = key == "pooling_mode_mean_tokens" ? 1
                           : key == "pooling_mode_cls_token" ? 2
                           : key == "pooling_mode_lasttoken" ? 3
                                                             : 0;
    if (found == 0 || pooling != 0)
      refuse(fmt::format("the pooling is {}; supported are the mean, the first and the last token",
                         printable(config->dump().substr(0, 300))));
    pooling = found;
  }
  if (pooling == 0) refuse(fmt::format("{}/config.json names no pooling", printable(path)));
  return pooling;
}

Answers answers_of(const HfFolder& folder, const std::string& path) {
  const std::optional<Json> config = folder.json(path + "/config.json");
  if (!config) refuse(fmt::format("names {}/config.json, which is missing", printable(path)));
  const JsonView view(*config);
  if (!view["true_token_id"] || !view["false_token_id"])
    refuse(
        fmt::format("{}/config.json names no true_token_id or no false_token_id; the score of "
                    "one token alone cannot be converted",
                    printable(path)));
  return {view["true_token_id"].integer(0, 1 << 30), view["false_token_id"].integer(0, 1 << 30)};
}

// The first folders of Qwen3-Reranker say only in their README how scores are made.
std::optional<Answers> answers_of_readme(const HfFolder& folder) {
  const std::optional<std::string> readme = folder.text("README.md");
  if (!readme || readme->find("# Qwen3-Reranker") == readme->npos) return std::nullopt;
  const std::optional<Json> tokenizer = folder.json("tokenizer.json");
  if (!tokenizer) return std::nullopt;
  const JsonView ids = JsonView(*tokenizer)["model"]["vocab"];
  return Answers{ids["yes"].integer(0, 1 << 30), ids["no"].integer(0, 1 << 30)};
}

}  // namespace

SentenceSettings sentence_settings(const HfFolder& folder) {
  SentenceSettings settings;
  if (const std::optional<Json> modules = folder.json("modules.json")) {
    for (const JsonView& module : JsonView(*modules).items()) {
      const std::string type = module["type"].string();
      if (type.ends_with(".Pooling"))
        settings.pooling = pooling_of(folder, module["path"].string());
      else if (type.ends_with(".LogitScore"))
        settings.answers = answers_of(folder, module["path"].string());
      else if (!type.ends_with(".Transformer") && !type.ends_with(".Normalize") &&
               !type.ends_with(".Dense"))  // HfFolder has its matrix
        refuse(
            fmt::format("the module {} cannot be converted; supported are Transformer, Pooling, "
                        "Dense, Normalize and LogitScore",
                        printable(type)));
    }
  }
  if (const std::optional<Json> config = folder.json("sentence_bert_config.json"))
    if (const JsonView most = JsonView(*config)["max_seq_length"])
      settings.max_tokens = most.integer(1, 1 << 30);
  if (!settings.answers) settings.answers = answers_of_readme(folder);
  return settings;
}

}  // namespace prism::llm
