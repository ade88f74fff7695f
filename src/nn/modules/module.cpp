// Modules: walking the members by name, and what is done to all of them.
#include "prism/nn/module.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/units.h"
#include "nn/train/step_context.h"
#include "prism/error.h"
#include "prism/ops/assign.h"
#include "tensor/op.h"

namespace prism::nn {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

// Walks a module and its parts, depth first.
class Walk : public Members {
 public:
  using OnTensor = std::function<void(const std::string& name, Tensor&)>;
  using OnModule = std::function<void(const std::string& name, Module&, int depth)>;
  Walk(OnTensor on_tensor, OnModule on_module = {})
      : on_tensor_(std::move(on_tensor)), on_module_(std::move(on_module)) {}

  void operator()(Module& root) {
    if (on_module_) on_module_(prefix_, root, depth_);
    root.visit(*this);
  }
  using Members::member;
  void member(const std::string& name, Tensor& tensor) override {
    if (tensor && on_tensor_) on_tensor_(prefix_ + name, tensor);
  }
  void member(const std::string& name, Module& module) override {
    const std::string before = prefix_;
    if (on_module_) on_module_(prefix_ + name, module, depth_ + 1);
    prefix_ += name + ".";
    ++depth_;
    module.visit(*this);
    --depth_;
    prefix_ = before;
  }

 private:
  OnTensor on_tensor_;
  OnModule on_module_;
  std::string prefix_;
  int depth_ = 0;
};

NamedTensors named_tensors(Module& module, bool parameters) {
  NamedTensors result;
  Walk([&](const std::string& name, Tensor& tensor) {
    if (tensor.requires_grad() == parameters) result.emplace_back(name, tensor);
  })(module);
  return result;
}

std::string count_text(int64_t count) { return exact_count_text(static_cast<uint64_t>(count)); }

}  // namespace

std::string Members::next_name(const char*& names) {
  while (*names == ' ' || *names == ',') ++names;
  std::string name;
  while (*names && *names != ',') name += *names++;
  while (!name.empty() && (name.back() == ' ' || name.back() == '_')) name.pop_back();
  return name;
}

NamedTensors Module::named_parameters() { return named_tensors(*this, true); }
NamedTensors Module::named_buffers() { return named_tensors(*this, false); }

std::vector<Tensor> Module::parameters() {
  std::vector<Tensor> result;
  for (const auto& named : named_parameters()) {
    // Shared weights are listed once.
    const bool known = std::ranges::any_of(
        result, [&](const Tensor& each) { return each.node() == named.second.node(); });
    if (!known) result.push_back(named.second);
  }
  return result;
}

int64_t Module::parameter_count() {
  int64_t count = 0;
  for (const Tensor& each : parameters()) count += each.size();
  return count;
}

std::string Module::summary() {
  std::string text;
  Walk({}, [&](const std::string& name, Module& module, int depth) {
    const std::string kind = module.text();
    const std::string label = depth == 0     ? (kind.empty() ? "model" : kind)
                              : kind.empty() ? name.substr(name.rfind('.') + 1)
                                             : name.substr(name.rfind('.') + 1) + ": " + kind;
    text += fmt::format("{:<48} {:>14}\n", std::string(static_cast<size_t>(depth) * 2, ' ') + label,
                        count_text(module.parameter_count()));
  })(*this);
  int64_t bytes = 0;
  for (const Tensor& each : parameters())
    bytes += each.size() * static_cast<int64_t>(each.dtype().block_bytes());
  return text +
         fmt::format("{} parameters, {} bytes\n", count_text(parameter_count()), count_text(bytes));
}

void Module::train(bool training) {
  Walk({}, [&](const std::string&, Module& module, int) { module.training_ = training; })(*this);
}

void Module::to(const Device& device) {
  std::map<const Node*, Tensor> moved;  // shared weights remain shared
  Walk([&](const std::string&, Tensor& tensor) {
    const bool trained = tensor.requires_grad();
    Tensor& there = moved[tensor.node().get()];
    if (!there) {
      const NoGrad off;
      there = tensor.detach().to(device).eval();
      if (trained) there.set_requires_grad();
    }
    tensor = there;
  })(*this);
}

void Module::zero_grad() {
  for (Tensor& each : parameters()) each.zero_grad();
}

StateDict Module::state_dict() {
  StateDict result;
  Walk([&](const std::string& name, Tensor& tensor) { result[name] = tensor.detach(); })(*this);
  return result;
}

void Module::load_state_dict(const StateDict& state) {
  std::vector<Tensor> changes;
  size_t used = 0;
  const NoGrad off;
  Walk([&](const std::string& name, Tensor& tensor) {
    const auto found = state.find(name);
    if (found == state.end())
      fail(fmt::format("load_state_dict: \"{}\" is missing; was the state saved by another model?",
                       name));
    if (!(found->second.shape() == tensor.shape()))
      fail(
          fmt::format("load_state_dict: \"{}\" has shape {}, the model's has {}; was the state "
                      "saved by another model?",
                      name, found->second.shape().text(), tensor.shape().text()));
    tensor.eval();
    changes.push_back(assign(tensor, found->second.to(tensor.device())));
    ++used;
  })(*this);
  if (used != state.size()) {
    for (const auto& given : state) {
      bool known = false;
      Walk([&](const std::string& own, Tensor&) { known = known || own == given.first; })(*this);
      if (!known)
        fail(
            fmt::format("load_state_dict: the model has no \"{}\"; was the state saved by another "
                        "model?",
                        given.first));
    }
  }
  prism::eval(changes);
}

Tensor Layer::operator()(const Tensor& x) {
  Tensor y = forward(x);
  if (StepContext* context = step_context(); context && context->observe)
    context->observe(*this, y);
  return y;
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& each : layers_) y = (*each)(y);
  return y;
}

void Sequential::visit(Members& visitor) {
  for (size_t i = 0; i < layers_.size(); ++i) visitor.member(std::to_string(i), *layers_[i]);
}

std::string path_of(Module& root, const Module& part) {
  std::string path = "an unnamed layer";
  Walk({}, [&](const std::string& name, Module& module, int depth) {
    if (&module == &part) path = depth == 0 ? "the model itself" : name;
  })(root);
  return path;
}

}  // namespace prism::nn
