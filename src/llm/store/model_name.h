// What a model's name means: where its file comes from, and where it lies in the cache folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace prism::llm {

enum class ModelSource { path, url, package };

struct ModelName {
  ModelSource source = ModelSource::path;
  std::string text;                  // as given; "smollm2" for an empty one
  std::string url;                   // of hf: names too
  std::filesystem::path file;        // of the user's, or in the cache folder
  std::vector<std::string> headers;  // that its server needs
};

// Throws kInvalidArgument for a name that cannot be.
ModelName parse_model_name(const std::string& text);

std::filesystem::path models_folder();  // of the cache folder

// The names of all parts where this is one of a split file ("m-00001-of-00003.gguf"); else itself.
std::vector<std::string> part_names(const std::string& name);

}  // namespace prism::llm
