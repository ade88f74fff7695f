// Compiled training steps, data loaders, logs and checkpoints. The classes that users see are
// Python's (prismrt/nn.py, prismrt/data.py).
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "modules.h"
#include "prism/nn/checkpoint.h"
#include "prism/nn/data.h"
#include "prism/nn/log.h"
#include "prism/nn/train_step.h"

namespace prism::python {
namespace {

template <class T>
T* maybe(nb::handle given) {
  return given.is_none() ? nullptr : nb::cast<T*>(given);
}

// A step whose function is given to each call, so that no reference from here keeps it alive.
class Step {
 public:
  Step(const std::vector<nn::Optimizer*>& optimizers, const nn::TrainStepOptions& options)
      : step_(
            optimizers, [this](std::span<const Tensor> batch) { return trace(batch); }, options) {}
  Step(const Step&) = delete;

  // Calls work(batch) while trace() can call the function.
  template <class Work>
  auto with(nb::handle function, const nb::tuple& arguments, Work work) {
    std::vector<Tensor> batch;
    for (nb::handle each : arguments) {
      if (!nb::isinstance<Tensor>(each))
        throw nb::type_error("TrainStep: the batch must be tensors; see prismrt.tensor()");
      batch.push_back(*nb::inst_ptr<Tensor>(each));
    }
    function_ = function;
    struct Leave {
      nb::handle& function;
      ~Leave() { function = {}; }
    } leave{function_};
    return work(std::span<const Tensor>(batch));
  }
  nn::TrainStep& step() { return step_; }

 private:
  Tensor trace(std::span<const Tensor> batch) const {
    nb::list arguments;
    for (const Tensor& each : batch) arguments.append(each);
    const nb::object value = function_(*nb::borrow<nb::args>(nb::tuple(arguments)));
    if (!nb::isinstance<Tensor>(value))
      throw nb::type_error("TrainStep: the function must return the loss as a tensor");
    return nb::cast<Tensor>(value);
  }

  nb::handle function_;
  nn::TrainStep step_;
};

void bind_step(nb::module_& m) {
  nb::class_<Step>(m, "_TrainStep")
      .def(
          "__init__",
          [](Step* self, const std::vector<nn::Optimizer*>& optimizers, double clip_norm,
             double clip_value, int accumulate, uint64_t seed, nb::handle compute,
             nb::handle average, bool detect_anomaly, nb::handle model) {
            nn::TrainStepOptions options;
            options.clip_norm = clip_norm;
            options.clip_value = clip_value;
            options.accumulate = accumulate;
            options.seed = seed;
            const ElementType type = element_type(compute);
            if (type.is_block()) throw nb::value_error("TrainStep: computes in floats only");
            options.compute = type.plain();
            options.average = maybe<nn::MovingAverage>(average);
            options.detect_anomaly = detect_anomaly;
            options.model = maybe<PythonModule>(model);
            new (self) Step(optimizers, options);
          },
          nb::arg("optimizers"), nb::arg("clip_norm"), nb::arg("clip_value"), nb::arg("accumulate"),
          nb::arg("seed"), nb::arg("compute"), nb::arg("average").none(), nb::arg("detect_anomaly"),
          nb::arg("model").none())
      .def("__call__",
           [](Step& self, nb::handle function, const nb::tuple& batch) {
             Tensor loss = self.with(function, batch, [&](std::span<const Tensor> given) {
               return self.step()(given);
             });
             deliver_warnings();
             return loss;
           })
      .def("explain",
           [](Step& self, nb::handle function, const nb::tuple& batch) {
             return self.with(function, batch, [&](std::span<const Tensor> given) {
               return self.step().explain(given);
             });
           })
      .def("estimate_memory",
           [](Step& self, nb::handle function, const nb::tuple& batch) {
             std::map<std::string, uint64_t> needed;
             self.with(function, batch, [&](std::span<const Tensor> given) {
               for (const PlanMemory& each : self.step().estimate_memory(given))
                 needed[each.device.id()] += each.needed();
             });
             return needed;
           })
      .def_prop_ro(
          "gradient_norm",
          [](Step& self) {
            const Tensor& norm = self.step().gradient_norm();
            return norm ? nb::cast(norm) : nb::none();
          },
          nb::sig("def gradient_norm(self) -> Tensor | None"))
      .def_prop_ro("batches", [](Step& self) { return self.step().batches(); })
      .def_prop_ro("plans", [](Step& self) { return self.step().plans(); });
}

// Samples from a function of Python. Loaders of it prepare no batches on other threads, because
// they would wait for Python's lock.
class FunctionSource : public nn::BatchSource {
 public:
  FunctionSource(int64_t size, nb::object function) : size_(size), function_(std::move(function)) {}
  int64_t size() const override { return size_; }
  std::vector<Tensor> batch(std::span<const int64_t> samples) const override {
    nb::list numbers;
    for (const int64_t each : samples) numbers.append(each);
    std::vector<Tensor> tensors;
    for (nb::handle each : nb::object(function_(numbers)))
      tensors.push_back(make_tensor(each, std::nullopt, Device::cpu(), true));
    return tensors;
  }

 private:
  int64_t size_;
  nb::object function_;
};

void bind_data(nb::module_& m) {
  m.def("_load_idx", &nn::load_idx);
  m.def("_load_csv", &nn::load_csv);
  m.def("_load_text", [](const std::string& path) {
    const std::string text = nn::load_text(path);
    return nb::steal<nb::str>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  });
  nb::class_<nn::BatchSource>(m, "_BatchSource").def_prop_ro("size", &nn::BatchSource::size);
  m.def("_tensor_source", &nn::tensor_source);
  m.def("_token_source", &nn::token_source);
  m.def("_token_file_source", &nn::token_file_source);
  m.def("_function_source",
        [](int64_t size, nb::object function) -> std::shared_ptr<nn::BatchSource> {
          return std::make_shared<FunctionSource>(size, std::move(function));
        });
  nb::class_<nn::DataLoader>(m, "_DataLoader")
      .def(
          "__init__",
          [](nn::DataLoader* self, const std::shared_ptr<nn::BatchSource>& source, int64_t batch,
             bool shuffle, bool keep_rest, uint64_t seed, bool prefetch, nb::handle device) {
            const bool is_python = dynamic_cast<const FunctionSource*>(source.get()) != nullptr;
            new (self) nn::DataLoader(source, {batch, shuffle, keep_rest, seed,
                                               prefetch && !is_python, device_argument(device)});
          },
          nb::arg("source"), nb::arg("batch"), nb::arg("shuffle"), nb::arg("keep_rest"),
          nb::arg("seed"), nb::arg("prefetch"), nb::arg("device").none())
      .def("next", &nn::DataLoader::next)
      .def("seek", &nn::DataLoader::seek)
      .def_prop_ro("position", &nn::DataLoader::position)
      .def_prop_ro("epoch", &nn::DataLoader::epoch)
      .def_prop_ro("batches_per_epoch", &nn::DataLoader::batches_per_epoch);
}

void bind_log(nb::module_& m) {
  nb::class_<nn::Progress>(m, "_Progress")
      .def(nb::init<int64_t, int64_t, std::string, int64_t>(), nb::arg("steps"),
           nb::arg("units_per_step"), nb::arg("unit"), nb::arg("done"))
      .def("line", &nn::Progress::line, nb::arg("step"), nb::arg("loss"))
      .def("seconds", &nn::Progress::seconds);
  nb::class_<nn::TrainingLog>(m, "_TrainingLog")
      .def(nb::init<std::string>(), nb::arg("path"))
      .def("add", &nn::TrainingLog::add, nb::arg("step"), nb::arg("values"))
      .def("svg", &nn::TrainingLog::svg, nb::arg("names"))
      .def("write_svg", &nn::TrainingLog::write_svg, nb::arg("path"), nb::arg("names"));
}

using Checkpoint = void (*)(const std::string&, const nn::TrainingRun&);

template <Checkpoint function>
void checkpoint(const std::string& path, nb::handle model,
                const std::vector<nn::Optimizer*>& optimizers, nb::handle step, nb::handle average,
                nb::handle loader) {
  nn::TrainingRun run;
  run.model = maybe<PythonModule>(model);
  run.optimizers = optimizers;
  run.step = step.is_none() ? nullptr : &nb::cast<Step*>(step)->step();
  run.average = maybe<nn::MovingAverage>(average);
  run.loader = maybe<nn::DataLoader>(loader);
  function(path, run);
}

}  // namespace

void bind_training(nb::module_& m) {
  bind_step(m);
  bind_data(m);
  bind_log(m);
  const auto define = [&](const char* name, auto function) {
    m.def(name, function, nb::arg("path"), nb::arg("model").none(), nb::arg("optimizers"),
          nb::arg("step").none(), nb::arg("average").none(), nb::arg("loader").none());
  };
  define("_save_checkpoint", &checkpoint<&nn::save_checkpoint>);
  define("_load_checkpoint", &checkpoint<&nn::load_checkpoint>);
}

}  // namespace prism::python
