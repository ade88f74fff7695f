// A model by name on the command line, fetched with a progress bar where it is not here yet.
#pragma once

#include <string>

#include "prism/llm/model_store.h"

namespace prism::cli {

// Progress and notes on standard error.
llm::FetchOptions fetch_options();

// The path of the named model (empty: the default one); see llm::resolve_model.
std::string model_path(const std::string& name);

}  // namespace prism::cli
