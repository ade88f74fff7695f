// Implements Embedder over a LanguageModel whose cache holds whole batches.
#include "prism/llm/embedder.h"

#include <algorithm>

#include "llm/architectures/architecture.h"
#include "llm/generate/embedding_load.h"
#include "llm/generate/known_models.h"
#include "llm/gguf/file_checksum.h"
#include "llm/model/config.h"
#include "prism/llm/language_model.h"

namespace prism::llm {

namespace {

constexpr int64_t kBatchRows = 512;      // tokens computed at once
constexpr int64_t kShortContext = 2048;  // up to this, several texts are in the cache

LoadOptions load_options(const GgufFile& file, const EmbedderOptions& options) {
  LoadOptions load;
  load.fit.device = options.device;
  set_embedding_load(file, load);
  return load;
}

}  // namespace

void set_embedding_load(const GgufFile& file, LoadOptions& load) {
  Config config = read_config(file);
  make_architecture(config.architecture)->configure(file, config);
  // Without a causal mask a text is computed in one batch.
  load.batch_rows =
      std::max({load.batch_rows, kBatchRows, config.is_causal(0) ? 0 : config.context});
  load.slots = 1;
  if (load.fit.context || config.context > kShortContext) return;
  load.fit.context = config.context;
  load.slots = std::max<int64_t>(1, 2 * load.batch_rows / config.context);
}

int64_t whole_text_rows(const GgufFile& file, int64_t rows) {
  constexpr int64_t kMost = 8192;
  Config config = read_config(file);
  make_architecture(config.architecture)->configure(file, config);
  const bool computes_whole_texts = config.encoder_layers > 0 || !config.causal;
  return computes_whole_texts ? std::max(rows, std::min(config.context, kMost)) : rows;
}

struct Embedder::State {
  State(const std::string& path, const EmbedderOptions& options)
      : model(LanguageModel::load(path, load_options(GgufFile::open(path), options))),
        title(model_title(model.file())),
        checksum(file_checksum(model.file())) {}

  LanguageModel model;
  std::string title, checksum;
};

Embedder::Embedder(std::unique_ptr<State> state) : state_(std::move(state)) {}
Embedder::~Embedder() = default;
Embedder::Embedder(Embedder&&) noexcept = default;
Embedder& Embedder::operator=(Embedder&&) noexcept = default;

Embedder Embedder::open(const EmbedderOptions& options) {
  const std::string path =
      resolve_model(options.model.empty() ? kDefaultEmbedder : options.model, options.fetch);
  return Embedder(std::make_unique<State>(path, options));
}

std::vector<float> Embedder::embed(std::span<const std::string> texts, const Progress& progress) {
  std::vector<float> rows;
  rows.reserve(texts.size() * static_cast<size_t>(dimension()));
  for (const std::vector<float>& row :
       state_->model.embed(texts, {.truncate = true, .progress = progress}))
    rows.insert(rows.end(), row.begin(), row.end());
  return rows;
}

int64_t Embedder::dimension() const { return state_->model.config().width; }
int64_t Embedder::max_tokens() const { return state_->model.context(); }
int64_t Embedder::tokens(const std::string& text) const {
  return static_cast<int64_t>(state_->model.tokenizer().encode(text).size());
}
const std::string& Embedder::title() const { return state_->title; }
const std::string& Embedder::checksum() const { return state_->checksum; }
const Device& Embedder::device() const { return state_->model.device(); }

}  // namespace prism::llm
