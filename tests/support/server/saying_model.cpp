#include "support/server/saying_model.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "llm/gguf/gguf_writer.h"

namespace prism::test {
namespace {

constexpr size_t kPieceBytes = 5;

// A tokenizer of bytes, which every text becomes and which become every text.
std::string write_byte_tokenizer(const std::filesystem::path& folder) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "\u2581"};
  std::vector<int32_t> types = {2, 3, 3, 1};  // unknown, control, control, normal
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(fmt::format("<0x{:02X}>", byte));
    types.push_back(6);
  }
  llm::GgufWriter file;
  file.set("general.architecture", "llama");
  file.set("tokenizer.ggml.model", "llama");
  file.set("tokenizer.ggml.tokens", tokens);
  file.set("tokenizer.ggml.scores", std::vector<float>(tokens.size(), -1));
  file.set("tokenizer.ggml.token_type", types);
  file.set("tokenizer.ggml.bos_token_id", 1);
  file.set("tokenizer.ggml.eos_token_id", 2);
  file.set("tokenizer.ggml.unknown_token_id", 0);
  file.set("tokenizer.ggml.add_space_prefix", false);
  const std::string path = (folder / "bytes.gguf").string();
  file.write(path);
  return path;
}

// Whole characters only.
size_t piece_end(const std::string& text, size_t begin) {
  size_t end = std::min(text.size(), begin + kPieceBytes);
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  return end;
}

class SayingModel : public server::EngineModel {
 public:
  SayingModel(const server::ServedModel& served, std::shared_ptr<Sayings> sayings)
      : tokenizer_(served.tokenizer()), sayings_(std::move(sayings)) {}

  int64_t add(std::vector<int32_t> prompt, const llm::GenerationOptions& options,
              const llm::TextCallback& on_text) override {
    Text& text = texts_[++last_id_];
    text.all = sayings_->answer(tokenizer_.decode(prompt, true), options);
    text.on_text = on_text;
    text.is_endless = sayings_->is_endless();
    if (options.grammar && !options.grammar->matches(text.all))
      throw std::runtime_error("the grammar does not allow: " + text.all);
    return last_id_;
  }
  bool step() override {
    for (auto& [id, text] : texts_)
      if (!text.is_finished) give_piece(text);
    return !texts_.empty();
  }
  bool is_finished(int64_t id) const override { return texts_.at(id).is_finished; }
  llm::Generation take(int64_t id) override {
    llm::Generation result = std::move(texts_.at(id).result);
    texts_.erase(id);
    return result;
  }
  void cancel(int64_t id) override {
    if (const auto found = texts_.find(id); found != texts_.end()) {
      found->second.is_finished = true;
      found->second.result.reason = llm::StopReason::cancelled;
    }
  }
  std::vector<std::vector<float>> embed(std::span<const std::string>,
                                        const llm::EmbedOptions&) override {
    return {};
  }
  Facts facts() const override {
    Facts facts;
    facts.context = 1 << 20;
    facts.parallel = 4;
    return facts;
  }

 private:
  struct Text {
    std::string all;
    size_t said = 0;
    llm::TextCallback on_text;
    llm::Generation result;
    bool is_endless = false, is_finished = false;
  };

  static void give_piece(Text& text) {
    const size_t end = piece_end(text.all, text.said);
    const int32_t token = 4;
    ++text.result.statistics.generated_tokens;
    text.on_text({.text = std::string_view(text.all).substr(text.said, end - text.said),
                  .tokens = {&token, 1},
                  .scores = {}});
    text.said = end;
    if (end < text.all.size()) return;
    if (text.is_endless)
      text.said = 0;
    else
      text.is_finished = true;
  }

  const llm::Tokenizer& tokenizer_;
  std::shared_ptr<Sayings> sayings_;
  std::map<int64_t, Text> texts_;
  int64_t last_id_ = 0;
};

}  // namespace

void Sayings::say(std::vector<std::string> texts) {
  const std::lock_guard lock(mutex_);
  texts_ = std::move(texts);
  prompts_.clear();
  is_endless_ = false;
}

void Sayings::say_endlessly(const std::string& text) {
  say({text});
  const std::lock_guard lock(mutex_);
  is_endless_ = true;
}

bool Sayings::is_endless() const {
  const std::lock_guard lock(mutex_);
  return is_endless_;
}

std::vector<std::string> Sayings::prompts() const {
  const std::lock_guard lock(mutex_);
  return prompts_;
}

llm::GenerationOptions Sayings::options() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

std::string Sayings::answer(std::string prompt, const llm::GenerationOptions& options) {
  const std::lock_guard lock(mutex_);
  prompts_.push_back(std::move(prompt));
  options_ = options;
  return texts_.at(std::min(prompts_.size(), texts_.size()) - 1);
}

server::ServerOptions saying_server(const std::filesystem::path& folder,
                                    const std::string& chat_template,
                                    std::shared_ptr<Sayings> sayings) {
  server::ServerOptions options;
  options.models = {{"saying", write_byte_tokenizer(folder)}};
  options.chat_template = chat_template;
  options.parallel = 4;
  options.load_model = [sayings = std::move(sayings)](const server::ServedModel& served) {
    return std::make_unique<SayingModel>(served, sayings);
  };
  return options;
}

}  // namespace prism::test
