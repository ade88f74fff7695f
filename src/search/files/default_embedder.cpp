// Connects the default embedding model to the index of files.
#include "search/files/default_embedder.h"

#include "prism/error.h"
#include "prism/warning.h"

namespace prism::search {

std::shared_ptr<const PassageEmbedder> load_default_embedder() {
  throw Error(ErrorCode::kNotSupported, "there is no embedding model yet");
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
