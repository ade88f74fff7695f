// In place of engine_model.cpp, for programs without the layers that a language model needs.
#include "prism/error.h"
#include "server/engine/engine_model.h"

namespace prism::server {

std::unique_ptr<EngineModel> load_engine_model(const std::string& path, llm::LoadOptions, int64_t) {
  throw Error(ErrorCode::kNotSupported, "this program cannot load \"" + path + "\"");
}

bool has_room_for(const llm::GgufFile&, const llm::LoadOptions&) { return true; }

}  // namespace prism::server
