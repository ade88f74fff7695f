// A server for tests of the chat page: its models answer as a script says. Run by
// tests/server/page.
//
// usage: page_server MODEL SCRIPT.json   (MODEL: its tokenizer is used; prints the address)
//
// The script has the chat template, options of the server, and answers by phrase: the phrase that
// comes last in the prompt decides.
//   {"chat_template": "...", "api_keys": [], "parallel": 4, "max_queue": 256,
//    "answers": {"phrase": {"text": "...", "repeats": false, "fails": "", "reading_steps": 0}}}
// In a text, {prompt}, {options} and {number} stand for what the model got and how many answers it
// has given.
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "prism/error.h"
#include "server/server.h"

namespace prism::server {
namespace {

using nlohmann::json;

constexpr size_t kPieceBytes = 6;
constexpr auto kStepTime = std::chrono::milliseconds(1);  // streams are seen to grow

void replace(std::string& text, const std::string& name, const std::string& value) {
  if (const size_t at = text.find(name); at != text.npos) text.replace(at, name.size(), value);
}

// The end of a piece that begins here: whole characters only.
size_t piece_end(const std::string& text, size_t begin) {
  size_t end = std::min(text.size(), begin + kPieceBytes);
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  return end;
}

class PhraseModel : public EngineModel {
 public:
  PhraseModel(const ServedModel& served, const json& answers)
      : tokenizer_(served.tokenizer()), name_(served.name()), answers_(answers) {}

  int64_t add(std::vector<int32_t> prompt, const llm::GenerationOptions& options,
              const llm::TextCallback& on_text) override {
    Text& text = texts_[++last_id_];
    choose_answer(tokenizer_.decode(prompt), options, text);
    text.on_text = on_text;
    text.on_prompt = options.on_prompt;
    text.result.statistics = {.prompt_tokens = static_cast<int64_t>(prompt.size()),
                              .reused_tokens = 2,
                              .prompt_seconds = 0.05,
                              .generation_seconds = 2,
                              .first_token_seconds = 0.25};
    return last_id_;
  }

  bool step() override {
    std::this_thread::sleep_for(kStepTime);
    for (auto& [id, text] : texts_)
      if (!text.is_finished && !reads_prompt(text)) give_piece(text);
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
      finish(found->second, llm::StopReason::cancelled);
  }
  std::vector<std::vector<float>> embed(std::span<const std::string>,
                                        const llm::EmbedOptions&) override {
    return {};
  }

  Facts facts() const override {
    Facts facts;
    facts.context = 4096;
    facts.parallel = 4;
    facts.device = "cpu:0";
    facts.device_name = "Scripted processor of " + name_;
    facts.why = "It is the only device of this test.";
    facts.layers = 24;
    facts.placement = {{.device = "cpu:0",
                        .device_name = facts.device_name,
                        .layers = 24,
                        .weight_bytes = 98'000'000,
                        .cache_bytes = 47'000'000,
                        .work_bytes = 5'000'000}};
    facts.memory_bytes = 150'000'000;
    facts.load_seconds = 0.42;
    return facts;
  }

 private:
  struct Text {
    std::string text, failure;
    bool repeats = false, is_finished = false;
    size_t at = 0;
    int64_t reading_steps = 0, read_steps = 0;
    llm::TextCallback on_text;
    std::function<void(const llm::PromptProgress&)> on_prompt;
    llm::Generation result;
  };

  void choose_answer(const std::string& prompt, const llm::GenerationOptions& options, Text& text) {
    const json* answer = nullptr;
    size_t last = 0;
    for (const auto& [phrase, each] : answers_.items()) {
      const size_t at = prompt.rfind(phrase);
      if (at == prompt.npos || (answer && at < last)) continue;
      answer = &each;
      last = at;
    }
    text.text = answer ? answer->at("text") : "I have no answer to this.";
    text.repeats = answer && answer->value("repeats", false);
    if (answer) text.failure = answer->value("fails", "");
    if (answer) text.reading_steps = answer->value("reading_steps", 0);
    replace(text.text, "{prompt}", prompt);
    replace(text.text, "{number}", fmt::format("{}", last_id_));
    replace(text.text, "{options}",
            fmt::format("temperature={} top_k={} max_tokens={}", options.sampler.temperature,
                        options.sampler.top_k, options.max_tokens));
  }

  // Reads a part of a prompt of 4,000 tokens, as if each step took a hundredth of a second.
  static bool reads_prompt(Text& text) {
    if (text.read_steps == text.reading_steps) return false;
    const int64_t done = ++text.read_steps;
    if (text.on_prompt)
      text.on_prompt({.tokens = 4000,
                      .reused = 0,
                      .read = 4000 * done / text.reading_steps,
                      .seconds = 0.01 * static_cast<double>(done)});
    return true;
  }

  static void give_piece(Text& text) {
    if (text.at >= text.text.size() && text.repeats) text.at = 0;
    if (text.at >= text.text.size()) {
      if (!text.failure.empty())
        text.result.failure = std::make_exception_ptr(Error(ErrorCode::kDeviceLost, text.failure));
      return finish(text,
                    text.failure.empty() ? llm::StopReason::end_token : llm::StopReason::failed);
    }
    const size_t end = piece_end(text.text, text.at);
    const int32_t token = 1;
    ++text.result.statistics.generated_tokens;
    const std::string_view piece = std::string_view(text.text).substr(text.at, end - text.at);
    text.at = end;
    if (!text.on_text({.text = piece, .tokens = {&token, 1}, .scores = {}}))
      finish(text, llm::StopReason::cancelled);
  }

  static void finish(Text& text, llm::StopReason reason) {
    text.result.reason = reason;
    text.is_finished = true;
  }

  const llm::Tokenizer& tokenizer_;
  std::string name_;
  const json& answers_;
  std::map<int64_t, Text> texts_;
  int64_t last_id_ = 0;
};

int serve(const std::string& model, const std::string& script_path) {
  const json script = json::parse(std::ifstream(script_path));
  ServerOptions options;
  options.models = {{"scripted", model}, {"other", model}};
  options.chat_template = script.at("chat_template");
  options.access.api_keys = script.value("api_keys", std::vector<std::string>{});
  options.parallel = script.value("parallel", 4);
  options.max_queue = script.value("max_queue", 256);
  options.http.port = 0;
  options.http.stops_on_signals = true;
  options.http.grace_seconds = 0;
  options.load_model = [&](const ServedModel& served) {
    return std::make_unique<PhraseModel>(served, script.at("answers"));
  };
  Server server(std::move(options));
  std::cout << server.url() << std::endl;
  server.run();
  return 0;
}

}  // namespace
}  // namespace prism::server

int main(int count, char** words) {
  if (count != 3) {
    std::cerr << "usage: page_server MODEL SCRIPT.json\n";
    return 2;
  }
  try {
    return prism::server::serve(words[1], words[2]);
  } catch (const std::exception& error) {
    std::cerr << "page_server: " << error.what() << "\n";
    return 1;
  }
}
