// Models by name: files of the user's, or fetched once into the cache folder.
//
//   model.gguf                     a path
//   hf:user/repo:file.gguf         a file of a Hugging Face repository
//   https://host/file.gguf         any address
//   smollm2                        the default model, carried by a Python package
// Also the name of a file that was fetched before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "prism/llm/gguf.h"

#pragma GCC visibility push(default)

namespace prism::llm {

inline constexpr const char* kDefaultModel = "smollm2";

struct FetchOptions {
  std::string sha256;  // that the file must have; empty: what the source tells
  std::function<void(const std::string& what, uint64_t done, uint64_t all)> progress;
  std::function<void(const std::string& line)> note;  // sentences on what is being done
};

// The path of the named model's file (of a split one the first part), fetched where it is not here
// yet. An empty name is the default model. Throws kInvalidArgument for a name that cannot be,
// kNotFound for what is not there, and as download() does.
std::string resolve_model(const std::string& name, const FetchOptions& options = {});

// The path where the named model lies, if it is here already; else empty.
std::string find_model(const std::string& name);

// A model's header: of a file that is here, or read by range requests of one that is not.
class ModelHeader {
 public:
  static ModelHeader open(const std::string& name);
  const GgufFile& file() const { return *file_; }
  bool is_local() const { return is_local_; }  // the file is here, with its tensors

 private:
  std::vector<std::shared_ptr<const std::vector<std::byte>>> starts_;  // that file_ points into
  std::shared_ptr<const GgufFile> file_;
  bool is_local_ = false;
};

struct StoredModel {
  std::string name;  // as it was asked for
  std::string path, sha256;
  uint64_t bytes = 0;  // so far
  bool is_whole = true;
};
std::vector<StoredModel> stored_models();  // of the cache folder, by name
// By name, path or file name; also what an interrupted download left. Returns the bytes set free.
// Throws kNotFound, listing what there is; never touches files outside the cache folder.
uint64_t remove_model(const std::string& name);

// The checksum that a fetched file had; empty for files that were not fetched.
std::string recorded_sha256(const std::string& path);

}  // namespace prism::llm

#pragma GCC visibility pop
