// A language model as the engine runs it.
#include "server/engine/engine_model.h"

#include <algorithm>
#include <chrono>
#include <type_traits>

#include "llm/generate/chunk_size.h"
#include "llm/generate/embedding_load.h"
#include "llm/model/model.h"
#include "prism/error.h"
#include "prism/llm/fit.h"

namespace prism::server {
namespace {

// No step may take longer, so that a long prompt does not hold back other texts.
constexpr double kStepSeconds = 0.1;
// A server that starts waits at most so long for its plans. It needs more than some seconds only
// when kernels are compiled for the first time on a machine.
constexpr auto kWarmTime = std::chrono::seconds(30);

class LanguageEngineModel : public EngineModel {
 public:
  explicit LanguageEngineModel(llm::LanguageModel model) : model_(std::move(model)) {
    model_.set_step_limit(kStepSeconds);
    piece_.set_limit(kStepSeconds);
  }
  int64_t add(std::vector<int32_t> prompt, const llm::GenerationOptions& options,
              const llm::TextCallback& on_text) override {
    return model_.add(std::move(prompt), options, on_text);
  }
  void warm_up(const llm::GenerationOptions& options,
               const std::function<bool()>& goes_on) override {
    const llm::Placement& placement = model_.model().placement();
    const auto is_host = [](const Device& device) {
      return device.info().is_cpu || device.info().software;
    };
    if (!model_.model().makes_logits() || is_host(placement.output) ||
        std::ranges::any_of(placement.layers, is_host))
      return;
    const auto end = std::chrono::steady_clock::now() + kWarmTime;
    const auto is_in_time = [&] { return goes_on() && std::chrono::steady_clock::now() < end; };
    llm::GenerationOptions greedy = options;
    greedy.sampler = {.temperature = 0};
    for (const llm::GenerationOptions& each : {options, greedy}) model_.warm_up(each, is_in_time);
  }
  bool step() override { return model_.step(); }
  bool is_finished(int64_t id) const override { return model_.is_finished(id); }
  llm::Generation take(int64_t id) override { return model_.take(id); }
  void cancel(int64_t id) override { model_.cancel(id); }
  std::vector<std::vector<float>> embed(std::span<const std::string> texts,
                                        const llm::EmbedOptions& options) override {
    return in_time(texts, 0,
                   [&](std::span<const std::string> some) { return model_.embed(some, options); });
  }
  llm::Ranking rerank(std::string_view query, std::span<const std::string> documents) override {
    return in_time(documents, query.size(),
                   [&](std::span<const std::string> some) { return model_.rerank(query, some); });
  }
  std::vector<llm::TokenScore> score(std::span<const int32_t> tokens, int64_t top) override {
    return model_.score(tokens, top);
  }
  Facts facts() const override {
    std::vector<std::string> layer_devices;
    for (const Device& each : model_.model().placement().layers) layer_devices.push_back(each.id());
    Facts facts{.context = model_.context(),
                .parallel = model_.slots(),
                .cache_tokens = model_.cache_tokens(),
                .device = model_.device().id(),
                .device_name = model_.device().name(),
                .why = why(),
                .layers = static_cast<int64_t>(layer_devices.size()),
                .placement = {},
                .load_seconds = model_.load_seconds()};
    for (const llm::ModelMemory& each : model_.memory()) {
      facts.memory_bytes += each.weight_bytes + each.cache_bytes + each.work_bytes;
      facts.placement.push_back({each.device.id(), each.device.name(),
                                 std::ranges::count(layer_devices, each.device.id()),
                                 each.weight_bytes, each.cache_bytes, each.work_bytes});
      facts.cache_bytes += each.cache_bytes;
    }
    return facts;
  }
  int64_t moves() const override { return model_.moves(); }

 private:
  // Why Prism chose the device, unless the user did, and why the layers are where they are.
  std::string why() const {
    const Device& device = model_.device();
    if (!device.is_automatic() || device.why().empty()) return model_.why();
    return model_.why().empty() ? device.why() : device.why() + "; " + model_.why();
  }

  // Runs work over the first texts that fit into a step. with_each: bytes that are computed with
  // each of them. A step learns from the one before, in bytes: tokens are not counted yet.
  template <typename Work>
  std::invoke_result_t<Work, std::span<const std::string>> in_time(
      std::span<const std::string> texts, size_t with_each, Work&& work) {
    const auto most = static_cast<size_t>(piece_.rows(INT64_MAX));
    size_t count = 0, bytes = 0;
    for (const std::string& each : texts) {
      if (count > 0 && bytes + each.size() + with_each > most) break;
      bytes += each.size() + with_each;
      ++count;
    }
    const auto begun = std::chrono::steady_clock::now();
    auto result = work(texts.first(count));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    piece_.learn(static_cast<int64_t>(bytes), took.count());
    return result;
  }

  llm::LanguageModel model_;
  llm::ChunkSize piece_;
};

}  // namespace

std::unique_ptr<EngineModel> engine_model(llm::LanguageModel model) {
  return std::make_unique<LanguageEngineModel>(std::move(model));
}

std::unique_ptr<EngineModel> load_engine_model(const std::string& path, llm::LoadOptions options,
                                               int64_t parallel) {
  options.slots = parallel;
  options.batch_rows = llm::whole_text_rows(llm::GgufFile::open(path), options.batch_rows);
  options.shares_cache = true;
  return engine_model(llm::LanguageModel::load(path, options));
}

bool has_room_for(const llm::GgufFile& file, const llm::LoadOptions& options) {
  llm::FitOptions fit = options.fit;
  if (!fit.context) fit.min_context = std::max(fit.min_context, llm::kDefaultContext);
  try {
    fit.batch_rows = llm::whole_text_rows(file, options.batch_rows);
    llm::fit_model(file, llm::fit_devices(fit, true), fit);
  } catch (const Error& error) {
    return error.code() != ErrorCode::kOutOfMemory;  // loading finds other errors
  }
  return true;
}

}  // namespace prism::server
