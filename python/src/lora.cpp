// Training of LoRA adapters with Python's lock released. The function that users see is
// prismrt/lora.py.
#include <exception>
#include <limits>
#include <type_traits>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/system/output_file.h"
#include "bindings.h"
#include "llm/train/lora_training.h"
#include "ops/create/random_keys.h"
#include "prism/error.h"
#include "prism/llm.h"
#include "prism/ops/create.h"

namespace prism::python {
namespace {

using Options = llm::LoraTrainingOptions;

struct TrainedAdapter {
  int64_t parameters = 0, steps = 0, best_step = 0;
  bool stopped_early = false;
  double loss = std::numeric_limits<double>::quiet_NaN();  // of the last step that was read
  std::optional<double> validation_loss;                   // of the best step
};

// Calls a Python function with (step, steps, loss, validation loss or None, line) and looks for
// signals. What it raises, or a signal, stops the training.
class Watch {
 public:
  Watch(nb::handle function, int64_t steps) : function_(function), steps_(steps) {}

  void report(const nn::LoopReport& at) {
    if (function_.is_none() || failure_) return;
    guarded([&] { function_(at.step, steps_, at.loss, at.validation, at.line); });
  }
  bool is_stopped() {
    if (!failure_)
      guarded([] {
        if (PyErr_CheckSignals() != 0) nb::raise_python_error();
      });
    return failure_ != nullptr;
  }
  void raise_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  template <class Work>
  void guarded(Work work) {
    const nb::gil_scoped_acquire lock;
    try {
      work();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  nb::handle function_;
  int64_t steps_;
  std::exception_ptr failure_;
};

// Restores the state of prism.rand() at its end.
struct KeepRandomKeys {
  uint64_t before = random_key_state();
  ~KeepRandomKeys() { seed(before); }
};

// Finds out before hours of training that a file cannot be written. Nothing is left behind.
void check_writable(const std::string& path) {
  if (!path.empty()) OutputFile probe(path);
}

TrainedAdapter train(const std::string& name, const std::string& data, const std::string& output,
                     const Options& options, const std::string& device_name, bool resume,
                     const std::string& log_path, const std::string& svg, nb::handle function) {
  TrainedAdapter result;
  std::optional<Watch> watch;
  {
    const nb::gil_scoped_release release;
    for (const std::string& path : {output, options.run.checkpoint, svg}) check_writable(path);
    const llm::GgufFile file = llm::GgufFile::open(llm::resolve_model(name));
    const Device device = Device::named(device_name);
    const KeepRandomKeys keep;
    seed(options.run.seed);
    llm::LoraTraining training(file, data, options, device);
    llm::check_memory(training.run().estimate_memory().needed, device);
    const nn::LoopSettings settings = training.loop();
    watch.emplace(function, settings.steps);
    nn::TrainingLog log(log_path);
    nn::LoopEvents events;
    if (training.run().has_validation())
      events.validate = [&] { return training.run().validate(); };
    events.interrupted = [&] { return watch->is_stopped(); };
    events.report = [&](const nn::LoopReport& at) {
      result.loss = at.loss;
      watch->report(at);
    };
    events.log = &log;
    nn::TrainingLoop loop(training.run().parts(), settings, events);
    if (resume) loop.resume();
    const nn::LoopEnd end = loop.run();
    if (!svg.empty()) log.write_svg(svg, {"loss", "validation"});
    if (end != nn::LoopEnd::interrupted) {
      loop.use_best();
      training.model().write(output);
    }
    result.parameters = training.model().parameter_count();
    result.steps = loop.steps();
    result.stopped_early = end == nn::LoopEnd::stopped_early;
    if (training.run().has_validation()) {
      result.validation_loss = loop.best_loss();
      result.best_step = loop.best_step();
    } else {
      result.best_step = loop.steps();
    }
  }
  watch->raise_failure();
  deliver_warnings();
  return result;
}

// get(options) is the reference of a field. Numbers are rounded to floats, which the program's
// options are, so that both train with the same bits.
template <class Get>
void field(nb::class_<Options>& type, const char* name, Get get) {
  using Value = std::remove_cvref_t<decltype(get(std::declval<Options&>()))>;
  type.def_prop_rw(
      name, [get](Options& options) -> Value { return get(options); },
      [get](Options& options, const Value& value) {
        if constexpr (std::is_same_v<Value, double>)
          get(options) = static_cast<double>(static_cast<float>(value));
        else
          get(options) = value;
      });
}

void bind_options(nb::module_& m) {
  nb::class_<Options> type(m, "_LoraOptions");
  type.def(nb::init<>());
  field(
      type, "rank", [](Options & o) -> auto& { return o.lora.rank; });
  field(
      type, "alpha", [](Options & o) -> auto& { return o.lora.alpha; });
  field(
      type, "dropout", [](Options & o) -> auto& { return o.lora.dropout; });
  field(
      type, "matrices", [](Options & o) -> auto& { return o.lora.matrices; });
  field(
      type, "recompute", [](Options & o) -> auto& { return o.lora.recompute; });
  field(
      type, "context", [](Options & o) -> auto& { return o.context; });
  field(
      type, "batch", [](Options & o) -> auto& { return o.run.batch; });
  field(
      type, "accumulate", [](Options & o) -> auto& { return o.run.accumulate; });
  field(
      type, "steps", [](Options & o) -> auto& { return o.run.steps; });
  field(
      type, "lr", [](Options & o) -> auto& { return o.run.rate; });
  field(
      type, "warmup", [](Options & o) -> auto& { return o.run.warmup; });
  field(
      type, "weight_decay", [](Options & o) -> auto& { return o.run.weight_decay; });
  field(
      type, "clip", [](Options & o) -> auto& { return o.run.clip; });
  field(
      type, "seed", [](Options & o) -> auto& { return o.run.seed; });
  field(
      type, "detect_anomaly", [](Options & o) -> auto& { return o.run.detect_anomaly; });
  field(
      type, "validation", [](Options & o) -> auto& { return o.run.validation; });
  field(
      type, "validate_every", [](Options & o) -> auto& { return o.run.validate_every; });
  field(
      type, "patience", [](Options & o) -> auto& { return o.run.patience; });
  field(
      type, "save_every", [](Options & o) -> auto& { return o.run.save_every; });
  field(
      type, "checkpoint", [](Options & o) -> auto& { return o.run.checkpoint; });
}

}  // namespace

void bind_lora(nb::module_& m) {
  bind_options(m);
  nb::class_<TrainedAdapter>(m, "_TrainedAdapter")
      .def_ro("parameters", &TrainedAdapter::parameters)
      .def_ro("steps", &TrainedAdapter::steps)
      .def_ro("best_step", &TrainedAdapter::best_step)
      .def_ro("stopped_early", &TrainedAdapter::stopped_early)
      .def_ro("loss", &TrainedAdapter::loss)
      .def_ro("validation_loss", &TrainedAdapter::validation_loss);
  m.def("_train_lora", &train, nb::arg("model"), nb::arg("data"), nb::arg("out"),
        nb::arg("options"), nb::arg("device"), nb::arg("resume"), nb::arg("log"), nb::arg("svg"),
        nb::arg("report").none());
}

}  // namespace prism::python
