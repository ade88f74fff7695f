// The shared state of the double's driver: handles, live objects, and the checks at the start of
// every call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "doubles/cuda_double.h"
#include "doubles/host_kernels.h"

namespace prism::test::cuda_double {

using doubles::HostKernel;
using doubles::HostModule;

inline constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kInvalidImage = 200,
                     kInvalidContext = 201, kInvalidHandle = 400, kNotFound = 500, kNotReady = 600,
                     kIllegalAddress = 700, kCaptureUnsupported = 900;
inline constexpr size_t kFence = 64;  // guard bytes around an allocation, which must stay unchanged
inline constexpr unsigned char kFenceByte = 0xfd, kFreshByte = 0xcd;

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
  std::map<Event*, std::shared_ptr<Event>> events;  // pending work keeps them after their end
  Stream legacy;  // the default stream of other libraries: handles 0 and 1
  std::set<Module*> modules;
  bool initialized = false;
  int lost = 0;  // the sticky error
  std::vector<int> retained = std::vector<int>(8, 0);
};

State& state();
std::recursive_mutex& mutex();  // guards all state
using Lock = std::lock_guard<std::recursive_mutex>;

extern thread_local std::vector<int> current;  // ordinals + 1 of this thread's context stack

// The first step of every call that needs a context.
int enter();

// The allocation that contains these bytes; null if none does.
Allocation* allocation_of(uint64_t pointer, size_t bytes);

// The stream of a handle; null if there is none.
Stream* known_stream(Stream* handle);
void drain(Stream& stream);    // runs all pending work of the stream
void run_until(Event& event);  // runs the event's stream up to the event
// Appends to the graph while the stream records, else to the stream's pending work.
void give(Stream& stream, std::function<void()> step, bool is_kernel);

}  // namespace prism::test::cuda_double
