// Tiny encoders and embedders with random weights, each as a GGUF file and as a float64 reference
// that follows the published definitions: which tensors there are says what a layer does.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "llm/gguf/gguf_writer.h"
#include "prism/llm/gguf.h"
#include "support/run_program.h"

namespace prism::test {

class TinyEncoder {
 public:
  using Row = std::vector<double>;
  using Rows = std::vector<Row>;
  enum class Function { gelu, silu, gelu_tanh };

  explicit TinyEncoder(const std::string& architecture);

  // --- the shape, set before finish()
  int layers = 3, width = 48, heads = 6, kv_heads = 6, dim = 8, wide = 40, vocabulary = 40;
  double epsilon = 1e-5;
  bool rms = false, norm_bias = true, causal = false;
  Function function = Function::gelu;
  bool rotated = false, adjacent = false;
  double base = 10000, local_base = 10000;
  int reach = 0;                        // windowed layers see this far to both sides
  int full_period = 0, full_first = 0;  // layers full_first, full_first + full_period ... see all
  double max_bias = 0;                  // of linear biases
  double embedding_scale = 1;
  int experts = 0, used = 0, expert_period = 0;

  // --- the tensors of all layers, and those outside
  void linear(const std::string& name, int out, int in, bool bias);
  void norm(const std::string& name, int length = 0);
  void tensor(const std::string& name, const Shape& shape, double size, double around = 0);
  static std::string in_layer(int layer, const std::string& name);
  // q, k and v (or one matrix), output, and feed-forward: plain, gated, or both in one matrix.
  enum class Gate { none, apart, joined };
  void blocks(int layer, bool joined, bool bias, Gate gate);
  void set_metadata();

  template <class T>
  void set(const std::string& key, const T& value) {
    if constexpr (std::is_same_v<T, int>)  // as converters write counts
      file.set(architecture_ + "." + key, static_cast<uint32_t>(value));
    else
      file.set(architecture_ + "." + key, value);
  }
  // The embedding, the norms and the ends of bert and its descendants.
  void bert_ends();
  // Words a to z in a WordPiece vocabulary; sets `vocabulary`.
  void use_words();
  std::string write();  // returns the path
  llm::GgufFile open() { return llm::GgufFile::open(write()); }

  // --- the reference
  Rows hidden(std::span<const int32_t> tokens) const;
  Row times(const std::string& name, const Row& x) const;  // with its bias, if there is one
  Row normed(const std::string& name, Row x) const;
  static Row mean(const Rows& rows);
  static double gelu(double x);
  const Row& values(const std::string& name) const { return tensors_.at(name); }

  llm::GgufWriter file;

 private:
  bool has(const std::string& name) const { return tensors_.contains(name); }
  bool is_full(int layer) const {
    return reach == 0 || (full_period > 0 && layer % full_period == full_first);
  }
  double activated(double x) const;
  void rotate(double* head, int position, double base) const;
  Rows attention(int layer, const Rows& x) const;
  Row feed_forward(const std::string& prefix, const Row& x) const;
  Row routed(const std::string& prefix, const Row& x) const;
  Row of_expert(const std::string& name, int expert, const Row& x) const;

  std::string architecture_;
  std::mt19937 random_;
  std::map<std::string, Row> tensors_;
  std::list<std::vector<float>> kept_;
  TemporaryFolder folder_;
};

// A bert with a vocabulary of letters; it ranks texts if it has a head.
class TinyReranker : public TinyEncoder {
 public:
  explicit TinyReranker(bool has_head = true);
  double score(std::span<const int32_t> tokens) const;
};

}  // namespace prism::test
