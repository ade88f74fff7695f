// In place of engine_model.cpp, searched_files.cpp and the list of architectures, for programs
// without the layers that a language model and a search need.
#include "llm/architectures/architecture.h"
#include "prism/error.h"
#include "server/engine/engine_model.h"
#include "server/searched_files.h"

namespace prism::llm {

void check_architecture(const GgufFile&) {}

}  // namespace prism::llm

namespace prism::server {

std::unique_ptr<EngineModel> load_engine_model(const std::string& path, llm::LoadOptions, int64_t) {
  throw Error(ErrorCode::kNotSupported, "this program cannot load \"" + path + "\"");
}

bool has_room_for(const llm::GgufFile&, const llm::LoadOptions&) { return true; }

struct SearchedFiles::State {};

SearchedFiles::SearchedFiles(const std::string& index, LoadEmbedder) {
  throw Error(ErrorCode::kNotSupported, "this program cannot open \"" + index + "\"");
}

SearchedFiles::~SearchedFiles() = default;

Json SearchedFiles::answer(const JsonView&) { return {}; }

}  // namespace prism::server
