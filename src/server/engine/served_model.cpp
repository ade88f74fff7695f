// Opens a model's file and renders its chat template.
#include "server/engine/served_model.h"

#include <fstream>

#include <fmt/format.h>

#include "base/json.h"
#include "base/sha256.h"
#include "llm/architectures/architecture.h"
#include "prism/error.h"

namespace prism::server {
namespace {

constexpr const char* kChatMl =
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

}  // namespace

ServedModel::ServedModel(std::string name, std::string path, Options options)
    : name_(std::move(name)), path_(std::move(path)), options_(std::move(options)) {}

ServedModel::Parts& ServedModel::parts() const {
  const std::lock_guard lock(mutex_);
  if (!parts_) {
    llm::GgufFile file = llm::GgufFile::open(path_);
    llm::check_architecture(file);
    llm::Tokenizer tokenizer = llm::Tokenizer::from(file);
    std::string text = options_.chat_template;
    if (text.empty()) text = std::string(file.string_or("tokenizer.chat_template", kChatMl));
    parts_ = std::make_unique<Parts>(
        Parts{std::move(file), std::move(tokenizer), std::move(text), std::nullopt, {}});
  }
  return *parts_;
}

bool ServedModel::is_readable() const {
  try {
    parts();
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool ServedModel::makes_embeddings() const {
  const llm::GgufFile& from = file();
  const std::string prefix = std::string(from.string_or("general.architecture", "")) + ".";
  return prefix == "bert." || prefix == "t5encoder." ||
         from.integer_or(prefix + "pooling_type", 0) > 0 ||
         !from.boolean_or(prefix + "attention.causal", true);
}

bool ServedModel::reranks() const {
  return file().find_tensor("cls.weight") || file().find_tensor("cls.output.weight");
}

std::string ServedModel::digest() const {
  Parts& all = parts();
  const std::lock_guard lock(mutex_);
  if (!all.digest.empty()) return all.digest;
  std::string header(all.file.data_offset(), '\0');
  std::ifstream stream(all.file.parts().front(), std::ios::binary);
  stream.read(header.data(), static_cast<std::streamsize>(header.size()));
  if (!stream)
    throw Error(ErrorCode::kIo, fmt::format("reading the header of \"{}\" failed", path_));
  const uint64_t bytes = all.file.file_bytes();
  Sha256 hash;
  hash.update(std::as_bytes(std::span(header)));
  hash.update(std::as_bytes(std::span(&bytes, 1)));
  all.digest = hash.finish();
  return all.digest;
}

std::string ServedModel::chat_prompt(std::span<const llm::ChatMessage> messages,
                                     llm::ChatOptions options) const {
  Parts& all = parts();
  {
    const std::lock_guard lock(mutex_);
    if (!all.chat_template) all.chat_template.emplace(all.template_text);
  }
  const auto text_of = [&](int32_t id) {
    return id < 0 ? std::string() : std::string(all.tokenizer.text(id));
  };
  if (options.bos_token.empty()) options.bos_token = text_of(all.tokenizer.bos());
  if (options.eos_token.empty()) options.eos_token = text_of(all.tokenizer.eos());
  if (!options_.template_variables.empty()) {
    Json variables = Json::parse(options_.template_variables);
    const Json given = options.extra.empty() ? Json::object() : Json::parse(options.extra);
    for (const Json::Member& each : given.members()) variables[each.key] = each.value;
    options.extra = variables.dump();
  }
  return all.chat_template->render(messages, options);
}

}  // namespace prism::server
