// The double's work: modules and their kernels, launches, deferred streams, graphs, events.
#include <cstring>

#include "doubles/cuda_double_state.h"

// Defined in cuda_double_driver.cpp.
extern "C" int cuDeviceGetAttribute(int* value, int which, int device);

namespace prism::test::cuda_double {
namespace {

// Flips one bit in each changed buffer, in the last changed byte: sign and exponent of a float.
void run_wrongly(const std::function<void()>& run_kernel, const std::vector<uint64_t>& pointers) {
  std::vector<std::pair<Allocation*, std::vector<unsigned char>>> before;
  for (const uint64_t pointer : pointers)
    if (Allocation* allocation = allocation_of(pointer, 1))
      before.emplace_back(allocation,
                          std::vector(allocation->data(), allocation->data() + allocation->bytes));
  run_kernel();
  for (auto& [allocation, content] : before)
    for (size_t i = allocation->bytes; i > 0; --i)
      if (allocation->data()[i - 1] != content[i - 1]) {
        allocation->data()[i - 1] ^= 0x40;
        break;
      }
}

int launch(Function* function, const unsigned (&grid)[3], const unsigned (&block)[3],
           unsigned shared_bytes, Stream* stream, void** params, bool overlapped) {
  if (const int result = enter()) return result;
  if (!state().streams.count(stream)) return kInvalidHandle;
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[1] > 65535 || grid[2] > 65535 ||
      grid[0] > 0x7fffffffu || block[0] == 0 || block[0] > 1024 || block[1] != 1 || block[2] != 1 ||
      shared_bytes > static_cast<unsigned>(function->dynamic_bytes))
    return kInvalidValue;
  if (overlapped && !(stream->capture && stream->capture->last_is_kernel)) ++counter("misuses");
  Settings& told = settings();
  if (told.refuse_launch && --told.refuse_launch == 0) return kInvalidValue;
  const bool lose = told.lose_launch && --told.lose_launch == 0;

  if (!doubles::prepare(*function->kernel)) return kInvalidImage;
  // Arguments are copied now, as in a driver; the originals may be gone when the kernel runs.
  const std::string& kinds = doubles::arguments_of(*function->kernel);
  std::vector<uint64_t> values(kinds.size());
  std::vector<uint64_t> pointers;
  for (size_t i = 0; i < kinds.size(); ++i) {
    std::memcpy(&values[i], params[i], kinds[i] == 'p' ? 8 : 4);
    if (kinds[i] == 'p') pointers.push_back(values[i]);
  }
  const unsigned g[3] = {grid[0], grid[1], grid[2]};
  const unsigned threads = block[0];
  give(
      *stream,
      [=, kernel = function->kernel]() mutable {
        ++counter("launches");
        for (const uint64_t pointer : pointers)
          if (!allocation_of(pointer, 1)) state().lost = kIllegalAddress;
        if (lose) state().lost = kIllegalAddress;
        if (state().lost) return;
        const unsigned grid_now[3] = {g[0], g[1], g[2]};
        std::vector<void*> arguments;
        for (uint64_t& value : values) arguments.push_back(&value);
        const auto run_kernel = [&] {
          if (doubles::run(*kernel, grid_now, threads, arguments.data()))
            state().lost = kIllegalAddress;  // divergent barrier
        };
        if (settings().wrong_results)
          run_wrongly(run_kernel, pointers);
        else
          run_kernel();
      },
      true);
  if (overlapped) ++counter("overlapped_launches");
  return 0;
}

}  // namespace
}  // namespace prism::test::cuda_double

using namespace prism::test::cuda_double;

extern "C" {

int cuModuleLoadData(Module** module, const void* image) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  ++counter("module_loads");
  if (settings().refuse_module && --settings().refuse_module == 0) return kInvalidImage;
  const char* text = static_cast<const char*>(image);
  if (std::strncmp(text, kBinaryMagic, sizeof(kBinaryMagic) - 1) != 0) return kInvalidImage;
  *module = new Module{prism::test::doubles::load_text(text + sizeof(kBinaryMagic) - 1), {}};
  state().modules.insert(*module);
  return 0;
}

int cuModuleUnload(Module* module) {
  const Lock lock(mutex());
  if (!state().modules.erase(module)) return kInvalidHandle;
  for (Stream* stream : state().streams) drain(*stream);
  prism::test::doubles::unload(module->code);
  delete module;
  return state().lost;
}

int cuModuleGetFunction(Function** function, Module* module, const char* name) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  HostKernel* kernel = prism::test::doubles::find_sample_kernel(module->code, name);
  if (!kernel) return kNotFound;
  module->functions[name] = Function{kernel};
  *function = &module->functions[name];
  return 0;
}

int cuFuncSetAttribute(Function* function, int attribute, int value) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  int most = 0;
  cuDeviceGetAttribute(&most, 97, 0);
  if (attribute != 8 || value > most) return kInvalidValue;
  function->dynamic_bytes = value;
  return 0;
}

int cuLaunchKernel(Function* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                   unsigned by, unsigned bz, unsigned shared_bytes, Stream* stream, void** params,
                   void**) {
  const Lock lock(mutex());
  return launch(function, {gx, gy, gz}, {bx, by, bz}, shared_bytes, stream, params, false);
}

// CUlaunchConfig and CUlaunchAttribute, with the layout of the driver's header.
struct DoubleAttribute {
  int id;
  int pad;
  int value;
  char rest[60];
};
struct DoubleConfig {
  unsigned grid[3], block[3], shared_bytes;
  Stream* stream;
  const DoubleAttribute* attributes;
  unsigned count;
};

int cuLaunchKernelEx(const DoubleConfig* config, Function* function, void** params, void**) {
  const Lock lock(mutex());
  bool overlapped = false;
  for (unsigned i = 0; i < config->count; ++i) {
    if (config->attributes[i].id != 6) return kInvalidValue;
    overlapped = config->attributes[i].value != 0;
  }
  return launch(function, config->grid, config->block, config->shared_bytes, config->stream, params,
                overlapped);
}

int cuStreamCreate(Stream** stream, unsigned) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  *stream = new Stream;
  state().streams.insert(*stream);
  return 0;
}

int cuStreamDestroy_v2(Stream* stream) {
  const Lock lock(mutex());
  if (!state().streams.erase(stream)) return kInvalidHandle;
  drain(*stream);
  for (const auto& [handle, event] : state().events)
    if (event->stream == stream) event->stream = nullptr;
  delete stream;
  return state().lost;
}

int cuStreamSynchronize(Stream* given) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  Stream* stream = known_stream(given);
  if (!stream) return kInvalidHandle;
  if (stream->capture) {
    ++counter("misuses");
    return kCaptureUnsupported;
  }
  drain(*stream);
  return state().lost;
}

int cuStreamBeginCapture_v2(Stream* stream, int) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  if (stream->capture) return kInvalidValue;
  stream->capture = std::make_unique<Graph>();
  return 0;
}

int cuStreamEndCapture(Stream* stream, Graph** graph) {
  const Lock lock(mutex());
  if (!stream->capture) return kInvalidValue;
  *graph = stream->capture.release();
  ++counter("live_graphs");
  return state().lost;
}

int cuGraphInstantiateWithFlags(Graph** exec, Graph* graph, unsigned long long) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  *exec = new Graph(*graph);
  ++counter("live_graphs");
  return 0;
}

int cuGraphDestroy(Graph* graph) {
  const Lock lock(mutex());
  delete graph;
  --counter("live_graphs");
  return 0;
}

int cuGraphExecDestroy(Graph* graph) { return cuGraphDestroy(graph); }

int cuGraphLaunch(Graph* graph, Stream* stream) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  if (!state().streams.count(stream)) return kInvalidHandle;
  ++counter("graph_launches");
  if (settings().lose_launch && --settings().lose_launch == 0)
    stream->work.emplace_back([] { state().lost = kIllegalAddress; });
  for (const auto& node : graph->nodes) stream->work.push_back(node);
  return 0;
}

int cuEventCreate(Event** event, unsigned) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  const auto created = std::make_shared<Event>();
  *event = created.get();
  state().events[*event] = created;
  return 0;
}

int cuEventDestroy_v2(Event* event) {
  const Lock lock(mutex());
  if (!state().events.erase(event)) return kInvalidHandle;
  return state().lost;
}

int cuEventRecord(Event* event, Stream* given) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  Stream* stream = known_stream(given);
  if (!stream || !state().events.count(event)) return kInvalidHandle;
  if (stream->capture) {
    ++counter("misuses");
    return kCaptureUnsupported;
  }
  event->recorded = true;
  event->reached = false;
  event->stream = stream;
  stream->work.push_back([event = state().events.at(event)] {
    event->reached = true;
    event->time = std::chrono::steady_clock::now();
  });
  return 0;
}

int cuStreamWaitEvent(Stream* given, Event* event, unsigned) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  Stream* stream = known_stream(given);
  if (!stream || !state().events.count(event)) return kInvalidHandle;
  ++counter("stream_waits");
  stream->work.push_back([event = state().events.at(event)] { run_until(*event); });
  return 0;
}

int cuEventQuery(Event* event) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  if (!event->recorded || event->reached) return 0;
  // Each query runs one step of the stream, so that a polling loop terminates.
  if (event->stream && !event->stream->work.empty()) {
    const auto step = std::move(event->stream->work.front());
    event->stream->work.pop_front();
    step();
  }
  if (state().lost) return state().lost;
  return event->reached ? 0 : kNotReady;
}

int cuEventSynchronize(Event* event) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  run_until(*event);
  return state().lost;
}

int cuEventElapsedTime(float* ms, Event* from, Event* to) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  if (!from->recorded || !to->recorded) return kInvalidHandle;
  if (!from->reached || !to->reached) return kNotReady;
  *ms = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return 0;
}

}  // extern "C"
