// benchmark_scalars: times scalars with gradients on every device side by side, and says from how
// many scalars on another device pays. Usage: benchmark_scalars [SCALARS]
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>

#include <fmt/format.h>

#include "prism/prism.h"
#include "runtime/driver.h"

using namespace prism;
using nn::Value;

namespace {

double ms_of(const std::function<void()>& work) {
  work();  // compiles the kernels
  double best = 1e30;
  for (int round = 0; round < 3; ++round) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(
        best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                  .count());
  }
  return best;
}

// `count` independent results of a function, summed as a tree, forward and backward.
double function_ms(const Device& device, int count,
                   const std::function<Value(const Value&, const Value&)>& function) {
  const Value a(1.25, device), b(0.75, device);
  return ms_of([&] {
    std::vector<Value> sums;
    for (int i = 0; i < count; ++i) sums.push_back(function(a, b));
    while (sums.size() > 1) {
      std::vector<Value> next;
      for (size_t i = 0; i + 1 < sums.size(); i += 2) next.push_back(sums[i] + sums[i + 1]);
      if (sums.size() % 2) next.push_back(sums.back());
      sums = std::move(next);
    }
    sums[0].backward();
  });
}

double mlp_ms(const Device& device, int samples) {
  const nn::MLP model(2, {16, 16, 1}, device);
  return ms_of([&] {
    Value loss(0, device);
    for (int i = 0; i < samples; ++i) {
      const std::array<Value, 2> x = {Value(i * 0.01, device), Value(1 - i * 0.02, device)};
      loss += relu(1.0 - model(x)[0]);
    }
    loss.backward();
  });
}

}  // namespace

int main(int arguments, char** words) try {
  const int count = arguments > 1 ? std::atoi(words[1]) : 20'000;
  const std::vector<std::pair<std::string, std::function<Value(const Value&, const Value&)>>>
      functions = {{"add", [](const Value& a, const Value& b) { return a + b; }},
                   {"multiply", [](const Value& a, const Value& b) { return a * b; }},
                   {"power", [](const Value& a, const Value&) { return pow(a, 1.5); }},
                   {"relu", [](const Value& a, const Value&) { return relu(a); }}};
  std::vector<Device> devices = {Device::cpu()};
  for (const BackendReport& backend : discover_backends())
    for (const auto& driver : backend.devices)
      if (!driver->info().is_cpu) devices.push_back(Device::named(driver->info().id));
  std::map<std::string, double> cpu_ms;
  for (const Device& device : devices) {
    std::cout << device.id() << ": " << device.info().name << "\n";
    const auto report = [&](const std::string& name, double ms) {
      const bool is_cpu = device == Device::cpu();
      if (is_cpu) cpu_ms[name] = ms;
      std::cout << fmt::format("  {:<28} {:>9.3f} ms", name, ms);
      if (!is_cpu)
        std::cout << fmt::format("  {}", ms < cpu_ms[name]
                                             ? "pays"
                                             : fmt::format("{:.1f} times the CPU's time: does not "
                                                           "pay",
                                                           ms / cpu_ms[name]));
      std::cout << std::endl;
    };
    for (const auto& [name, function] : functions)
      report(fmt::format("{} of {} scalars", name, count), function_ms(device, count, function));
    for (const int samples : {1, 100})
      report(fmt::format("MLP 2-16-16-1, {} samples", samples), mlp_ms(device, samples));
  }
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
