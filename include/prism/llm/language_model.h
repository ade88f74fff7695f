// LanguageModel: text from a model file, in a few lines.
//
//   LanguageModel model = LanguageModel::load("model.gguf");
//   model.generate("Once upon a time", {.max_tokens = 60}, [](std::string_view text) {
//     std::cout << text << std::flush;
//     return true;  // go on
//   });
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prism/llm/chat_template.h"
#include "prism/llm/fit.h"
#include "prism/llm/generation.h"
#include "prism/llm/gguf.h"
#include "prism/llm/load_progress.h"
#include "prism/llm/memory.h"
#include "prism/llm/scoring.h"
#include "prism/llm/tokenizer.h"

#pragma GCC visibility push(default)

namespace prism::llm {

class Model;    // the weights and their plans
struct Config;  // the hyperparameters

struct LoadOptions {
  FitOptions fit = {};       // device, context, type of the cache; what is left out is chosen
  int64_t slots = 1;         // texts that are generated at once, each with that context
  int64_t batch_rows = 512;  // tokens of a prompt that are worked on at once
  LoadCallback progress = {};
};

struct TextRequest {
  std::string prompt;
  GenerationOptions options = {};
  TextCallback on_text = {};
};

// One thread uses it, but for cancel(). Where a device that was chosen automatically fails (lost,
// or out of memory), it is given up with a warning, the model is loaded onto those that are left,
// and texts go on where they were; a device chosen by name raises (runtime/fallback.h).
class LanguageModel {
 public:
  // name: a path, or what resolve_model() knows (model_store.h); empty: the default model. Where
  // the layers go is chosen by what memory is free now (fit.h). Throws kNotFound, kCorruptFile,
  // kNotSupported, kOutOfMemory with what to do about it.
  static LanguageModel load(const std::string& name, const LoadOptions& options = {});
  // With every layer where the placement says; of the options' fit nothing counts.
  static LanguageModel load(const std::string& path, const Placement& placement,
                            const LoadOptions& options);
  ~LanguageModel();
  LanguageModel(LanguageModel&&) noexcept;
  LanguageModel& operator=(LanguageModel&&) noexcept;

  // Continues the text as it stands.
  Generation generate(std::string_view prompt, const GenerationOptions& options = {},
                      const TextCallback& on_text = {});
  Generation generate(std::span<const int32_t> prompt, const GenerationOptions& options = {},
                      const TextCallback& on_text = {});
  // Several at once, as many as there are slots; results in the order of the requests.
  std::vector<Generation> generate_all(std::vector<TextRequest> requests);

  // The model's next message, after the file's chat template: with the messages so far, its own
  // ones among them. Throws kNotFound where the file has no template.
  Generation chat(std::span<const ChatMessage> messages, const GenerationOptions& options = {},
                  const TextCallback& on_text = {}, const ChatOptions& chat_options = {});
  bool has_chat_template() const;
  // The prompt that chat() continues.
  std::string chat_prompt(std::span<const ChatMessage> messages,
                          const ChatOptions& chat_options = {}) const;

  // One vector a text, of length 1 unless asked otherwise.
  std::vector<std::vector<float>> embed(std::span<const std::string> texts, bool normalise = true);
  // Each token with its log-probability and the `top` likeliest at its place.
  std::vector<TokenScore> score(std::string_view text, int64_t top = 0);

  // Ends what is being generated, at the next token. For other threads and signal handlers.
  void cancel();

  const Tokenizer& tokenizer() const;
  const GgufFile& file() const;
  Model& model();
  const Config& config() const;
  int64_t context() const;
  std::vector<ModelMemory> memory() const;  // by device
  double load_seconds() const;
  // Why the layers are where they are: one sentence; empty where the caller placed them.
  const std::string& why() const;
  // The device that most of the layers are on.
  const Device& device() const;
  // The cache was used by others: nothing of it is reused.
  void forget_cache();

 private:
  struct State;
  explicit LanguageModel(std::unique_ptr<State> state);
  static LanguageModel load(GgufFile file, const LoadOptions& options,
                            const std::optional<Placement>& placement);
  std::unique_ptr<State> state_;
};

}  // namespace prism::llm

#pragma GCC visibility pop
