// LanguageModel: loads a model file and generates text in a few lines.
//
//   LanguageModel model = LanguageModel::load("model.gguf");
//   model.generate("Once upon a time", {.max_tokens = 60}, [](std::string_view text) {
//     std::cout << text << std::flush;
//     return true;  // go on
//   });
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prism/llm/adapter.h"
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
  FitOptions fit = {};  // device, context, KV cache type; unset values are chosen
  int64_t slots = 1;    // texts generated at once; 0: as many as have room (fit_shared_cache)
  // false: the KV cache has a full context for each text. true, or slots is 0: the texts share a
  // cache that is sized by the free memory. If it is full, the youngest wait.
  bool shares_cache = false;
  int64_t batch_rows = 512;                // prompt tokens per batch
  std::vector<LoraAdapter> adapters = {};  // applied together
  // A folder that keeps the keys and values of prompts and answers, for later runs with the same
  // model and cache type; empty: none. Several processes may share it.
  std::string prompt_cache = {};
  uint64_t prompt_cache_bytes = uint64_t{8} << 30;  // beyond this the oldest are removed
  // Proposes tokens that the model checks in one batch, where that is faster; texts stay what they
  // are without. "ngram": what followed the last tokens earlier in the same text; otherwise the
  // name of a smaller model with the same vocabulary; empty: off.
  std::string speculate = {};
  LoadCallback progress = {};
};

struct TextRequest {
  std::string prompt;
  GenerationOptions options = {};
  TextCallback on_text = {};
};

struct EmbedOptions {
  bool normalise = true;  // scale each vector to length 1
  // Cut texts that are longer than the context: their last tokens are left out, and what the
  // tokenizer adds at the end stays. false: such a text is an error. Unset: true for models that
  // were trained to embed, as they were trained on cut texts.
  std::optional<bool> truncate = {};
  // Called after each batch; returning false stops with kInvalidArgument.
  std::function<bool(size_t done, size_t all)> progress = {};
};

// How relevant documents are to a query: the larger the score, the more. Scores of different models
// are not comparable.
struct Ranking {
  std::vector<float> scores;  // one for each document, in order
  int64_t tokens = 0;         // of all pairs of the query and a document
};

// Not thread-safe, except for cancel(). If an automatically chosen device fails (lost or out of
// memory), it is abandoned with a warning, the model moves to the remaining devices, and generation
// continues. A device chosen by name throws instead (runtime/fallback.h).
class LanguageModel {
 public:
  // name: a path, or a name known to resolve_model() (model_store.h); empty: the default model.
  // Layers are placed according to the memory free now (fit.h). Throws kNotFound, kCorruptFile,
  // kNotSupported or kOutOfMemory with advice.
  static LanguageModel load(const std::string& name, const LoadOptions& options = {});
  // Places every layer as given; options.fit is ignored.
  static LanguageModel load(const std::string& path, const Placement& placement,
                            const LoadOptions& options);
  ~LanguageModel();
  LanguageModel(LanguageModel&&) noexcept;
  LanguageModel& operator=(LanguageModel&&) noexcept;

  // Continues the prompt without a chat template.
  Generation generate(std::string_view prompt, const GenerationOptions& options = {},
                      const TextCallback& on_text = {});
  Generation generate(std::span<const int32_t> prompt, const GenerationOptions& options = {},
                      const TextCallback& on_text = {});
  // Generates several texts at once, one per slot. Results are in the order of the requests. A text
  // that fails ends with StopReason::failed and its exception in Generation::failure; the others
  // continue.
  std::vector<Generation> generate_all(std::vector<TextRequest> requests);

  // The same, step by step: for callers that add texts while others are generated.
  //   LanguageModel model = LanguageModel::load("model.gguf");
  //   const int64_t id = model.add({.prompt = "Once upon a time"});
  //   while (model.step()) {}
  //   const Generation text = model.take(id);
  // add() throws kInvalidArgument for a prompt that is empty or longer than the context.
  int64_t add(TextRequest request);
  int64_t add(std::vector<int32_t> prompt, const GenerationOptions& options = {},
              const TextCallback& on_text = {});
  // The next token of every text, or a part of the prompts. Returns false when none is left. Does
  // not throw for a text that fails (see generate_all).
  bool step();
  bool is_finished(int64_t id) const;
  Generation take(int64_t id);  // the result of a finished text, once
  // Runs texts of random tokens with these options, as long as goes_on() is true after each step,
  // so that the first real ones need not wait for plans. For GPUs; call this before the first
  // add().
  void warm_up(const GenerationOptions& options, const std::function<bool()>& goes_on);
  // Limits the time of a step with prompts, so that they do not hold back other texts; 0: no limit.
  void set_step_limit(double seconds);

  // Generates the assistant's next message with the chat template. messages: the whole conversation
  // so far. Throws kNotFound if there is no template.
  Generation chat(std::span<const ChatMessage> messages, const GenerationOptions& options = {},
                  const TextCallback& on_text = {}, const ChatOptions& chat_options = {});
  bool has_chat_template() const;
  // Replaces the file's template. Throws kInvalidArgument with the line if it is not valid.
  void set_chat_template(std::string_view text);
  // The prompt that chat() continues.
  std::string chat_prompt(std::span<const ChatMessage> messages,
                          const ChatOptions& chat_options = {}) const;

  // One embedding per text. Texts of similar length are computed together. Throws kInvalidArgument
  // for a text without tokens.
  std::vector<std::vector<float>> embed(std::span<const std::string> texts,
                                        const EmbedOptions& options = {});
  // Scores documents by the classification head of a reranker: its first label. Of documents that
  // are too long for the context the end is left out. Throws kNotSupported if the file has no head.
  Ranking rerank(std::string_view query, std::span<const std::string> documents,
                 const std::function<bool(size_t done, size_t all)>& progress = {});
  bool reranks() const;  // whether the file has a head
  // The log-probability of each token, and the `top` most likely tokens at its position.
  // source: of models with an encoder, what it sees; empty: the text itself. The decoder's text
  // begins with its start token, tokens are scored as they are.
  std::vector<TokenScore> score(std::string_view text, int64_t top = 0,
                                std::string_view source = {});
  std::vector<TokenScore> score(std::span<const int32_t> tokens, int64_t top = 0);

  // Stops generation at the next token. Safe to call from other threads and signal handlers.
  void cancel();
  // Stops one text of add() at its next token. Safe to call from other threads.
  void cancel(int64_t id);

  const Tokenizer& tokenizer() const;
  const GgufFile& file() const;
  Model& model();
  const Model& model() const;
  const Config& config() const;
  int64_t context() const;                  // tokens of one text, at most
  int64_t slots() const;                    // texts generated at once
  int64_t cache_tokens() const;             // tokens of all texts together in the KV cache
  std::vector<ModelMemory> memory() const;  // per device
  double load_seconds() const;
  // The reason for the placement in one sentence; empty if the caller placed the layers.
  const std::string& why() const;
  // The device with the most layers.
  const Device& device() const;
  // How often the model moved to other devices because one failed.
  int64_t moves() const;
  // Call this when others changed the KV cache: nothing in it is reused.
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
