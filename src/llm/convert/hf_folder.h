// A Hugging Face folder: config.json, the tensors of its .safetensors files, and other JSON files.
// Of models that also see images it has the part for text.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/system/mapped_file.h"
#include "tensor/io/safetensors_header.h"

namespace prism::llm {

class HfFolder {
 public:
  // Maps model.safetensors, or the files that model.safetensors.index.json lists. Throws kNotFound
  // for a folder without them, kCorruptFile naming the file and what is wrong with it.
  static HfFolder open(const std::string& path);
  // Files in memory in place of a folder, without weights. Throws like open().
  static HfFolder of(std::map<std::string, std::string> files);
  // Whether the path is a folder with a config.json.
  static bool is_one(const std::string& path);

  const std::string& path() const { return path_; }
  const Json& config() const { return config_; }
  const std::map<std::string, SafetensorsEntry>& tensors() const { return tensors_; }
  // The parts of a tensor that several files share for tensor parallelism, in order; tensors() has
  // the first. Empty: the tensor is whole.
  std::vector<const SafetensorsEntry*> shards(const std::string& name) const;
  const std::vector<std::string>& weight_files() const { return weight_files_; }  // paths

  // The only element of a tensor, which must be there. Throws kCorruptFile naming it.
  float number(const std::string& tensor) const;

  // The content of a file; nothing if there is none. `file` may contain folders, but no "..".
  std::optional<std::string> text(const std::string& file) const;
  // A JSON object or array. Throws kCorruptFile naming the file.
  std::optional<Json> json(const std::string& file) const;

 private:
  void read_config();
  // module: takes the place of "linear" in names; empty: names stay.
  void add_weights(const std::string& file, const std::string& module = "");
  // The matrices of sentence-transformers behind the pooling: dense_2.weight and dense_3.weight.
  void add_dense_modules();
  void keep_text_tensors();

  std::optional<std::map<std::string, std::string>> files_;  // in memory
  std::string path_;
  Json config_;
  bool has_other_parts_ = false;  // than the one for text
  std::map<std::string, SafetensorsEntry> tensors_;
  std::map<std::string, std::map<int64_t, SafetensorsEntry>> shards_;  // by rank
  int64_t ranks_ = 0;  // that have files of their own
  std::vector<std::string> weight_files_;
  std::vector<MappedFile> maps_;  // tensors_ points into them
};

}  // namespace prism::llm
