// The plug-in: SYCL's C++ behind plain C functions. Built by any host compiler against SYCL's
// headers; kernels are text, compiled by SYCL's own run-time compiler.
#include "backends/sycl/plugin/interface.h"

#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <sycl/sycl.hpp>

namespace {

namespace experimental = sycl::ext::oneapi::experimental;
using Bundle = sycl::kernel_bundle<sycl::bundle_state::executable>;
using Graph = experimental::command_graph<experimental::graph_state::modifiable>;
using RunnableGraph = experimental::command_graph<experimental::graph_state::executable>;

thread_local std::string t_message;

int code_of(const sycl::exception& error) {
  if (error.code() == sycl::errc::memory_allocation) return kPrismSyclMemory;
  if (error.code() == sycl::errc::build) return kPrismSyclBuild;
  const std::string words = error.what();
  return words.find("DEVICE_LOST") != std::string::npos ? kPrismSyclLost : kPrismSyclFailed;
}

template <class Work>
int guarded(const Work& work) {
  try {
    work();
    return kPrismSyclDone;
  } catch (const sycl::exception& error) {
    t_message = error.what();
    return code_of(error);
  } catch (const std::bad_alloc&) {
    t_message = "no memory";
    return kPrismSyclMemory;
  } catch (const std::exception& error) {
    t_message = error.what();
    return kPrismSyclFailed;
  }
}

// A device with the context that everything on it shares.
struct Opened {
  sycl::device device;
  std::optional<sycl::context> context;
  sycl::context& shared() {
    if (!context) context.emplace(device);
    return *context;
  }
};

std::vector<Opened>& opened() {
  static auto* const list = new std::vector<Opened>;  // outlives SYCL's own end
  return *list;
}

void put(char* to, size_t size, const std::string& text) {
  std::strncpy(to, text.c_str(), size - 1);
  to[size - 1] = 0;
}

std::string card_of(const sycl::device& device) {
  if (device.has(sycl::aspect::ext_intel_pci_address))
    return device.get_info<sycl::ext::intel::info::device::pci_address>();
  if (device.is_gpu() && device.has(sycl::aspect::ext_intel_device_info_uuid)) {
    std::string text = "uuid:";
    for (const unsigned char byte : device.get_info<sycl::ext::intel::info::device::uuid>()) {
      char two[3];
      std::snprintf(two, sizeof(two), "%02x", byte);
      text += two;
    }
    return text;
  }
  return "";
}

PrismSyclDevice describe(const sycl::device& device) {
  namespace info = sycl::info::device;
  PrismSyclDevice d{};
  put(d.name, sizeof(d.name), device.get_info<info::name>());
  put(d.vendor, sizeof(d.vendor), device.get_info<info::vendor>());
  put(d.platform, sizeof(d.platform), device.get_platform().get_info<sycl::info::platform::name>());
  put(d.driver, sizeof(d.driver), device.get_info<info::driver_version>());
  put(d.card, sizeof(d.card), card_of(device));
  d.total_bytes = device.get_info<info::global_mem_size>();
  d.largest_allocation = device.get_info<info::max_mem_alloc_size>();
  d.shared_bytes = device.get_info<info::local_mem_size>();
  d.compute_units = device.get_info<info::max_compute_units>();
  d.largest_group = static_cast<uint32_t>(device.get_info<info::max_work_group_size>());
  size_t count = 0;
  for (const size_t size : device.get_info<info::sub_group_sizes>())
    if (count < 15) d.subgroup_sizes[count++] = static_cast<uint32_t>(size);
  d.is_cpu = device.is_cpu();
  d.is_gpu = device.is_gpu();
  d.unified = device.is_cpu();
  d.f16 = device.has(sycl::aspect::fp16);
  d.f64 = device.has(sycl::aspect::fp64);
  d.graphs = device.has(sycl::aspect::ext_oneapi_graph);
  return d;
}

int devices(const PrismSyclDevice** list, size_t* count) {
  static std::vector<PrismSyclDevice> described;
  return guarded([&] {
    if (described.empty()) {
      for (sycl::device device : sycl::device::get_devices()) {
        // What the run-time compiler makes is for devices that take SPIR-V; PoCL offers itself to
        // SYCL and refuses it.
        if (!device.ext_oneapi_can_compile(experimental::source_language::sycl)) continue;
        const std::string platform = device.get_platform().get_info<sycl::info::platform::name>();
        if (platform.find("Portable Computing Language") != std::string::npos) continue;
        described.push_back(describe(device));
        opened().push_back({device, {}});
      }
    }
    *list = described.data();
    *count = described.size();
  });
}

uint64_t free_bytes(size_t device) {
  uint64_t bytes = 0;
  guarded([&] {
    const sycl::device& d = opened().at(device).device;
    if (d.has(sycl::aspect::ext_intel_free_memory))
      bytes = d.get_info<sycl::ext::intel::info::device::free_memory>();
  });
  return bytes;
}

int allocate(size_t device, uint64_t bytes, void** memory) {
  return guarded([&] {
    Opened& o = opened().at(device);
    *memory = sycl::malloc_device(bytes, o.device, o.shared());
    if (*memory == nullptr) throw std::bad_alloc();
  });
}

void release_memory(size_t device, void* memory) {
  guarded([&] { sycl::free(memory, opened().at(device).shared()); });
}

int compile(size_t device, const char* text, const char* const* options, const char* const* entries,
            size_t count, void** kernels, const char** log) {
  thread_local std::string kept;
  kept.clear();
  *log = "";
  const int code = guarded([&] {
    Opened& o = opened().at(device);
    auto source = experimental::create_kernel_bundle_from_source(
        o.shared(), experimental::source_language::sycl, std::string(text));
    std::vector<std::string> all;
    for (; *options; ++options) all.emplace_back(*options);
    Bundle bundle = experimental::build(
        source, std::vector<sycl::device>{o.device},
        experimental::properties{experimental::build_options{all}, experimental::save_log{&kept}});
    for (size_t i = 0; i < count; ++i)
      kernels[i] = new sycl::kernel(bundle.ext_oneapi_get_kernel(entries[i]));
  });
  *log = kept.c_str();
  return code;
}

void release_kernel(void* kernel) { delete static_cast<sycl::kernel*>(kernel); }

struct Queue {
  sycl::queue queue;
  std::exception_ptr late;  // what SYCL reports aside
  std::optional<Graph> graph;
};

int make_queue(size_t device, void** queue) {
  return guarded([&] {
    Opened& o = opened().at(device);
    auto* const made = new Queue{sycl::queue(), nullptr, {}};
    made->queue =
        sycl::queue(o.shared(), o.device,
                    [made](sycl::exception_list errors) {
                      for (const auto& error : errors)
                        if (!made->late) made->late = error;
                    },
                    {sycl::property::queue::in_order(), sycl::property::queue::enable_profiling()});
    *queue = made;
  });
}

void release_queue(void* queue) {
  auto* const q = static_cast<Queue*>(queue);
  guarded([&] { q->queue.wait(); });
  delete q;
}

int copy(void* queue, void* to, const void* from, uint64_t bytes) {
  return guarded([&] { static_cast<Queue*>(queue)->queue.memcpy(to, from, bytes); });
}

int launch(void* queue, const PrismSyclLaunch* call) {
  return guarded([&] {
    // SYCL's last dimension is the one that runs fastest.
    const sycl::range<3> group(1, 1, call->group_size);
    const sycl::range<3> all(call->groups[2], call->groups[1],
                             size_t{call->groups[0]} * call->group_size);
    static_cast<Queue*>(queue)->queue.submit([&](sycl::handler& handler) {
      int argument = 0;
      for (size_t i = 0; i < call->buffer_count; ++i) handler.set_arg(argument++, call->buffers[i]);
      for (size_t i = 0; i < call->param_count; ++i) handler.set_arg(argument++, call->params[i]);
      handler.parallel_for(sycl::nd_range<3>(all, group),
                           *static_cast<sycl::kernel*>(call->kernel));
    });
  });
}

int wait(void* queue) {
  return guarded([&] {
    auto* const q = static_cast<Queue*>(queue);
    q->queue.wait_and_throw();
    if (q->late) std::rethrow_exception(std::exchange(q->late, nullptr));
  });
}

int record_event(void* queue, void** event) {
  return guarded([&] {
    *event = new sycl::event(static_cast<Queue*>(queue)->queue.ext_oneapi_submit_barrier());
  });
}

int wait_event(void* event) {
  return guarded([&] { static_cast<sycl::event*>(event)->wait_and_throw(); });
}

int event_done(void* event, int* done) {
  return guarded([&] {
    namespace info = sycl::info::event;
    *done = static_cast<sycl::event*>(event)->get_info<info::command_execution_status>() ==
            sycl::info::event_command_status::complete;
  });
}

int event_ns(void* event, uint64_t* ns) {
  return guarded([&] {
    namespace profiling = sycl::info::event_profiling;
    *ns = static_cast<sycl::event*>(event)->get_profiling_info<profiling::command_end>();
  });
}

void release_event(void* event) { delete static_cast<sycl::event*>(event); }

int begin_graph(void* queue) {
  return guarded([&] {
    auto* const q = static_cast<Queue*>(queue);
    q->graph.emplace(q->queue.get_context(), q->queue.get_device());
    q->graph->begin_recording(q->queue);
  });
}

int end_graph(void* queue, void** graph) {
  return guarded([&] {
    auto* const q = static_cast<Queue*>(queue);
    Graph recorded = *std::exchange(q->graph, std::nullopt);
    recorded.end_recording(q->queue);
    *graph = new RunnableGraph(recorded.finalize());
  });
}

int run_graph(void* queue, void* graph) {
  return guarded([&] {
    static_cast<Queue*>(queue)->queue.ext_oneapi_graph(*static_cast<RunnableGraph*>(graph));
  });
}

void release_graph(void* graph) { delete static_cast<RunnableGraph*>(graph); }

constexpr PrismSyclApi kApi = {kPrismSyclVersion,
                               [] { return t_message.c_str(); },
                               devices,
                               free_bytes,
                               allocate,
                               release_memory,
                               compile,
                               release_kernel,
                               make_queue,
                               release_queue,
                               copy,
                               launch,
                               wait,
                               record_event,
                               wait_event,
                               event_done,
                               event_ns,
                               release_event,
                               begin_graph,
                               end_graph,
                               run_graph,
                               release_graph};

}  // namespace

extern "C" __attribute__((visibility("default"))) const PrismSyclApi* prism_sycl_api() {
  return &kApi;
}
