// The double's driver: devices, contexts, memory, streams that work late, events, graphs.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <vector>

#include "doubles/cuda_double.h"

namespace prism::test::cuda_double {
namespace {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kInvalidImage = 200,
              kInvalidContext = 201, kInvalidHandle = 400, kNotFound = 500, kNotReady = 600,
              kIllegalAddress = 700, kCaptureUnsupported = 900;
constexpr size_t kFence = 64;  // bytes beside an allocation that nobody may write
constexpr unsigned char kFenceByte = 0xfd, kFreshByte = 0xcd;

struct Allocation {
  size_t bytes = 0;
  std::unique_ptr<unsigned char[]> storage;
  unsigned char* data() const { return storage.get() + kFence; }
};

struct Graph {
  std::vector<std::function<void()>> nodes;
  bool last_is_kernel = false;
};

struct Stream {
  std::deque<std::function<void()>> work;
  std::unique_ptr<Graph> capture;
};

struct Event {
  bool recorded = false;
  bool reached = false;
  Stream* stream = nullptr;
  std::chrono::steady_clock::time_point time;
};

struct Function {
  HostKernel* kernel = nullptr;
  int dynamic_bytes = 48 << 10;
};

struct Module {
  HostModule* code = nullptr;
  std::map<std::string, Function> functions;
};

struct State {
  Settings settings;
  std::map<std::string, long long> counters;
  std::map<uint64_t, Allocation> allocations;
  std::set<void*> host;  // page-locked
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::set<Module*> modules;
  bool initialized = false;
  int lost = 0;  // the sticky result
  std::vector<int> retained = std::vector<int>(8, 0);
};

void apply(Settings* settings, const std::string& text) {
  const std::map<std::string, int*> numbers = {{"init", &settings->init},
                                               {"driver", &settings->driver},
                                               {"devices", &settings->devices},
                                               {"capability", &settings->capability},
                                               {"prohibited", &settings->prohibited},
                                               {"fail_allocation", &settings->fail_allocation},
                                               {"lose_launch", &settings->lose_launch},
                                               {"refuse_launch", &settings->refuse_launch},
                                               {"refuse_module", &settings->refuse_module},
                                               {"wrong_results", &settings->wrong_results},
                                               {"fail_compile", &settings->fail_compile},
                                               {"nvrtc", &settings->nvrtc},
                                               {"oldest", &settings->oldest},
                                               {"newest", &settings->newest}};
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const long long value = equals == std::string::npos ? 1 : std::atoll(part.c_str() + equals + 1);
    if (name == "memory")
      settings->memory = value;
    else if (numbers.count(name))
      *numbers.at(name) = static_cast<int>(value);
    else
      std::abort();  // a test that asks for what the double cannot do
  }
}

State& state() {
  static State& the_state = *[] {
    auto* fresh = new State;  // lives as long as the process: handles are let go late
    if (const char* text = std::getenv("PRISM_CUDA_DOUBLE")) apply(&fresh->settings, text);
    return fresh;
  }();
  return the_state;
}

std::recursive_mutex& mutex() {
  static auto& the_mutex = *new std::recursive_mutex;
  return the_mutex;
}

thread_local std::vector<int> current;  // ordinals + 1 of the contexts pushed in this thread

// What every call that needs a context begins with.
int enter() {
  if (!state().initialized) return kNotInitialized;
  if (state().lost) return state().lost;
  if (current.empty()) {
    ++counter("misuses");
    return kInvalidContext;
  }
  return 0;
}

Allocation* allocation_of(uint64_t pointer, size_t bytes) {
  auto next = state().allocations.upper_bound(pointer);
  if (next == state().allocations.begin()) return nullptr;
  --next;
  return pointer + bytes <= next->first + next->second.bytes ? &next->second : nullptr;
}

void drain(Stream& stream) {
  while (!stream.work.empty()) {
    const auto step = std::move(stream.work.front());
    stream.work.pop_front();
    if (!state().lost) step();
  }
}

// Into the graph while the stream records, else behind what the stream has to do.
void give(Stream& stream, std::function<void()> step, bool is_kernel) {
  if (stream.capture) {
    stream.capture->nodes.push_back(std::move(step));
    stream.capture->last_is_kernel = is_kernel;
  } else {
    stream.work.push_back(std::move(step));
  }
}

int copy(Stream* stream, std::function<void()> step) {
  if (!state().streams.count(stream)) return kInvalidHandle;
  give(*stream, std::move(step), false);
  return 0;
}

// Changed buffers get one wrong bit, in the last byte that changed: of a float, sign and exponent.
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

  if (!prepare(*function->kernel)) return kInvalidImage;
  // Arguments are copied now, as a driver does; they may be gone when the kernel runs.
  const std::string& kinds = arguments_of(*function->kernel);
  std::vector<uint64_t> values(kinds.size());
  std::vector<uint64_t> pointers;
  for (size_t i = 0; i < kinds.size(); ++i) {
    std::memcpy(&values[i], params[i], kinds[i] == '4' ? 4 : 8);
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
          run(*kernel, grid_now, threads, shared_bytes, arguments.data());
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

Settings& settings() { return state().settings; }
long long& counter(const std::string& what) { return state().counters[what]; }

}  // namespace prism::test::cuda_double

using namespace prism::test::cuda_double;
using Lock = std::lock_guard<std::recursive_mutex>;

extern "C" {

void prism_cuda_double_set(const char* text) {
  const Lock lock(mutex());
  state().settings = Settings{};
  state().lost = 0;
  apply(&state().settings, text);
}

long long prism_cuda_double_count(const char* what) {
  const Lock lock(mutex());
  const std::string name = what;
  State& s = state();
  if (name == "live_allocations") return static_cast<long long>(s.allocations.size());
  if (name == "live_modules") return static_cast<long long>(s.modules.size());
  if (name == "live_streams") return static_cast<long long>(s.streams.size());
  if (name == "live_events") return static_cast<long long>(s.events.size());
  if (name == "live_bytes") {
    long long bytes = 0;
    for (const auto& [pointer, allocation] : s.allocations)
      bytes += static_cast<long long>(allocation.bytes);
    return bytes;
  }
  if (name == "contexts") {
    long long contexts = 0;
    for (const int count : s.retained) contexts += count;
    return contexts;
  }
  return counter(name);
}

int cuInit(unsigned) {
  const Lock lock(mutex());
  if (settings().init) return settings().init;
  state().initialized = true;
  return 0;
}

int cuDriverGetVersion(int* version) {
  *version = settings().driver;
  return 0;
}

int cuGetErrorName(int result, const char** name) {
  switch (result) {
    case kInvalidValue:
      *name = "CUDA_ERROR_INVALID_VALUE";
      return 0;
    case kOutOfMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return 0;
    case kIllegalAddress:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return 0;
    default:
      *name = nullptr;
      return kInvalidValue;
  }
}

int cuGetErrorString(int result, const char** text) {
  *text = result == kIllegalAddress ? "an illegal memory access was encountered" : nullptr;
  return *text ? 0 : kInvalidValue;
}

int cuDeviceGetCount(int* count) {
  *count = settings().devices;
  return 0;
}

int cuDeviceGet(int* device, int index) {
  *device = index;
  return index < settings().devices ? 0 : 101;
}

int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Double of a GPU", static_cast<size_t>(bytes) - 1);
  return 0;
}

int cuDeviceGetAttribute(int* value, int which, int) {
  const int capability = settings().capability;
  const int kilobyte = 1024;
  switch (which) {
    case 1:
      *value = 1024;
      return 0;
    case 5:
      *value = 0x7fffffff;
      return 0;
    case 6:
    case 7:
      *value = 65535;
      return 0;
    case 8:
      *value = 48 * kilobyte;
      return 0;
    case 16:
      *value = 4;
      return 0;
    case 18:
      *value = 0;
      return 0;
    case 20:
      *value = settings().prohibited ? 2 : 0;
      return 0;
    case 75:
      *value = capability / 10;
      return 0;
    case 76:
      *value = capability % 10;
      return 0;
    case 97:
      *value = (capability >= 90   ? 227
                : capability >= 80 ? 163
                : capability >= 70 ? 96
                                   : 48) *
               kilobyte;
      return 0;
    default:
      return kInvalidValue;
  }
}

int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = static_cast<size_t>(settings().memory);
  return 0;
}

int cuDeviceGetPCIBusId(char* text, int bytes, int device) {
  std::snprintf(text, static_cast<size_t>(bytes), "00000000:%02X:00.0", 0xA1 + device);
  return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  const Lock lock(mutex());
  if (state().lost) return state().lost;
  ++state().retained[static_cast<size_t>(device)];
  *context = reinterpret_cast<void*>(static_cast<uintptr_t>(device) + 1);
  return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  const Lock lock(mutex());
  --state().retained[static_cast<size_t>(device)];
  return 0;
}

int cuCtxPushCurrent_v2(void* context) {
  current.push_back(static_cast<int>(reinterpret_cast<uintptr_t>(context)));
  return 0;
}

int cuCtxPopCurrent_v2(void** context) {
  if (current.empty()) return kInvalidContext;
  *context = reinterpret_cast<void*>(static_cast<uintptr_t>(current.back()));
  current.pop_back();
  return 0;
}

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  const long long used = prism_cuda_double_count("live_bytes");
  *total = static_cast<size_t>(settings().memory);
  *free = static_cast<size_t>(std::max(0ll, settings().memory - used));
  return 0;
}

int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  if (bytes == 0) return kInvalidValue;
  if (settings().fail_allocation && --settings().fail_allocation == 0) return kOutOfMemory;
  const long long used = prism_cuda_double_count("live_bytes");
  if (bytes > static_cast<size_t>(std::max(0ll, settings().memory - used))) return kOutOfMemory;
  Allocation allocation;
  allocation.bytes = bytes;
  allocation.storage = std::make_unique_for_overwrite<unsigned char[]>(bytes + 2 * kFence);
  std::memset(allocation.storage.get(), kFenceByte, bytes + 2 * kFence);
  std::memset(allocation.data(), kFreshByte, bytes);
  *pointer = reinterpret_cast<uint64_t>(allocation.data());
  state().allocations[*pointer] = std::move(allocation);
  ++counter("allocations");
  return 0;
}

int cuMemFree_v2(uint64_t pointer) {
  const Lock lock(mutex());
  if (const int result = enter(); result && !state().lost) return result;
  for (Stream* stream : state().streams)
    drain(*stream);  // as the driver, which waits for the device
  const auto found = state().allocations.find(pointer);
  if (found == state().allocations.end()) {
    ++counter("misuses");
    return kInvalidValue;
  }
  const Allocation& allocation = found->second;
  const unsigned char* start = allocation.storage.get();
  for (size_t i = 0; i < kFence; ++i)
    if (start[i] != kFenceByte || start[kFence + allocation.bytes + i] != kFenceByte) {
      ++counter("overruns");
      break;
    }
  state().allocations.erase(found);
  return state().lost;
}

int cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  *pointer = std::malloc(bytes);
  state().host.insert(*pointer);
  return 0;
}

int cuMemFreeHost(void* pointer) {
  const Lock lock(mutex());
  if (!state().host.erase(pointer)) return kInvalidValue;
  std::free(pointer);
  return 0;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, Stream* stream) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  if (!allocation_of(to, bytes)) return kInvalidValue;
  return copy(stream, [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
}

int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, Stream* stream) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  if (!allocation_of(from, bytes)) return kInvalidValue;
  return copy(stream, [=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream* stream) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  if (!allocation_of(to, bytes) || !allocation_of(from, bytes)) return kInvalidValue;
  return copy(stream, [=] {
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  });
}

int cuModuleLoadData(Module** module, const void* image) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  ++counter("module_loads");
  if (settings().refuse_module && --settings().refuse_module == 0) return kInvalidImage;
  const char* text = static_cast<const char*>(image);
  if (std::strncmp(text, kBinaryMagic, sizeof(kBinaryMagic) - 1) != 0) return kInvalidImage;
  *module = new Module{load_text(text + sizeof(kBinaryMagic) - 1), {}};
  state().modules.insert(*module);
  return 0;
}

int cuModuleUnload(Module* module) {
  const Lock lock(mutex());
  if (!state().modules.erase(module)) return kInvalidHandle;
  for (Stream* stream : state().streams) drain(*stream);
  unload(module->code);
  delete module;
  return state().lost;
}

int cuModuleGetFunction(Function** function, Module* module, const char* name) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  HostKernel* kernel = find_kernel(module->code, name);
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

// CUlaunchConfig and CUlaunchAttribute, as the driver's header lays them out.
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
  for (Event* event : state().events)
    if (event->stream == stream) event->stream = nullptr;
  delete stream;
  return state().lost;
}

int cuStreamSynchronize(Stream* stream) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  if (!state().streams.count(stream)) return kInvalidHandle;
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
  for (const auto& node : graph->nodes) stream->work.push_back(node);
  return 0;
}

int cuEventCreate(Event** event, unsigned) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  *event = new Event;
  state().events.insert(*event);
  return 0;
}

int cuEventDestroy_v2(Event* event) {
  const Lock lock(mutex());
  if (!state().events.count(event)) return kInvalidHandle;
  if (event->stream) drain(*event->stream);
  state().events.erase(event);
  delete event;
  return state().lost;
}

int cuEventRecord(Event* event, Stream* stream) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  if (stream->capture) {
    ++counter("misuses");
    return kCaptureUnsupported;
  }
  event->recorded = true;
  event->reached = false;
  event->stream = stream;
  stream->work.push_back([event] {
    event->reached = true;
    event->time = std::chrono::steady_clock::now();
  });
  return 0;
}

int cuEventQuery(Event* event) {
  const Lock lock(mutex());
  if (const int result = enter()) return result;
  if (!event->recorded || event->reached) return 0;
  // Asking lets one step of the stream happen, so that a loop of questions ends.
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
  while (event->recorded && !event->reached && event->stream && !event->stream->work.empty()) {
    const auto step = std::move(event->stream->work.front());
    event->stream->work.pop_front();
    if (!state().lost) step();
  }
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
