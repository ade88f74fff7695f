// The meaning of a model's name: the source of its file, and its path in the cache folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace prism::llm {

enum class ModelSource { path, url, package };

struct ModelName {
  ModelSource source = ModelSource::path;
  std::string text;                  // as given; "smollm2" for an empty name
  std::string url;                   // also set for hf: names
  std::filesystem::path file;        // the user's file, or the one in the cache folder
  std::vector<std::string> headers;  // for requests to its server
};

// Throws kInvalidArgument for a malformed name.
ModelName parse_model_name(const std::string& text);

std::filesystem::path models_folder();  // in the cache folder

// Returns the names of all parts of a split file ("m-00001-of-00003.gguf"), or just the name.
std::vector<std::string> part_names(const std::string& name);

}  // namespace prism::llm
