#include "support/server/scripted_model.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "support/models/letters.h"

namespace prism::test {
namespace {

uint32_t hash_of(std::string_view digits) {
  uint32_t hash = 2166136261;
  for (const char c : digits) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  return hash;
}

void append_word(std::string& text, uint32_t hash, int64_t token) {
  fmt::format_to(std::back_inserter(text), "{:x} ",
                 (hash + static_cast<uint32_t>(token) * 2654435761u) >> 12);
}

class ScriptedModel : public server::EngineModel {
 public:
  explicit ScriptedModel(Script script) : script_(std::move(script)) {}

  int64_t add(std::vector<int32_t> prompt, const llm::GenerationOptions& options,
              const llm::TextCallback& on_text) override {
    std::string digits;
    for (const int32_t each : prompt)
      if (each >= kFirstDigit && each < kFirstDigit + 10)
        digits += static_cast<char>('0' + each - kFirstDigit);
    Text& text = texts_[++last_id_];
    text.hash = hash_of(digits);
    text.on_text = on_text;
    text.most = options.max_tokens < 0 ? script_.tokens : options.max_tokens;
    text.result.statistics.prompt_tokens = static_cast<int64_t>(prompt.size());
    return last_id_;
  }

  bool step() override {
    int64_t running = 0, most = script_.parallel;
    if (script_.before_step && !script_.before_step()) most = 0;
    for (auto& [id, text] : texts_) {
      if (text.is_finished) continue;
      if (text.is_cancelled) {
        finish(text, llm::StopReason::cancelled);
      } else if (running < most) {
        ++running;
        give_token(text);
      }
    }
    return !texts_.empty();
  }

  bool is_finished(int64_t id) const override { return texts_.at(id).is_finished; }
  llm::Generation take(int64_t id) override {
    llm::Generation result = std::move(texts_.at(id).result);
    texts_.erase(id);
    return result;
  }
  void cancel(int64_t id) override {
    if (const auto found = texts_.find(id); found != texts_.end())
      found->second.is_cancelled = true;
  }
  std::vector<std::vector<float>> embed(std::span<const std::string> texts,
                                        const llm::EmbedOptions&) override {
    if (script_.before_embedding) script_.before_embedding();
    return std::vector<std::vector<float>>(std::min<size_t>(texts.size(), 1), {1, 0, 0});
  }
  Facts facts() const override {
    Facts facts;
    facts.context = 4096;
    facts.parallel = script_.parallel;
    return facts;
  }

 private:
  struct Text {
    uint32_t hash = 0;
    int64_t most = 0;
    llm::TextCallback on_text;
    llm::Generation result;
    bool is_cancelled = false, is_finished = false;
  };

  static void finish(Text& text, llm::StopReason reason) {
    text.result.reason = reason;
    text.is_finished = true;
  }
  void give_token(Text& text) {
    int64_t& count = text.result.statistics.generated_tokens;
    if (count >= text.most) return finish(text, llm::StopReason::max_tokens);
    word_.clear();
    append_word(word_, text.hash, count);
    const int32_t token = kFirstDigit;
    ++count;
    if (!text.on_text({.text = word_, .tokens = {&token, 1}, .scores = {}}))
      finish(text, llm::StopReason::cancelled);
    else if (count == text.most)
      finish(text, llm::StopReason::max_tokens);
  }

  Script script_;
  std::map<int64_t, Text> texts_;
  int64_t last_id_ = 0;
  std::string word_;
};

}  // namespace

std::unique_ptr<server::EngineModel> scripted_model(const Script& script) {
  return std::make_unique<ScriptedModel>(script);
}

std::string scripted_answer(std::string_view digits, int64_t tokens) {
  std::string text;
  for (int64_t i = 0; i < tokens; ++i) append_word(text, hash_of(digits), i);
  return text;
}

std::string write_tokenizer_file(const std::filesystem::path& folder) {
  llm::GgufWriter file;
  file.set("general.architecture", "llama");
  set_letters(file);
  const std::string path = (folder / "letters.gguf").string();
  file.write(path);
  return path;
}

server::ServerOptions scripted_server(const std::string& tokenizer_file, const Script& script) {
  server::ServerOptions options;
  options.models = {{"scripted", tokenizer_file}};
  options.parallel = script.parallel;
  options.load_model = [script](const server::ServedModel&) { return scripted_model(script); };
  return options;
}

}  // namespace prism::test
