// Devices: the processors of this machine, how they are found and which one is used.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "prism/error.h"
#include "prism/llm/memory.h"
#include "prism/tensor.h"
#include "runtime/driver.h"
#include "tensor/cpu_pool.h"
#include "tensor/storage.h"

namespace prism::python {
namespace {

BackendPreference preference(const std::string& name) {
  const std::pair<const char*, BackendPreference> all[] = {
      {"auto", BackendPreference::Auto},     {"cuda", BackendPreference::Cuda},
      {"rocm", BackendPreference::Rocm},     {"hip", BackendPreference::Rocm},
      {"metal", BackendPreference::Metal},   {"vulkan", BackendPreference::Vulkan},
      {"sycl", BackendPreference::Sycl},     {"opencl", BackendPreference::OpenCL},
      {"webgpu", BackendPreference::WebGpu}, {"cpu", BackendPreference::Cpu}};
  for (const auto& [each, value] : all)
    if (name == each) return value;
  throw Error(ErrorCode::kInvalidArgument,
              "init_backend: no backend '" + name +
                  "'; use auto, cuda, rocm, metal, vulkan, sycl, opencl, webgpu or cpu");
}

// Every device, in the order of preference. Each is given out as one handle, so that all tensors on
// it can be combined.
std::vector<Device> all_devices() {
  std::vector<Device> devices;
  for (const BackendReport& report : discover_backends())
    for (const auto& driver : report.devices) devices.push_back(Device::named(driver->info().id));
  deliver_warnings();
  return devices;
}

std::string device_repr(const Device& device) {
  return "Device('" + device.id() + "', name='" + device.name() + "')";
}

void bind_device(nb::module_& m) {
  nb::class_<Device>(m, "Device", "A processor reached through one backend.")
      .def(nb::new_([](const std::string& name) { return Device::named(name); }), nb::arg("name"),
           "The device of this name: auto, cpu, gpu, cuda, cuda:0, rocm, mps, vulkan:1 ...")
      .def_static("cpu", &Device::cpu)
      .def_static("gpu", &Device::gpu,
                  "The best GPU. Raises NotFound, a RuntimeError, with the reasons if there is "
                  "none.")
      .def_static("is_gpu_available", &Device::is_gpu_available,
                  "Whether there is a GPU; software devices do not count.")
      .def_prop_ro("id", &Device::id)
      .def_prop_ro("name", &Device::name)
      .def_prop_ro("backend", &Device::backend)
      .def_prop_ro("why", &Device::why, "Why this device was chosen.")
      .def_prop_ro("vendor", [](const Device& d) { return d.info().vendor; })
      .def_prop_ro("driver", [](const Device& d) { return d.info().driver; })
      .def_prop_ro(
          "card", [](const Device& d) { return d.info().card; },
          "The same for one card in all backends.")
      .def_prop_ro("is_cpu", [](const Device& d) { return d.info().is_cpu; })
      .def_prop_ro(
          "is_software", [](const Device& d) { return d.info().software; },
          "Whether it runs on the cores of the host.")
      .def_prop_ro(
          "is_unified", [](const Device& d) { return d.info().unified; },
          "Whether it shares its memory with the host.")
      .def_prop_ro("total_bytes", [](const Device& d) { return d.info().total_bytes; })
      .def_prop_ro("free_bytes", &Device::free_bytes)
      .def_prop_ro(
          "dialect", [](const Device& d) { return d.info().capabilities.dialect; },
          "The language of its kernels, for Kernel.source().")
      .def(
          "memory",
          [](const Device& d) {
            const MemoryStats stats = memory_stats(d);
            nb::dict result;
            result["in_use_bytes"] = stats.in_use_bytes;
            result["peak_bytes"] = stats.peak_bytes;
            result["pooled_bytes"] = stats.pooled_bytes;
            return result;
          },
          "The memory of tensors and plans on this device.")
      .def("release_memory", &release_pooled_memory, "Gives memory that no tensor uses back.")
      .def(
          "__eq__",
          [](const Device& d, nb::handle other) {
            return nb::isinstance<Device>(other) && nb::cast<Device>(other) == d;
          },
          nb::arg("other").none())
      .def("__hash__", [](const Device& d) { return nb::hash(nb::str(d.id().c_str())); })
      .def("__str__", &Device::id)
      .def("__repr__", device_repr);
}

void bind_reports(nb::module_& m) {
  nb::class_<BackendReport>(m, "BackendReport", "What was found of one backend.")
      .def_ro("name", &BackendReport::name)
      .def_ro("label", &BackendReport::label)
      .def_ro("available", &BackendReport::available)
      .def_ro("reason", &BackendReport::reason, "Why it is not available.")
      .def_ro("next_step", &BackendReport::next_step, "What would make it available.")
      .def_ro("found", &BackendReport::found)
      .def_prop_ro(
          "devices",
          [](const BackendReport& report) {
            std::vector<std::string> ids;
            for (const auto& each : report.devices) ids.push_back(each->info().id);
            return ids;
          },
          "The names of its devices.")
      .def("__repr__", [](const BackendReport& report) {
        return "BackendReport('" + report.name + "', " +
               (report.available ? std::to_string(report.devices.size()) + " devices"
                                 : report.reason) +
               ")";
      });
  m.def(
      "discover_backends",
      [] {
        std::vector<BackendReport> reports = discover_backends();
        deliver_warnings();
        return reports;
      },
      "Every backend of this build in the order of preference, with the reasons of absent ones.");
}

void bind_memory(nb::module_& m) {
  using llm::InferenceMemory;
  nb::class_<InferenceMemory>(m, "InferenceMemory", "The memory that a language model needs.")
      .def_ro("model_bytes", &InferenceMemory::model_bytes)
      .def_ro("kv_cache_bytes", &InferenceMemory::kv_cache_bytes)
      .def_ro("activation_bytes", &InferenceMemory::activation_bytes)
      .def_ro("total_bytes", &InferenceMemory::total_bytes)
      .def_prop_ro("total_gb", &InferenceMemory::total_gb)
      .def("__repr__", [](const InferenceMemory& memory) {
        return "InferenceMemory(total_gb=" + std::to_string(memory.total_gb()) + ")";
      });
  m.def("estimate_inference_memory", &llm::estimate_inference_memory, nb::arg("hidden"),
        nb::arg("intermediate"), nb::arg("layers"), nb::arg("vocab"), nb::arg("heads"),
        nb::arg("kv_heads"), nb::arg("sequence"), nb::arg("bytes") = 2,
        "Estimates the memory of a decoder with `bytes` for each element.");
}

}  // namespace

void bind_devices(nb::module_& m) {
  bind_device(m);
  bind_reports(m);
  bind_memory(m);
  m.def("devices", &all_devices, "Every device of this machine. Starts every installed driver.");
  m.def("best_available_backend", &best_available_backend, "The device that Auto chooses.");
  m.def(
      "init_backend",
      [](const std::string& name) {
        Device device = init_backend(preference(name));
        set_default_device(device);
        deliver_warnings();
        return device;
      },
      nb::arg("preference") = "auto",
      "Chooses a device and makes it the default one. preference: auto, cuda, rocm, metal, "
      "vulkan, sycl, opencl, webgpu or cpu.");
  m.def("default_device", &default_device, "The device of tensors that are made without one.");
  m.def(
      "set_default_device", [](nb::handle device) { set_default_device(device_argument(device)); },
      nb::arg("device"));
  m.def("set_threads", &set_threads, nb::arg("count"),
        "The number of threads of CPU kernels. Raises InvalidArgument once they run with another "
        "number.");
  m.def("threads", &threads_setting, "The number of threads of CPU kernels.");
}

}  // namespace prism::python
