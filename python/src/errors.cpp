// Exceptions for the codes of prism::Error, and warnings.
#include <array>
#include <mutex>
#include <vector>

#include "bindings.h"
#include "prism/error.h"
#include "prism/warning.h"

namespace prism::python {
namespace {

struct ExceptionClass {
  ErrorCode code;
  const char* name;
  const char* doc;
  PyObject* also;  // a built-in exception that it is, too
};

std::array<PyObject*, 10> classes = {};
PyObject* warning_class = nullptr;

struct PendingWarnings {
  std::mutex mutex;
  std::vector<std::string> texts;
};
PendingWarnings& pending() {
  static auto& warnings = *new PendingWarnings;
  return warnings;
}

nb::object new_class(const char* name, const char* doc, nb::handle bases) {
  const std::string full = std::string("prismrt.") + name;
  PyObject* made = PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr);
  if (!made) nb::raise_python_error();
  return nb::steal(made);
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    PyErr_SetString(classes[static_cast<size_t>(error.code())], error.what());
  }
}

}  // namespace

void bind_errors(nb::module_& m) {
  const nb::object base = new_class("Error", "An error of Prism.", PyExc_RuntimeError);
  m.attr("Error") = base;
  const ExceptionClass all[] = {
      {ErrorCode::kInvalidArgument, "InvalidArgument", "A wrong shape, name, type or option.",
       PyExc_ValueError},
      {ErrorCode::kInvalidKernel, "InvalidKernel", "A kernel violates a rule of the language.",
       PyExc_ValueError},
      {ErrorCode::kNotSupported, "NotSupported", "The device or this build lacks a feature.",
       PyExc_NotImplementedError},
      {ErrorCode::kNotFound, "NotFound", "No such device, kernel, model or file.",
       PyExc_LookupError},
      {ErrorCode::kOutOfMemory, "OutOfMemory", "An allocation failed.", PyExc_MemoryError},
      {ErrorCode::kDeviceLost, "DeviceLost", "The device stopped answering.", nullptr},
      {ErrorCode::kDriver, "DriverError", "A call of a driver failed.", nullptr},
      {ErrorCode::kCompile, "CompileError", "A device's compiler rejected a kernel.", nullptr},
      {ErrorCode::kCorruptFile, "CorruptFile", "The contents of a file are invalid.", nullptr},
      {ErrorCode::kIo, "IoError", "Reading or writing failed.", PyExc_OSError},
  };
  for (const ExceptionClass& each : all) {
    const nb::object bases =
        each.also ? nb::object(nb::make_tuple(base, nb::handle(each.also))) : base;
    const nb::object made = new_class(each.name, each.doc, bases);
    m.attr(each.name) = made;
    classes[static_cast<size_t>(each.code)] = made.inc_ref().ptr();
  }
  nb::object warning =
      new_class("PrismWarning", "A problem that does not stop the work.", PyExc_UserWarning);
  m.attr("PrismWarning") = warning;
  warning_class = warning.inc_ref().ptr();
  nb::register_exception_translator(translate);
  // A warning may come from a thread of the library, while this one waits for it with Python's
  // lock: keep it until the call returns.
  set_warning_handler([](const std::string& text) {
    PendingWarnings& warnings = pending();
    const std::scoped_lock lock(warnings.mutex);
    warnings.texts.push_back(text);
  });
}

void deliver_warnings() {
  std::vector<std::string> texts;
  {
    PendingWarnings& warnings = pending();
    const std::scoped_lock lock(warnings.mutex);
    texts.swap(warnings.texts);
  }
  for (const std::string& text : texts)
    if (PyErr_WarnEx(warning_class, text.c_str(), 2) != 0) nb::raise_python_error();
}

}  // namespace prism::python
