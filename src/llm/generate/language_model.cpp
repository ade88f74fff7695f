// Implements LanguageModel: loading, generation, chat and embeddings over a placed model.
#include "prism/llm/language_model.h"

#include <chrono>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "llm/generate/scheduler.h"
#include "llm/model/placed_model.h"
#include "prism/error.h"
#include "prism/llm/model_store.h"

namespace prism::llm {
namespace {

constexpr const char* kTemplateKey = "tokenizer.chat_template";

}  // namespace

struct LanguageModel::State {
  State(GgufFile from, const LoadOptions& options, const std::optional<Placement>& placement)
      : file(std::move(from)),
        placed(file, options, placement),
        tokenizer(Tokenizer::from(file)),
        scheduler(placed.model(), tokenizer,
                  [this](const DeviceFailure& failure) { return placed.place_anew(failure); }) {}

  // Throws if the model is no longer on any device.
  Scheduler& ready() {
    placed.model();
    return scheduler;
  }
  // Runs work with an empty KV cache, and restarts it if a device fails and the model could move.
  template <class Work>
  auto on_devices(Work&& work) {
    scheduler.forget_cache();
    for (;;) {
      try {
        const FallbackHeld held;
        return work(placed.model());
      } catch (const DeviceFailure& failure) {
        scheduler.leave_devices();
        if (!placed.place_anew(failure)) throw;
      }
    }
  }

  GgufFile file;
  PlacedModel placed;
  Tokenizer tokenizer;
  Scheduler scheduler;
  std::optional<ChatTemplate> chat_template;  // parsed on first use
  double load_seconds = 0;
};

LanguageModel::LanguageModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
LanguageModel::~LanguageModel() = default;
LanguageModel::LanguageModel(LanguageModel&&) noexcept = default;
LanguageModel& LanguageModel::operator=(LanguageModel&&) noexcept = default;

LanguageModel LanguageModel::load(const std::string& name, const LoadOptions& options) {
  return load(GgufFile::open(resolve_model(name)), options, std::nullopt);
}

LanguageModel LanguageModel::load(const std::string& path, const Placement& placement,
                                  const LoadOptions& options) {
  return load(GgufFile::open(path), options, placement);
}

LanguageModel LanguageModel::load(GgufFile file, const LoadOptions& options,
                                  const std::optional<Placement>& placement) {
  const auto start = std::chrono::steady_clock::now();
  auto state = std::make_unique<State>(std::move(file), options, placement);
  state->load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return LanguageModel(std::move(state));
}

Generation LanguageModel::generate(std::string_view prompt, const GenerationOptions& options,
                                   const TextCallback& on_text) {
  return generate(std::span<const int32_t>(tokenizer().encode(prompt)), options, on_text);
}

Generation LanguageModel::generate(std::span<const int32_t> prompt,
                                   const GenerationOptions& options, const TextCallback& on_text) {
  const int64_t id = state_->ready().add({{prompt.begin(), prompt.end()}, options, on_text});
  state_->scheduler.run();
  return state_->scheduler.take(id);
}

std::vector<Generation> LanguageModel::generate_all(std::vector<TextRequest> requests) {
  std::vector<int64_t> ids;
  for (TextRequest& each : requests)
    ids.push_back(state_->ready().add(
        {tokenizer().encode(each.prompt), std::move(each.options), std::move(each.on_text)}));
  state_->scheduler.run();
  std::vector<Generation> results;
  for (const int64_t id : ids) results.push_back(state_->scheduler.take(id));
  return results;
}

bool LanguageModel::has_chat_template() const { return file().find(kTemplateKey) != nullptr; }

std::string LanguageModel::chat_prompt(std::span<const ChatMessage> messages,
                                       const ChatOptions& chat_options) const {
  if (!has_chat_template())
    throw Error(ErrorCode::kNotFound,
                "chat: the model file has no chat template; generate() continues a text as it "
                "stands");
  if (!state_->chat_template) state_->chat_template.emplace(file().string(kTemplateKey));
  ChatOptions options = chat_options;
  const auto text_of = [&](int32_t id) {
    return id < 0 ? std::string() : std::string(tokenizer().text(id));
  };
  if (options.bos_token.empty()) options.bos_token = text_of(tokenizer().bos());
  if (options.eos_token.empty()) options.eos_token = text_of(tokenizer().eos());
  return state_->chat_template->render(messages, options);
}

Generation LanguageModel::chat(std::span<const ChatMessage> messages,
                               const GenerationOptions& options, const TextCallback& on_text,
                               const ChatOptions& chat_options) {
  return generate(chat_prompt(messages, chat_options), options, on_text);
}

std::vector<std::vector<float>> LanguageModel::embed(std::span<const std::string> texts,
                                                     bool normalise) {
  std::vector<std::vector<int32_t>> tokens;
  for (const std::string& text : texts) {
    tokens.push_back(tokenizer().encode(text));
    if (tokens.back().empty())
      throw Error(ErrorCode::kInvalidArgument, "embed: a text has no tokens; is it empty?");
    if (static_cast<int64_t>(tokens.back().size()) > context())
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("embed: a text has {} tokens and the context {}; shorten it, or load "
                              "the model with a larger context",
                              tokens.back().size(), context()));
  }
  std::vector<std::vector<float>> vectors =
      state_->on_devices([&](Model& model) { return model.embed(tokens); });
  if (!normalise) return vectors;
  for (std::vector<float>& vector : vectors) {
    double square = 0;
    for (const float each : vector) square += static_cast<double>(each) * each;
    const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
    for (float& each : vector) each = static_cast<float>(each * scale);
  }
  return vectors;
}

std::vector<TokenScore> LanguageModel::score(std::string_view text, int64_t top) {
  const std::vector<int32_t> tokens = tokenizer().encode(text);
  return state_->on_devices([&](Model& model) { return score_tokens(model, tokens, top); });
}

void LanguageModel::cancel() { state_->scheduler.cancel(); }
const Tokenizer& LanguageModel::tokenizer() const { return state_->tokenizer; }
const GgufFile& LanguageModel::file() const { return state_->file; }
Model& LanguageModel::model() { return state_->placed.model(); }
const Config& LanguageModel::config() const { return state_->placed.model().config(); }
int64_t LanguageModel::context() const { return state_->placed.model().context(); }
std::vector<ModelMemory> LanguageModel::memory() const { return state_->placed.model().memory(); }
double LanguageModel::load_seconds() const { return state_->load_seconds; }
const std::string& LanguageModel::why() const { return state_->placed.why(); }
const Device& LanguageModel::device() const { return state_->placed.device(); }
void LanguageModel::forget_cache() { state_->scheduler.forget_cache(); }

}  // namespace prism::llm
