// Tiny models with random weights, each as a GGUF file and as a float64 reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "llm/gguf/gguf_writer.h"
#include "prism/llm/gguf.h"
#include "support/models/reference_model.h"
#include "support/run_program.h"

namespace prism::test {

// The seed of all random numbers in a run; failures print it.
uint32_t model_seed();

// A model as file and as reference, with the same random weights.
class TinyModel {
 public:
  ReferenceModel reference;
  llm::GgufWriter file;
  ElementType expert_type = DType::f32;

  explicit TinyModel(const std::string& architecture, uint32_t seed = model_seed());

  template <class T>
  void set(const std::string& key, const T& value) {
    file.set(architecture_ + "." + key, value);
  }
  void use_frequencies(double base);
  void use_experts(int experts, int used);  // in place of the feed-forward layers
  void use_letters();                       // adds a tokenizer: letters, digits and a space

  struct Features {
    bool bias = false, head_norms = false, joined = false, output = true, sinks = false;
  };
  // Adds metadata and weights that match the reference's hyperparameters.
  void finish(const Features& features);
  // The values of a tensor of floats, to be changed before open().
  std::span<float> values(const std::string& name);
  llm::GgufFile open();

 private:
  void tensor(const std::string& name, const Shape& shape, double size, double around = 0);
  void norm(const std::string& name, int length) { tensor(name, {length}, 0.2, 1); }
  void linear(const std::string& name, int out, int in, bool bias);
  void layer(const std::string& prefix, const Features& features);
  void feed_forward(const std::string& prefix, const Features& features);

  std::string architecture_;
  std::mt19937 random_;
  std::list<std::vector<std::byte>> kept_;
  std::map<std::string, std::vector<std::byte>*> by_name_;
  TemporaryFolder folder_;
};

std::vector<int32_t> some_tokens(int count, int vocabulary);

// Expects each value within `bound` times the root mean square of the wanted values.
void expect_close(std::span<const float> values, std::span<const double> wanted, double bound,
                  const std::string& what);

}  // namespace prism::test
