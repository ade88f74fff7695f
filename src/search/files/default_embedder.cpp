// Connects the default embedding model to the index of files.
#include "search/files/default_embedder.h"

#include <algorithm>

#include "prism/error.h"
#include "prism/llm/embedder.h"
#include "prism/warning.h"

namespace prism::search {

std::shared_ptr<const PassageEmbedder> load_default_embedder() {
  const auto model = std::make_shared<llm::Embedder>(llm::Embedder::open());
  auto made = std::make_shared<PassageEmbedder>();
  made->name = model->title() + " " + model->checksum();
  made->width = static_cast<uint64_t>(model->dimension());
  made->max_tokens = static_cast<uint64_t>(model->max_tokens());
  const int64_t specials = model->tokens("");
  made->count_tokens = [model, specials](std::string_view text) {
    return static_cast<uint64_t>(std::max<int64_t>(model->tokens(std::string(text)) - specials, 0));
  };
  made->embed = [model, specials](std::span<const std::string> given) {
    std::vector<std::string> texts(given.begin(), given.end());
    for (std::string& text : texts)  // of characters that the model does not know
      if (model->tokens(text) <= specials) text = "?";
    const std::vector<float> rows = model->embed(texts);
    const auto width = static_cast<ptrdiff_t>(model->dimension());
    std::vector<std::vector<float>> vectors;
    for (auto row = rows.begin(); row != rows.end(); row += width)
      vectors.emplace_back(row, row + width);
    return vectors;
  };
  return made;
}

std::shared_ptr<const PassageEmbedder> default_embedder_if_possible() {
  try {
    return load_default_embedder();
  } catch (const Error& error) {
    warn(std::string("only words are compared, because the embedding model cannot be used: ") +
         error.what());
    return nullptr;
  }
}

}  // namespace prism::search
