// The settings of the HIP double, and its counters.
#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>

#include "doubles/cuda_double.h"
#include "doubles/hip_double.h"

namespace prism::test::hip_double {
namespace {

std::map<std::string, long long>& calls() {
  static auto& counted = *new std::map<std::string, long long>;
  return counted;
}
std::mutex& mutex() {
  static auto& the_mutex = *new std::mutex;
  return the_mutex;
}

// Applies its own settings; returns the others, which belong to the CUDA double.
std::string apply(Settings* to, const std::string& text) {
  std::stringstream stream(text);
  std::string others;
  for (std::string part; std::getline(stream, part, ',');) {
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const std::string value = equals == std::string::npos ? "1" : part.substr(equals + 1);
    if (name == "gfx")
      to->gfx = "gfx" + value;
    else if (name == "hip")
      to->hip = std::atoi(value.c_str());
    else if (name == "hiprtc")
      to->hiprtc = std::atoi(value.c_str());
    else if (name == "refuse_chip")
      to->refuse_chip = std::atoi(value.c_str());
    else if (name == "no_binary")
      to->no_binary = std::atoi(value.c_str());
    else if (name == "crash")
      to->crash_name = value;
    else if (name == "forward")
      to->forward = value == "1";
    else if (name == "fail") {
      std::stringstream words(value);
      std::string nth, result;
      std::getline(words, to->fail_name, ':');
      std::getline(words, nth, ':');
      std::getline(words, result, ':');
      to->fail_nth = std::atoi(nth.c_str());
      to->fail_result = std::atoi(result.c_str());
    } else {
      others += (others.empty() ? "" : ",") + part;
    }
  }
  return others;
}

}  // namespace

Settings& settings() {
  static Settings& now = *[] {
    auto* fresh = new Settings;
    if (const char* text = std::getenv("PRISM_HIP_DOUBLE")) {
      const std::string others = apply(fresh, text);
      if (!fresh->forward) prism_cuda_double_set(others.c_str());
    }
    return fresh;
  }();
  return now;
}

int told_to_fail(const char* name) {
  const std::lock_guard lock(mutex());
  ++calls()[name];
  Settings& told = settings();
  if (*name && told.crash_name == name) std::raise(SIGSEGV);
  if (told.fail_nth == 0 || told.fail_name != name || --told.fail_nth != 0) return 0;
  return told.fail_result;
}

}  // namespace prism::test::hip_double

using namespace prism::test::hip_double;

extern "C" {

void prism_hip_double_set(const char* text) {
  Settings fresh;
  fresh.forward = settings().forward;
  fresh.architecture = settings().architecture;
  settings() = fresh;
  prism_cuda_double_set(apply(&settings(), text).c_str());
}

long long prism_hip_double_count(const char* what) {
  const std::string name = what;
  if (name.rfind("calls_", 0) != 0) return prism_cuda_double_count(what);
  const std::lock_guard lock(mutex());
  return calls()[name.substr(6)];
}

}  // extern "C"
