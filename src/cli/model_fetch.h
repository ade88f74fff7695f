// Models by name on the command line; a missing model is fetched with a progress bar.
#pragma once

#include <string>

#include "prism/llm/model_store.h"

namespace prism::cli {

// Shows progress and notes on standard error.
llm::FetchOptions fetch_options();

// Returns the path of the named model (empty: the default model); see llm::resolve_model.
std::string model_path(const std::string& name);

}  // namespace prism::cli
