// Embedder: turns many texts into vectors whose dot products say how alike the texts are.
//
//   llm::Embedder embedder = llm::Embedder::open();
//   const std::vector<std::string> texts = {"a cat", "a dog"};
//   const std::vector<float> rows = embedder.embed(texts);   // [texts, dimension()], length 1 each
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "prism/device.h"
#include "prism/llm/model_store.h"

#pragma GCC visibility push(default)

namespace prism::llm {

class LanguageModel;

struct EmbedderOptions {
  std::string model = {};       // a path, or a name as for resolve_model(); empty: kDefaultEmbedder
  std::string device = "auto";  // as for Device::named
  FetchOptions fetch = {};      // for a model that is not on this machine yet
};

// Not thread-safe.
class Embedder {
 public:
  // Returning false stops embed() with kInvalidArgument.
  using Progress = std::function<bool(size_t done, size_t all)>;

  // Throws as LanguageModel::load and resolve_model.
  static Embedder open(const EmbedderOptions& options = {});
  ~Embedder();
  Embedder(Embedder&&) noexcept;
  Embedder& operator=(Embedder&&) noexcept;

  // One row of dimension() numbers for each text, in order, scaled to length 1. Texts of similar
  // length are computed together, so give many at once. Of a text with more than max_tokens()
  // tokens only the first are used. A text without tokens throws kInvalidArgument.
  std::vector<float> embed(std::span<const std::string> texts, const Progress& progress = {});

  int64_t dimension() const;
  int64_t max_tokens() const;
  int64_t tokens(const std::string& text) const;  // that the text has before it is cut
  const std::string& title() const;               // for people: "all-MiniLM-L6-v2"
  // Identifies the weights: rows of models with different checksums are not comparable.
  const std::string& checksum() const;
  const Device& device() const;

 private:
  struct State;
  explicit Embedder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace prism::llm

#pragma GCC visibility pop
