// A model as the engine runs it: a language model, or a test's double.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "prism/llm/generation.h"
#include "prism/llm/language_model.h"

namespace prism::server {

// Used by the engine's thread only. As in LanguageModel, a text that fails ends with
// StopReason::failed.
class EngineModel {
 public:
  virtual ~EngineModel() = default;
  virtual int64_t add(std::vector<int32_t> prompt, const llm::GenerationOptions& options,
                      const llm::TextCallback& on_text) = 0;
  // Makes the plans that the first texts with such options would wait for, if the model is on GPUs.
  // Ends after some time, and soon after goes_on() is false.
  virtual void warm_up(const llm::GenerationOptions& /*options*/,
                       const std::function<bool()>& /*goes_on*/) {}
  virtual bool step() = 0;
  virtual bool is_finished(int64_t id) const = 0;
  virtual llm::Generation take(int64_t id) = 0;
  virtual void cancel(int64_t id) = 0;
  // The vectors of the first texts: at least one, and as many as a step has time for.
  virtual std::vector<std::vector<float>> embed(std::span<const std::string> texts,
                                                const llm::EmbedOptions& options) = 0;
  // The ranking of the first documents, as many as for embed(). Throws kNotSupported unless a model
  // has a head for it.
  virtual llm::Ranking rerank(std::string_view query, std::span<const std::string> documents);
  // The log-probability of each token given those before it, with `top` alternatives. Throws
  // kNotSupported unless a model has it.
  virtual std::vector<llm::TokenScore> score(std::span<const int32_t> tokens, int64_t top);

  // What a device holds of the model.
  struct Share {
    std::string device, device_name;
    int64_t layers = 0;
    uint64_t weight_bytes = 0, cache_bytes = 0, work_bytes = 0;
  };
  struct Facts {
    int64_t context = 0;       // tokens of one text
    int64_t parallel = 1;      // texts at once
    int64_t cache_tokens = 0;  // of all texts together
    std::string device, device_name, why;
    int64_t layers = 0;
    std::vector<Share> placement;
    uint64_t memory_bytes = 0, cache_bytes = 0;
    double load_seconds = 0;
  };
  virtual Facts facts() const = 0;
  // How often the model moved to other devices, with which its facts change.
  virtual int64_t moves() const { return 0; }
};

std::unique_ptr<EngineModel> engine_model(llm::LanguageModel model);
// Loads a language model for so many texts at once, which share its cache; 0: what memory allows.
// Throws what LanguageModel::load throws.
std::unique_ptr<EngineModel> load_engine_model(const std::string& path, llm::LoadOptions options,
                                               int64_t parallel);
// Whether the fastest device has room for a model and a usual context. If it has not, another one
// takes parts of the model, or the context is shorter.
bool has_room_for(const llm::GgufFile& file, const llm::LoadOptions& options);

}  // namespace prism::server
