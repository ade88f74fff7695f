// Models by name: the user's own files, or models fetched once into the cache folder.
//
//   model.gguf                     a path
//   hf:user/repo:file.gguf         a file of a Hugging Face repository
//   https://host/file.gguf         any address
//   folder                         a Hugging Face folder (config.json, *.safetensors), converted
//                                  into the cache folder once
//   smollm2, minilm                the default model and embedder, from Python packages
// The name of a file that was fetched before is also a name, with or without its extension.
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
inline constexpr const char* kDefaultEmbedder = "minilm";  // all-MiniLM-L6-v2

struct FetchOptions {
  std::string sha256;  // the checksum that the file must have; empty: the one its source sends
  // Called while bytes arrive, possibly from another thread. all is 0 if the size is unknown.
  std::function<void(const std::string& what, uint64_t done, uint64_t all)> progress;
  std::function<void(const std::string& line)> note;  // one sentence for each step
};

// Returns the path of the named model's file (the first part of a split one), and fetches the file
// if it is missing. An empty name means the default model. Throws kInvalidArgument for a malformed
// name, kNotFound for a missing file, and kCorruptFile, kIo or kNotSupported if the download fails.
// A failed fetch leaves nothing behind; an interrupted one leaves the bytes that the next fetch
// continues with.
std::string resolve_model(const std::string& name, const FetchOptions& options = {});

// Returns the path of the named model if it is on this machine, else an empty text.
std::string find_model(const std::string& name);

// Returns whether the text is written as a model's name: hf:..., an address, a path to a .gguf
// file, or the name of the default model or embedder. The model may still be absent.
bool is_model_name(const std::string& text);

// The header of a model. If the file is not on this machine, range requests read its header only.
class ModelHeader {
 public:
  static ModelHeader open(const std::string& name);
  const GgufFile& file() const { return *file_; }
  bool is_local() const { return is_local_; }  // the file is on this machine, with its tensors

 private:
  std::vector<std::shared_ptr<const std::vector<std::byte>>> starts_;  // file_ points into them
  std::shared_ptr<const GgufFile> file_;
  bool is_local_ = false;
};

struct StoredModel {
  std::string name;  // the name it was fetched by
  std::string path, sha256;
  uint64_t bytes = 0;    // on the disk
  bool is_whole = true;  // false: an interrupted download that can be resumed
};
// Returns the models in the cache folder, sorted by name.
std::vector<StoredModel> stored_models();
// Removes a model from the cache folder, or the rest of an interrupted download. Takes every
// name that resolve_model() takes, and paths. Returns the number of bytes freed. Throws kNotFound
// with the list of models; never removes files outside the cache folder.
uint64_t remove_model(const std::string& name);

// Returns the checksum of a fetched file; empty for files that were not fetched.
std::string recorded_sha256(const std::string& path);

}  // namespace prism::llm

#pragma GCC visibility pop
