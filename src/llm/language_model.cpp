#include "llm/language_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "llm/scheduler.h"
#include "runtime/discovery.h"
#include "runtime/self_check.h"

namespace prism::llm {
namespace {

constexpr int64_t kUsualContext = 4096;

Placement placement_for(const GgufFile& file, const LoadOptions& options) {
  // Text is written at the speed of reading the weights.
  const Device device = options.device == "auto" ? choose_device("auto", Work::bandwidth).device
                                                 : Device::named(options.device);
  apply_known_self_check(device);
  const int64_t trained = read_config(file).context;
  const int64_t context = options.context > 0 ? options.context
                          : trained > 0       ? std::min(trained, kUsualContext)
                                              : kUsualContext;
  Placement placement = place_on(file, device, context, options.kv_type);
  const auto layers = static_cast<int64_t>(placement.layers.size());
  if (options.gpu_layers >= 0 && options.gpu_layers < layers) {
    // The last layers are the device's, with the output, so that tokens cross once.
    for (int64_t i = 0; i < layers - options.gpu_layers; ++i)
      placement.layers[static_cast<size_t>(i)] = Device::cpu();
    placement.embedding = Device::cpu();
    if (options.gpu_layers == 0) placement.output = Device::cpu();
  }
  return placement;
}

}  // namespace

struct LanguageModel::State {
  State(GgufFile from, Model loaded)
      : file(std::move(from)),
        tokenizer(Tokenizer::from(file)),
        model(std::move(loaded)),
        scheduler(model, tokenizer) {}

  GgufFile file;
  Tokenizer tokenizer;
  Model model;
  Scheduler scheduler;
  Device device;
  double load_seconds = 0;
};

LanguageModel::LanguageModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
LanguageModel::~LanguageModel() = default;
LanguageModel::LanguageModel(LanguageModel&&) noexcept = default;
LanguageModel& LanguageModel::operator=(LanguageModel&&) noexcept = default;

LanguageModel LanguageModel::load(const std::string& path, const LoadOptions& options) {
  const GgufFile file = GgufFile::open(path);
  return load(path, placement_for(file, options), options);
}

LanguageModel LanguageModel::load(const std::string& path, const Placement& placement,
                                  const LoadOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  GgufFile file = GgufFile::open(path);
  Model model = Model::load(file, {.placement = placement,
                                   .slots = options.slots,
                                   .batch_rows = options.batch_rows,
                                   .progress = options.progress});
  auto state = std::make_unique<State>(std::move(file), std::move(model));
  // Of equals the later: the device that is not the CPU takes the last layers.
  ptrdiff_t most = 0;
  for (const Device& each : placement.layers) {
    const auto count = std::ranges::count(placement.layers, each);
    if (count >= most) most = count, state->device = each;
  }
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
  const int64_t id = state_->scheduler.add({{prompt.begin(), prompt.end()}, options, on_text});
  state_->scheduler.run();
  return state_->scheduler.take(id);
}

std::vector<Generation> LanguageModel::generate_all(std::vector<TextRequest> requests) {
  std::vector<int64_t> ids;
  for (TextRequest& each : requests)
    ids.push_back(state_->scheduler.add(
        {tokenizer().encode(each.prompt), std::move(each.options), std::move(each.on_text)}));
  state_->scheduler.run();
  std::vector<Generation> results;
  for (const int64_t id : ids) results.push_back(state_->scheduler.take(id));
  return results;
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
  forget_cache();
  std::vector<std::vector<float>> vectors = state_->model.embed(tokens);
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
  forget_cache();
  return score_tokens(state_->model, tokenizer().encode(text), top);
}

void LanguageModel::cancel() { state_->scheduler.cancel(); }
const Tokenizer& LanguageModel::tokenizer() const { return state_->tokenizer; }
const GgufFile& LanguageModel::file() const { return state_->file; }
Model& LanguageModel::model() { return state_->model; }
const Config& LanguageModel::config() const { return state_->model.config(); }
int64_t LanguageModel::context() const { return state_->model.context(); }
std::vector<ModelMemory> LanguageModel::memory() const { return state_->model.memory(); }
double LanguageModel::load_seconds() const { return state_->load_seconds; }
const Device& LanguageModel::device() const { return state_->device; }
void LanguageModel::forget_cache() { state_->scheduler.forget_cache(); }

}  // namespace prism::llm
