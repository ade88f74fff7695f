// Modules: C++ layers in the hands of Python, and Python's modules as nn::Module.
//
// The classes that users see are Python's (prismrt/nn.py). Their attributes are their members.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "modules.h"
#include "nn/train/step_context.h"
#include "prism/error.h"
#include "prism/nn/init.h"
#include "prism/nn/layers.h"
#include "prism/nn/losses.h"
#include "tensor/op.h"

namespace prism::python {
namespace {

using nn::Members;

// Gives an attribute to the visitor: a tensor, a module, or a list, tuple or dictionary of these.
void visit_attribute(const std::string& name, nb::handle value, Members& visitor) {
  if (nb::isinstance<Tensor>(value)) {
    visitor.member(name, *nb::inst_ptr<Tensor>(value));
  } else if (nb::isinstance<PythonModule>(value)) {
    if (!nb::inst_ready(value))
      throw nb::type_error(
          ("Module: \"" + name + "\" is not initialised; call super().__init__() in its __init__")
              .c_str());
    visitor.member(name, static_cast<nn::Module&>(*nb::inst_ptr<PythonModule>(value)));
  } else if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    size_t i = 0;
    for (nb::handle each : value) visit_attribute(name + "." + std::to_string(i++), each, visitor);
  } else if (nb::isinstance<nb::dict>(value)) {
    for (const auto& [key, each] : nb::borrow<nb::dict>(value))
      if (nb::isinstance<nb::str>(key))
        visit_attribute(name + "." + nb::cast<std::string>(key), each, visitor);
  }
}

// Finds members of a C++ layer by name.
class Find : public Members {
 public:
  explicit Find(std::string name) : name_(std::move(name)) {}
  using Members::member;
  void member(const std::string& name, Tensor& found) override {
    if (name == name_) tensor = &found;
  }
  void member(const std::string& name, nn::Module& found) override {
    if (name == name_) part = dynamic_cast<nn::Layer*>(&found);
  }
  Tensor* tensor = nullptr;
  nn::Layer* part = nullptr;

 private:
  std::string name_;
};

// A C++ layer. Its parts share its lifetime.
struct LayerHandle {
  std::shared_ptr<nn::Layer> layer;
};

Find find(const std::shared_ptr<nn::Layer>& layer, const std::string& name) {
  Find found(name);
  if (layer) layer->visit(found);
  return found;
}

Tensor& tensor_named(PythonModule& self, const std::string& name) {
  Tensor* const found = find(self.layer(), name).tensor;
  if (!found) throw nb::attribute_error(("the layer has no tensor " + name).c_str());
  return *found;
}

nb::object get_tensor(PythonModule& self, const std::string& name) {
  const Tensor& found = tensor_named(self, name);
  return found ? nb::cast(found) : nb::none();
}

// Weights may be shared, so the tensor itself takes the place of the other.
void set_tensor(PythonModule& self, const std::string& name, const Tensor& value) {
  Tensor& found = tensor_named(self, name);
  if (found && !(found.shape() == value.shape()))
    throw nb::value_error(
        (name + " has shape " + found.shape().text() + ", not " + value.shape().text()).c_str());
  found = value;
}

LayerHandle get_part(PythonModule& self, const std::string& name) {
  nn::Layer* const part = find(self.layer(), name).part;
  if (!part) throw nb::attribute_error(("the layer has no part " + name).c_str());
  return {std::shared_ptr<nn::Layer>(self.layer(), part)};
}

template <class L, class... Arguments>
LayerHandle made(const Arguments&... arguments) {
  return {std::make_shared<L>(arguments...)};
}

using Two = std::pair<int64_t, int64_t>;

void bind_makers(nb::module_& m) {
  m.def(
      "_linear",
      [](int64_t in, int64_t out, bool bias, nb::handle device) {
        return made<nn::Linear>(in, out, bias, device_argument(device));
      },
      nb::arg("in_features"), nb::arg("out_features"), nb::arg("bias"), nb::arg("device").none());
  m.def(
      "_embedding",
      [](int64_t count, int64_t width, nb::handle device) {
        return made<nn::Embedding>(count, width, device_argument(device));
      },
      nb::arg("num_embeddings"), nb::arg("embedding_dim"), nb::arg("device").none());
  m.def(
      "_conv2d",
      [](int64_t in, int64_t out, int64_t kernel, Two stride, Two padding, Two dilation,
         int64_t groups, bool bias, nb::handle device) {
        const Conv2dOptions options{stride.first,   stride.second,   padding.first, padding.second,
                                    dilation.first, dilation.second, groups};
        return made<nn::Conv2d>(in, out, kernel, options, bias, device_argument(device));
      },
      nb::arg("in_channels"), nb::arg("out_channels"), nb::arg("kernel_size"), nb::arg("stride"),
      nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"), nb::arg("bias"),
      nb::arg("device").none());
  m.def(
      "_conv1d",
      [](int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
         int64_t groups, bool bias, nb::handle device) {
        const Conv1dOptions options{stride, padding, dilation, groups};
        return made<nn::Conv1d>(in, out, kernel, options, bias, device_argument(device));
      },
      nb::arg("in_channels"), nb::arg("out_channels"), nb::arg("kernel_size"), nb::arg("stride"),
      nb::arg("padding"), nb::arg("dilation"), nb::arg("groups"), nb::arg("bias"),
      nb::arg("device").none());
  m.def(
      "_layer_norm",
      [](int64_t width, double eps, nb::handle device) {
        return made<nn::LayerNorm>(width, eps, device_argument(device));
      },
      nb::arg("width"), nb::arg("eps"), nb::arg("device").none());
  m.def(
      "_rms_norm",
      [](int64_t width, double eps, nb::handle device) {
        return made<nn::RMSNorm>(width, eps, device_argument(device));
      },
      nb::arg("width"), nb::arg("eps"), nb::arg("device").none());
  m.def(
      "_group_norm",
      [](int64_t groups, int64_t channels, double eps, nb::handle device) {
        return made<nn::GroupNorm>(groups, channels, eps, device_argument(device));
      },
      nb::arg("num_groups"), nb::arg("num_channels"), nb::arg("eps"), nb::arg("device").none());
  m.def(
      "_batch_norm",
      [](int64_t channels, double eps, double momentum, nb::handle device) {
        return made<nn::BatchNorm>(channels, eps, momentum, device_argument(device));
      },
      nb::arg("num_features"), nb::arg("eps"), nb::arg("momentum"), nb::arg("device").none());
  m.def(
      "_dropout_layer", [](double p) { return made<nn::Dropout>(p); }, nb::arg("p"));
  m.def(
      "_self_attention",
      [](int64_t width, int64_t heads, int64_t kv_heads, bool causal, bool bias, double rotary_base,
         bool adjacent, double dropout, nb::handle device) {
        const nn::SelfAttentionOptions options{
            kv_heads,
            causal,
            bias,
            rotary_base,
            adjacent ? RopePairing::adjacent : RopePairing::halves,
            dropout};
        return made<nn::SelfAttention>(width, heads, options, device_argument(device));
      },
      nb::arg("width"), nb::arg("heads"), nb::arg("kv_heads"), nb::arg("causal"), nb::arg("bias"),
      nb::arg("rotary_base"), nb::arg("adjacent"), nb::arg("dropout"), nb::arg("device").none());
}

void bind_initialisers(nb::module_& m) {
  m.def("_init_constant", &nn::init::constant, nb::arg("parameter"), nb::arg("value"));
  m.def("_init_uniform", &nn::init::uniform, nb::arg("parameter"), nb::arg("low"), nb::arg("high"));
  m.def("_init_normal", &nn::init::normal, nb::arg("parameter"), nb::arg("mean"),
        nb::arg("deviation"));
  m.def("_init_xavier_uniform", &nn::init::xavier_uniform, nb::arg("parameter"), nb::arg("gain"));
  m.def("_init_xavier_normal", &nn::init::xavier_normal, nb::arg("parameter"), nb::arg("gain"));
  m.def("_init_kaiming_uniform", &nn::init::kaiming_uniform, nb::arg("parameter"), nb::arg("gain"));
  m.def("_init_kaiming_normal", &nn::init::kaiming_normal, nb::arg("parameter"), nb::arg("gain"));
}

nn::Reduction reduction_of(const std::string& name) {
  if (name == "mean") return nn::Reduction::mean;
  if (name == "sum") return nn::Reduction::sum;
  if (name == "none") return nn::Reduction::none;
  throw nb::value_error(("reduction: '" + name + "'; give mean, sum or none").c_str());
}

void bind_losses(nb::module_& m) {
  m.def("_cross_entropy_loss", [](const Tensor& logits, const Tensor& target, double smoothing,
                                  int32_t ignored, const std::string& reduction) {
    return nn::cross_entropy(logits, target.astype(DType::i32),
                             {smoothing, ignored, reduction_of(reduction)});
  });
  m.def("_chunked_cross_entropy", [](const Tensor& x, nb::handle output, const Tensor& target,
                                     double smoothing, int32_t ignored,
                                     const std::string& reduction, int64_t rows_at_once) {
    const auto scores = [&](const Tensor& rows) { return nb::cast<Tensor>(output(rows)); };
    return nn::chunked_cross_entropy(x, scores, target.astype(DType::i32),
                                     {smoothing, ignored, reduction_of(reduction)}, rows_at_once);
  });
  using Pair = Tensor (*)(const Tensor&, const Tensor&, nn::Reduction);
  const auto pair = [&](const char* name, Pair function) {
    m.def(name, [function](const Tensor& a, const Tensor& b, const std::string& reduction) {
      return function(a, b, reduction_of(reduction));
    });
  };
  pair("_bce_with_logits", &nn::bce_with_logits);
  pair("_mse_loss", &nn::mse_loss);
  pair("_l1_loss", &nn::l1_loss);
  pair("_kl_divergence", &nn::kl_divergence);
  pair("_hinge_loss", &nn::hinge_loss);
  m.def("_huber_loss",
        [](const Tensor& a, const Tensor& b, double delta, const std::string& reduction) {
          return nn::huber_loss(a, b, delta, reduction_of(reduction));
        });
  m.def("_cosine_loss", [](const Tensor& a, const Tensor& b, const Tensor& target, double margin,
                           const std::string& reduction) {
    return nn::cosine_loss(a, b, target, margin, reduction_of(reduction));
  });
}

}  // namespace

void PythonModule::visit(Members& visitor) {
  if (is_visiting_)
    throw nb::value_error("Module: a module contains itself; keep such a link in a weakref");
  struct Leave {
    bool& flag;
    ~Leave() { flag = false; }
  } leave{is_visiting_};
  is_visiting_ = true;
  if (layer_) layer_->visit(visitor);
  const nb::object attributes = nb::getattr(self_, "__dict__", nb::none());
  if (attributes.is_none()) return;
  for (const auto& [name, value] : nb::borrow<nb::dict>(attributes))
    visit_attribute(nb::cast<std::string>(name), value, visitor);
}

std::string PythonModule::text() const {
  return layer_ ? layer_->text() : nb::cast<std::string>(self_.type().attr("__name__"));
}

Tensor PythonModule::forward(const Tensor& x) {
  if (!layer_) throw Error(ErrorCode::kInvalidArgument, "Module: forward() is not defined");
  if (layer_->is_training() != is_training()) layer_->train(is_training());
  return layer_->forward(x);
}

void bind_modules(nb::module_& m) {
  nb::class_<LayerHandle>(m, "_Layer");
  nb::class_<PythonModule>(m, "_Module", nb::is_weak_referenceable())
      .def(
          "__init__",
          [](nb::pointer_and_handle<PythonModule> self, nb::handle layer) {
            new (self.p) PythonModule(
                self.h, layer.is_none() ? nullptr : nb::cast<LayerHandle&>(layer).layer);
          },
          nb::arg("layer") = nb::none(),
          nb::sig("def __init__(self, layer: _Layer | None = None) -> None"))
      .def("_forward", &PythonModule::forward, nb::arg("x"))
      .def(
          "_observe",
          [](const PythonModule& self, nb::handle result) {
            const nn::StepContext* const context = nn::step_context();
            if (context && context->observe && nb::isinstance<Tensor>(result))
              context->observe(self, *nb::inst_ptr<Tensor>(result));
          },
          nb::arg("result").none())
      .def("_tensor", &get_tensor, nb::arg("name"),
           nb::sig("def _tensor(self, name: str) -> Tensor | None"))
      .def("_set_tensor", &set_tensor, nb::arg("name"), nb::arg("value"))
      .def("_part", &get_part, nb::arg("name"))
      .def(
          "named_parameters", [](PythonModule& self) { return self.named_parameters(); },
          "The tensors that require gradients, with their names: \"hidden.weight\".")
      .def(
          "named_buffers", [](PythonModule& self) { return self.named_buffers(); },
          "The other tensors, with their names.")
      .def(
          "parameters", [](PythonModule& self) { return self.parameters(); },
          "The tensors that require gradients; shared ones once.")
      .def(
          "parameter_count", [](PythonModule& self) { return self.parameter_count(); },
          "The number of elements of all parameters.")
      .def(
          "summary", [](PythonModule& self) { return self.summary(); },
          "The parts with their numbers of parameters, one per line.")
      .def(
          "zero_grad", [](PythonModule& self) { self.zero_grad(); },
          "Forgets the gradients of all parameters.")
      .def(
          "state_dict", [](PythonModule& self) { return self.state_dict(); },
          "Parameters and buffers by name. They show later changes of the model.")
      .def(
          "load_state_dict",
          [](PythonModule& self, const nn::StateDict& state) { self.load_state_dict(state); },
          nb::arg("state"), nb::sig("def load_state_dict(self, state: dict[str, Tensor]) -> None"),
          "Writes values into the tensors. Other names or shapes are an error, and then nothing "
          "changes.")
      .def_prop_ro(
          "training", [](const PythonModule& self) { return self.is_training(); },
          "Whether layers such as Dropout behave as in training.")
      .def(
          "_train", [](PythonModule& self, bool mode) { self.train(mode); }, nb::arg("mode"))
      .def(
          "_to", [](PythonModule& self, nb::handle device) { self.to(device_argument(device)); },
          nb::arg("device"), nb::sig("def _to(self, device: DeviceLike) -> None"))
      .def("_text", &PythonModule::text);
  bind_makers(m);
  bind_initialisers(m);
  bind_losses(m);
}

}  // namespace prism::python
