// What the commands that embed and rank texts share.
#pragma once

#include <string>
#include <vector>

#include "cli/model_arguments.h"

namespace prism::cli {

// The lines of a file ("-": standard input) that are not empty.
std::vector<std::string> read_lines(const std::string& path);
// Resolves and loads a model so that many texts are computed at once.
llm::LanguageModel open_encoder(ModelArguments arguments);

}  // namespace prism::cli
