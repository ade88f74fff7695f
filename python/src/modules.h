// A module whose members are the attributes of a Python object.
#pragma once

#include <memory>
#include <string>

#include "bindings.h"
#include "prism/nn/module.h"

namespace prism::python {

// It lives inside its Python object, which it may therefore refer to without owning it. With a C++
// layer it also has the members of that layer.
class PythonModule : public nn::Layer {
 public:
  PythonModule(nb::handle self, std::shared_ptr<nn::Layer> layer)
      : self_(self), layer_(std::move(layer)) {}
  void visit(nn::Members& visitor) override;
  std::string text() const override;
  Tensor forward(const Tensor& x) override;  // of the C++ layer
  const std::shared_ptr<nn::Layer>& layer() const { return layer_; }

 private:
  nb::handle self_;
  std::shared_ptr<nn::Layer> layer_;
  bool is_visiting_ = false;
};

}  // namespace prism::python
