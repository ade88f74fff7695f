// The default embedding model as a PassageEmbedder.
#pragma once

#include <memory>

#include "prism/file_search.h"

namespace prism::search {

// Loads the model, and fetches it first if it is not there. Throws what loading throws.
std::shared_ptr<const PassageEmbedder> load_default_embedder();

// The same, but a failure is a warning, and the result is null: words need no model.
std::shared_ptr<const PassageEmbedder> default_embedder_if_possible();

}  // namespace prism::search
