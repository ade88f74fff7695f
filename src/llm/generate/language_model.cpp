// Implements LanguageModel: loading, generation, chat and embeddings over a placed model.
#include "prism/llm/language_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "llm/architectures/architecture.h"
#include "llm/generate/draft_model_proposer.h"
#include "llm/generate/embedding_load.h"
#include "llm/generate/ngram_proposer.h"
#include "llm/generate/pair_tokens.h"
#include "llm/generate/prompt_too_long.h"
#include "llm/generate/scheduler.h"
#include "llm/model/placed_model.h"
#include "prism/error.h"
#include "prism/llm/model_store.h"
#include "prism/warning.h"

namespace prism::llm {
namespace {

constexpr const char* kTemplateKey = "tokenizer.chat_template";

LoadOptions with_whole_texts(const GgufFile& file, LoadOptions options) {
  options.batch_rows = whole_text_rows(file, options.batch_rows);
  return options;
}

std::unique_ptr<Proposer> proposer_for(const LoadOptions& options, const Tokenizer& tokenizer,
                                       const Model& model) {
  if (options.speculate.empty()) return nullptr;
  if (options.speculate == "ngram") return std::make_unique<NgramProposer>();
  LoadOptions draft = options;
  draft.fit.context = model.context();
  draft.adapters.clear();
  // A full context for each text: none of them may lack blocks. Other texts have no proposals.
  draft.shares_cache = false;
  draft.slots = std::clamp<int64_t>(model.cache().tokens() / model.context(), 1, model.slots());
  return std::make_unique<DraftModelProposer>(GgufFile::open(resolve_model(options.speculate)),
                                              draft, tokenizer);
}

// The tokens of a text, the index-th, at most `most`. A cut text keeps the tokens that the
// tokenizer adds at its end, as the model was trained with them.
std::vector<int32_t> tokens_to_embed(const Tokenizer& tokenizer, std::string_view text,
                                     size_t index, int64_t most, bool truncate) {
  std::vector<int32_t> tokens = tokenizer.encode(text);
  const auto count = static_cast<int64_t>(tokens.size());
  if (count == 0)
    throw Error(ErrorCode::kInvalidArgument, "embed: a text has no tokens; is it empty?");
  if (count <= most) return tokens;
  if (!truncate) throw EmbeddedTextTooLong(index, count, most);
  const int32_t last = tokens.back();
  tokens.resize(static_cast<size_t>(most));
  if (tokenizer.adds_separator() || tokenizer.adds_eos()) tokens.back() = last;
  return tokens;
}

}  // namespace

struct LanguageModel::State {
  State(GgufFile from, const LoadOptions& options, const std::optional<Placement>& placement)
      : file(std::move(from)),
        placed(file, with_whole_texts(file, options), placement),
        tokenizer(Tokenizer::from(file)),
        scheduler(placed.model(), tokenizer,
                  [this](const DeviceFailure& failure) { return placed.place_anew(failure); }) {
    if (!options.prompt_cache.empty() && (config().has_states() || config().has_decoder()))
      warn(fmt::format(
          "the prompt cache is not used: it does not hold {} of {}",
          config().has_states() ? "the state of the recurrent layers" : "what the encoder sees",
          config().architecture));
    else if (!options.prompt_cache.empty())
      scheduler.set_prompt_cache(std::make_unique<PromptCache>(
          options.prompt_cache, options.prompt_cache_bytes, file, placed.model()));
    scheduler.set_proposer(proposer_for(options, tokenizer, placed.model()));
  }

  const Config& config() { return placed.model().config(); }
  // Throws if the model is no longer on any device.
  Scheduler& ready() {
    placed.model();
    return scheduler;
  }
  // Runs work in the side slots of the model. The texts lose nothing, unless the KV cache has too
  // few blocks for both or a device fails. The work is then repeated.
  template <class Work>
  auto beside_texts(Work&& work) {
    for (;;) {
      try {
        const FallbackHeld held;
        return work(placed.model());
      } catch (const DeviceFailure& failure) {
        scheduler.leave_devices();
        if (!placed.place_anew(failure)) throw;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kOutOfMemory || !scheduler.give_way()) throw;
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
  if (file.string_or("general.type", "model") == "adapter")
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: the file is an adapter and not a model; use it with the model it "
                            "was trained on: prism run MODEL --lora {}",
                            file.path(), file.path()));
  check_architecture(file);
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
  const int64_t id = add({prompt.begin(), prompt.end()}, options, on_text);
  while (!is_finished(id)) step();
  Generation result = take(id);
  if (result.failure) std::rethrow_exception(result.failure);
  return result;
}

std::vector<Generation> LanguageModel::generate_all(std::vector<TextRequest> requests) {
  std::vector<Generation> results(requests.size());
  std::vector<std::optional<int64_t>> ids(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    try {
      ids[i] = add(std::move(requests[i]));
    } catch (...) {
      results[i].reason = StopReason::failed;
      results[i].failure = std::current_exception();
    }
  }
  const auto runs = [&](const std::optional<int64_t>& id) { return id && !is_finished(*id); };
  while (std::ranges::any_of(ids, runs)) step();
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i]) results[i] = take(*ids[i]);
  return results;
}

int64_t LanguageModel::add(TextRequest request) {
  return state_->ready().add(
      {tokenizer().encode(request.prompt), std::move(request.options), std::move(request.on_text)});
}

int64_t LanguageModel::add(std::vector<int32_t> prompt, const GenerationOptions& options,
                           const TextCallback& on_text) {
  return state_->ready().add({std::move(prompt), options, on_text});
}

bool LanguageModel::step() { return state_->scheduler.step(); }
bool LanguageModel::is_finished(int64_t id) const { return state_->scheduler.is_finished(id); }
Generation LanguageModel::take(int64_t id) { return state_->scheduler.take(id); }
void LanguageModel::warm_up(const GenerationOptions& options,
                            const std::function<bool()>& goes_on) {
  state_->ready().warm_up(options, goes_on);
}
void LanguageModel::set_step_limit(double seconds) { state_->scheduler.set_step_limit(seconds); }

bool LanguageModel::has_chat_template() const {
  return state_->chat_template || file().find(kTemplateKey) != nullptr;
}
void LanguageModel::set_chat_template(std::string_view text) {
  state_->chat_template.emplace(text);
}

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
                                                     const EmbedOptions& options) {
  const bool truncate =
      options.truncate.value_or(!config().causal || config().pooling != Pooling::none);
  std::vector<std::vector<int32_t>> tokens;
  tokens.reserve(texts.size());
  for (const std::string& text : texts)
    tokens.push_back(tokens_to_embed(tokenizer(), text, tokens.size(), context(), truncate));
  std::vector<std::vector<float>> vectors =
      state_->beside_texts([&](Model& model) { return model.embed(tokens, options.progress); });
  if (!options.normalise) return vectors;
  for (std::vector<float>& vector : vectors) {
    double square = 0;
    for (const float each : vector) square += static_cast<double>(each) * each;
    const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
    for (float& each : vector) each = static_cast<float>(each * scale);
  }
  return vectors;
}

bool LanguageModel::reranks() const { return state_->placed.model().classifies(); }

Ranking LanguageModel::rerank(std::string_view query, std::span<const std::string> documents,
                              const std::function<bool(size_t done, size_t all)>& progress) {
  Ranking result;
  std::vector<std::vector<int32_t>> pairs;
  const PairTokens tokens(file(), tokenizer(), query, context());
  for (const std::string& each : documents) {
    pairs.push_back(tokens.with(each));
    result.tokens += std::ssize(pairs.back());
    if (pairs.back().empty())
      throw Error(ErrorCode::kInvalidArgument,
                  "rerank: the query and a document have no tokens; are both empty?");
  }
  for (const std::vector<float>& labels :
       state_->beside_texts([&](Model& model) { return model.classify(pairs, progress); }))
    result.scores.push_back(labels.front());
  return result;
}

std::vector<TokenScore> LanguageModel::score(std::string_view text, int64_t top,
                                             std::string_view source) {
  std::vector<int32_t> tokens = tokenizer().encode(text), seen;
  if (!source.empty()) seen = tokenizer().encode(source);
  const bool decodes = config().has_decoder();
  if (decodes && seen.empty()) seen = tokens;
  if (decodes) tokens.insert(tokens.begin(), config().start_token);
  std::vector<TokenScore> scores =
      state_->beside_texts([&](Model& model) { return score_tokens(model, tokens, top, seen); });
  if (decodes) scores.erase(scores.begin());  // the start token is not part of the text
  return scores;
}

std::vector<TokenScore> LanguageModel::score(std::span<const int32_t> tokens, int64_t top) {
  return state_->beside_texts([&](Model& model) { return score_tokens(model, tokens, top); });
}

void LanguageModel::cancel() { state_->scheduler.cancel(); }
void LanguageModel::cancel(int64_t id) { state_->scheduler.cancel(id); }
const Tokenizer& LanguageModel::tokenizer() const { return state_->tokenizer; }
const GgufFile& LanguageModel::file() const { return state_->file; }
Model& LanguageModel::model() { return state_->placed.model(); }
const Model& LanguageModel::model() const { return state_->placed.model(); }
const Config& LanguageModel::config() const { return state_->placed.model().config(); }
int64_t LanguageModel::context() const { return state_->placed.model().context(); }
int64_t LanguageModel::slots() const { return state_->placed.model().slots(); }
int64_t LanguageModel::cache_tokens() const { return state_->placed.model().cache().tokens(); }
std::vector<ModelMemory> LanguageModel::memory() const { return state_->placed.model().memory(); }
double LanguageModel::load_seconds() const { return state_->load_seconds; }
const std::string& LanguageModel::why() const { return state_->placed.why(); }
int64_t LanguageModel::moves() const { return state_->placed.moves(); }
const Device& LanguageModel::device() const { return state_->placed.device(); }
void LanguageModel::forget_cache() { state_->scheduler.forget_cache(); }

}  // namespace prism::llm
