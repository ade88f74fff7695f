// Reads texts line by line, and loads models for many texts.
#include "cli/encoder_model.h"

#include <sstream>

#include "cli/input.h"
#include "cli/model_fetch.h"
#include "cli/terminal.h"
#include "llm/generate/embedding_load.h"
#include "prism/llm/model_store.h"

namespace prism::cli {

std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream stream(read_file_or_input(path));
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

llm::LanguageModel open_encoder(ModelArguments arguments) {
  arguments.choice.model = llm::resolve_model(
      arguments.choice.model, arguments.quiet ? llm::FetchOptions{} : fetch_options());
  end_progress();
  llm::LoadOptions load;
  load.batch_rows = arguments.batch;
  if (arguments.choice.context > 0) load.fit.context = arguments.choice.context;
  llm::set_embedding_load(llm::GgufFile::open(arguments.choice.model), load);
  arguments.batch = load.batch_rows;
  arguments.choice.context = load.fit.context.value_or(0);
  return open_model(arguments, load.slots);
}

}  // namespace prism::cli
