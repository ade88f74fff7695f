// Optimisers, schedules, clipping and moving averages. The classes that users see are Python's
// (prismrt/optim.py).
#include <map>

#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "prism/nn/optimizer.h"

namespace prism::python {
namespace {

using nn::Optimizer;
using Settings = std::map<std::string, double>;
using Groups = std::vector<std::pair<std::vector<Tensor>, Settings>>;

// Takes settings by name. prismrt/optim.py gives all of them.
class Reader {
 public:
  explicit Reader(const Settings& given) : given_(given) {}
  double operator()(const char* name) const {
    const auto found = given_.find(name);
    if (found == given_.end()) throw nb::type_error(("optimizer: no " + std::string(name)).c_str());
    return found->second;
  }

 private:
  const Settings& given_;
};

template <class O, class Read>
std::unique_ptr<Optimizer> made(const Groups& given, const Read& read) {
  using One = decltype(read(Reader({})));
  std::vector<nn::ParameterGroup<One>> groups;
  for (const auto& [parameters, settings] : given)
    groups.push_back({parameters, read(Reader(settings))});
  return std::make_unique<O>(groups);
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const Groups& groups) {
  if (name == "SGD")
    return made<nn::SGD>(groups, [](const Reader& of) {
      return nn::SGDSettings{of("lr"), of("momentum"), of("dampening"), of("weight_decay"),
                             of("nesterov") != 0};
    });
  if (name == "Adam")
    return made<nn::Adam>(groups, [](const Reader& of) {
      return nn::AdamSettings{of("lr"), of("beta1"), of("beta2"), of("eps"), of("weight_decay")};
    });
  if (name == "AdamW")
    return made<nn::AdamW>(groups, [](const Reader& of) {
      return nn::AdamWSettings{of("lr"), of("beta1"), of("beta2"), of("eps"), of("weight_decay")};
    });
  if (name == "RMSprop")
    return made<nn::RMSprop>(groups, [](const Reader& of) {
      return nn::RMSpropSettings{of("lr"), of("alpha"), of("eps"), of("weight_decay"),
                                 of("momentum")};
    });
  if (name == "Lion")
    return made<nn::Lion>(groups, [](const Reader& of) {
      return nn::LionSettings{of("lr"), of("beta1"), of("beta2"), of("weight_decay")};
    });
  return made<nn::Muon>(groups, [](const Reader& of) {
    return nn::MuonSettings{of("lr"),  of("momentum"),      of("weight_decay"),
                            of("eps"), of("nesterov") != 0, static_cast<int>(of("ns_steps"))};
  });
}

void check_group(const Optimizer& optimizer, size_t group) {
  if (group < optimizer.groups()) return;
  throw nb::index_error(
      ("optimizer: no group " + std::to_string(group) + " of " + std::to_string(optimizer.groups()))
          .c_str());
}

void bind_schedules(nb::module_& m) {
  m.def("_constant_schedule", &nn::constant_schedule);
  m.def("_linear_schedule", &nn::linear_schedule);
  m.def("_cosine_schedule", &nn::cosine_schedule);
  m.def("_step_schedule", &nn::step_schedule);
  m.def("_warm_up", &nn::warm_up);
  m.def("_one_cycle_schedule", &nn::one_cycle_schedule);
}

}  // namespace

void bind_optimizers(nb::module_& m) {
  nb::class_<Optimizer>(m, "_Optimizer")
      .def(nb::new_(&make_optimizer))
      .def("step",
           [](Optimizer& self) {
             self.step();
             deliver_warnings();
           })
      .def("zero_grad", &Optimizer::zero_grad)
      .def("set_schedule", &Optimizer::set_schedule)
      .def("lr",
           [](const Optimizer& self, size_t group) {
             check_group(self, group);
             return self.lr(group);
           })
      .def("set_lr",
           [](Optimizer& self, size_t group, double lr) {
             check_group(self, group);
             self.set_lr(group, lr);
           })
      .def_prop_ro("steps", &Optimizer::steps)
      .def_prop_ro("groups", &Optimizer::groups)
      .def_prop_ro("parameters", &Optimizer::parameters)
      .def("state_dict", &Optimizer::state_dict)
      .def("load_state_dict", &Optimizer::load_state_dict);
  nb::class_<nn::MovingAverage>(m, "_MovingAverage")
      .def("__init__", [](nn::MovingAverage* self, const std::vector<Tensor>& parameters,
                          double decay) { new (self) nn::MovingAverage(parameters, decay); })
      .def("update", &nn::MovingAverage::update)
      .def("swap", &nn::MovingAverage::swap)
      .def_prop_ro("averages", &nn::MovingAverage::averages);
  m.def("_clip_grad_norm", [](const std::vector<Tensor>& parameters, double most) {
    return nn::clip_grad_norm(parameters, most);
  });
  m.def("_clip_grad_value", [](const std::vector<Tensor>& parameters, double most) {
    nn::clip_grad_value(parameters, most);
  });
  bind_schedules(m);
}

}  // namespace prism::python
