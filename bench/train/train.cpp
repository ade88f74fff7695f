// Times training steps, with PyTorch beside them. models.h lists the models.
// Usage: bench_train [--model mlp,gpt,char_gpt,gpt2,lora] [--gguf FILE] [--recompute] [--device
// NAME]
//                    [--steps N] [--rounds N] [--explain] [--peer "PYTHON SCRIPT [--device cuda]"]
// With --steps 0 nothing runs: it prints the memory and, with --explain, the plan.
// The peer is bench/train/pytorch_steps.py; it and Prism take turns. On the CPU the fastest step
// counts, so that other work on the machine disturbs neither. On a GPU the steps of a round follow
// one another without a wait, and the fastest round counts.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "models.h"

using namespace prism;

namespace {

// One step: wall-clock time, the processor time of all threads, and the memory of the device.
struct Times {
  double ms = 1e30, cpu_ms = 1e30, mib = 0;
  void keep_best(const Times& other) {
    ms = std::min(ms, other.ms);
    cpu_ms = std::min(cpu_ms, other.cpu_ms);
    mib = std::max(mib, other.mib);
  }
};

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Times own_times(Training& work, int steps, bool is_cpu) {
  for (int i = 0; i < 5; ++i) (*work.step)(work.batch).item();
  const std::clock_t cpu = std::clock();
  Times times;
  const auto begin = Clock::now();
  Tensor loss;
  for (int i = 0; i < steps; ++i) {
    const auto start = Clock::now();
    loss = (*work.step)(work.batch);
    if (!is_cpu) continue;
    loss.item();
    times.ms = std::min(times.ms, ms_since(start));
  }
  loss.item();
  if (!is_cpu) times.ms = ms_since(begin) / steps;
  times.cpu_ms = static_cast<double>(std::clock() - cpu) * 1e3 / CLOCKS_PER_SEC / steps;
  return times;
}

double memory_mib(Training& work, const Device& device) {
  uint64_t bytes = 0;
  for (const PlanMemory& each : work.step->estimate_memory(work.batch))
    if (each.device == device) bytes += each.present + each.needed();
  return static_cast<double>(bytes) / (1 << 20);
}

// The peer's lines: a way to run the step, milliseconds, of which processor time, MiB.
void add_peer_times(const std::string& peer, const std::string& name, int steps,
                    std::map<std::string, Times>& ways) {
  FILE* const pipe = popen(fmt::format("{} {} {}", peer, name, steps).c_str(), "r");
  if (!pipe) return;
  std::array<char, 64> way{};
  Times times;
  while (std::fscanf(pipe, "%63s %lf %lf %lf", way.data(), &times.ms, &times.cpu_ms, &times.mib) ==
         4)
    ways[way.data()].keep_best(times);
  pclose(pipe);
}

void print_line(const Training& work, const std::string& who, const Times& times, double own_ms) {
  std::string line = fmt::format("{:9} {:24} {:9.3f} ms", work.name, who, times.ms);
  if (work.tokens > 0)
    line += fmt::format(" {:9.0f} tokens/s", static_cast<double>(work.tokens) * 1e3 / times.ms);
  line += fmt::format(" {:8.2f} ms of processor time {:7.0f} MiB", times.cpu_ms, times.mib);
  if (own_ms > 0) line += fmt::format("   Prism takes {:.2f} of it", own_ms / times.ms);
  std::cout << line << std::endl;
}

}  // namespace

int main(int count, char** words) try {
  std::string device_name = "cpu", peer, models = "mlp,gpt", file;
  int steps = 50, rounds = 3;
  bool explain = false, recompute = false;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto value = [&] { return std::string(i + 1 < count ? words[++i] : ""); };
    if (word == "--device") device_name = value();
    if (word == "--model") models = value();
    if (word == "--gguf") file = value();
    if (word == "--steps") steps = std::max(0, std::atoi(value().c_str()));
    if (word == "--rounds") rounds = std::max(1, std::atoi(value().c_str()));
    if (word == "--peer") peer = value();
    if (word == "--explain") explain = true;
    if (word == "--recompute") recompute = true;
  }
  const Device device = Device::named(device_name);
  set_default_device(device);
  std::istringstream names(models);
  for (std::string name; std::getline(names, name, ',');) {
    Training work = make_training(name, file, recompute);
    if (explain) std::cout << work.step->explain(work.batch);
    Times own;
    own.mib = memory_mib(work, device);
    if (steps == 0) {
      std::cout << fmt::format("{:9} Prism {:18} {:7.0f} MiB\n", work.name, device_name, own.mib);
      continue;
    }
    std::map<std::string, Times> others;
    for (int round = 0; round < rounds; ++round) {
      own.keep_best(own_times(work, steps, device == Device::cpu()));
      if (!peer.empty()) add_peer_times(peer, name, steps, others);
    }
    print_line(work, "Prism " + device_name, own, 0);
    for (const auto& [way, times] : others) print_line(work, "PyTorch " + way, times, own.ms);
  }
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
