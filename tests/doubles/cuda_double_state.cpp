// The state of the double: settings requested by tests, and objects created by the driver.
#include "doubles/cuda_double_state.h"

#include <cstdlib>
#include <sstream>

namespace prism::test::cuda_double {
namespace {

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
      std::abort();  // the test requests an unknown setting
  }
}

}  // namespace

State& state() {
  static State& the_state = *[] {
    auto* fresh = new State;  // never destroyed: handles are released late
    if (const char* text = std::getenv("PRISM_CUDA_DOUBLE")) apply(&fresh->settings, text);
    return fresh;
  }();
  return the_state;
}

std::recursive_mutex& mutex() {
  static auto& the_mutex = *new std::recursive_mutex;
  return the_mutex;
}

thread_local std::vector<int> current;

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

Stream* known_stream(Stream* handle) {
  if (reinterpret_cast<uintptr_t>(handle) <= 1) return &state().legacy;
  return state().streams.count(handle) ? handle : nullptr;
}

void drain(Stream& stream) {
  while (!stream.work.empty()) {
    const auto step = std::move(stream.work.front());
    stream.work.pop_front();
    if (!state().lost) step();
  }
}

void run_until(Event& event) {
  while (event.recorded && !event.reached && event.stream && !event.stream->work.empty()) {
    const auto step = std::move(event.stream->work.front());
    event.stream->work.pop_front();
    if (!state().lost) step();
  }
}

void give(Stream& stream, std::function<void()> step, bool is_kernel) {
  if (stream.capture) {
    stream.capture->nodes.push_back(std::move(step));
    stream.capture->last_is_kernel = is_kernel;
  } else {
    stream.work.push_back(std::move(step));
  }
}

Settings& settings() { return state().settings; }
long long& counter(const std::string& what) { return state().counters[what]; }

}  // namespace prism::test::cuda_double

using namespace prism::test::cuda_double;

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

}  // extern "C"
