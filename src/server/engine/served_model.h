// A model by the name under which clients know it: its file, tokenizer and chat template, which are
// there before the engine loads its weights.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "prism/llm/chat_template.h"
#include "prism/llm/generation.h"
#include "prism/llm/gguf.h"
#include "prism/llm/tokenizer.h"

namespace prism::server {

// Thread-safe. Files are opened at the first use, which throws what GgufFile::open throws.
class ServedModel {
 public:
  // Returns the options for requests that give none.
  using Defaults = std::function<llm::GenerationOptions(const llm::GgufFile& file)>;
  struct Options {
    std::string chat_template = {};       // replaces that of the file, unless it is empty
    std::string template_variables = {};  // JSON: for chats that do not set them; empty: none
    Defaults defaults = {};  // null: the sampling recommended for the model, with a random seed
  };
  ServedModel(std::string name, std::string path, Options options);
  ServedModel(std::string name, std::string path) : ServedModel(name, path, Options()) {}

  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }
  bool is_readable() const;  // its file is a model
  const llm::GgufFile& file() const { return parts().file; }
  const llm::Tokenizer& tokenizer() const { return parts().tokenizer; }
  bool makes_embeddings() const;  // it was trained for them
  bool reranks() const;           // it has a classification head
  // A checksum that names the model: SHA-256 over the file's header (metadata, and the names,
  // types, shapes and places of tensors) and its size. The weights are not read, because that takes
  // seconds for each gigabyte.
  std::string digest() const;

  const Defaults& defaults() const { return options_.defaults; }

  // The template that is used: the caller's, the file's, or ChatML for a file without one.
  const std::string& chat_template() const { return parts().template_text; }
  // Throws kInvalidArgument if the template fails or refuses the messages.
  std::string chat_prompt(std::span<const llm::ChatMessage> messages,
                          llm::ChatOptions options) const;

 private:
  struct Parts {
    llm::GgufFile file;
    llm::Tokenizer tokenizer;
    std::string template_text;
    std::optional<llm::ChatTemplate> chat_template;  // parsed at its first use
    std::string digest;                              // computed at its first use
  };
  Parts& parts() const;

  std::string name_, path_;
  Options options_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Parts> parts_;
};

}  // namespace prism::server
