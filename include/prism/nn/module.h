// Modules: structs that name their tensors and parts.
//
//   struct Classifier : nn::Module {
//     nn::Linear hidden{784, 512}, output{512, 10};
//     PRISM_MEMBERS(hidden, output)
//     Tensor operator()(const Tensor& x) { return output(relu(hidden(x))); }
//   };
//
// A tensor that requires gradients is a parameter; any other is a buffer. Names are joined by dots:
// "hidden.weight". Copies of a module share its tensors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism::nn {

class Module;

// Receives the members of a module with their names.
class Members {
 public:
  virtual ~Members() = default;
  virtual void member(const std::string& name, Tensor& tensor) = 0;
  virtual void member(const std::string& name, Module& module) = 0;
  template <class T>
  void member(const std::string& name, std::vector<T>& list) {
    for (size_t i = 0; i < list.size(); ++i) member(name + "." + std::to_string(i), list[i]);
  }
  template <class T>
  void member(const std::string& name, std::shared_ptr<T>& part) {
    if (part) member(name, *part);
  }
  // names: separated by commas, as PRISM_MEMBERS writes them.
  template <class... T>
  void all(const char* names, T&... each) {
    (member(next_name(names), each), ...);
  }

 private:
  static std::string next_name(const char*& names);
};

#define PRISM_MEMBERS(...) \
  void visit(::prism::nn::Members& visitor) override { visitor.all(#__VA_ARGS__, __VA_ARGS__); }

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;  // in the order of the members
using StateDict = std::map<std::string, Tensor>;

class Module {
 public:
  virtual ~Module() = default;
  virtual void visit(Members&) {}                  // PRISM_MEMBERS writes it
  virtual std::string text() const { return ""; }  // "Linear(784 -> 512)", for summary()

  NamedTensors named_parameters();
  NamedTensors named_buffers();
  std::vector<Tensor> parameters();
  int64_t parameter_count();
  // Parts with their parameters, one per line.
  std::string summary();

  // Whether layers such as Dropout and BatchNorm behave as in training. Sets all parts.
  void train(bool training = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }

  // Moves all tensors. Make optimisers after it: they keep the tensors they were given.
  void to(const Device& device);
  void zero_grad();

  // Parameters and buffers by name. load_state_dict writes into the memory of the tensors; it
  // throws kInvalidArgument if names or shapes differ, and then changes nothing.
  StateDict state_dict();
  void load_state_dict(const StateDict& state);

 private:
  bool training_ = true;
};

// A module with one input and one output.
class Layer : public Module {
 public:
  Tensor operator()(const Tensor& x);
  virtual Tensor forward(const Tensor& x) = 0;
};

// Layers one after the other, named by their numbers.
class Sequential : public Layer {
 public:
  Sequential() = default;
  template <class... L>
  requires(std::is_base_of_v<Layer, std::decay_t<L>>&&...) explicit Sequential(L&&... layers) {
    (add(std::forward<L>(layers)), ...);
  }
  template <class L>
  void add(L&& layer) {
    layers_.push_back(std::make_shared<std::decay_t<L>>(std::forward<L>(layer)));
  }
  Layer& operator[](size_t i) { return *layers_.at(i); }
  size_t size() const { return layers_.size(); }
  Tensor forward(const Tensor& x) override;
  void visit(Members& visitor) override;

 private:
  std::vector<std::shared_ptr<Layer>> layers_;
};

// A list of modules of one type; PRISM_MEMBERS also accepts a plain std::vector of modules.
template <class T>
using ModuleList = std::vector<T>;

}  // namespace prism::nn

#pragma GCC visibility pop
