// Device bench: copy, products, replay and kernel load, each with its peer measured in the same
// run.
//
// usage: bench_devices [--device D] [--json] [--enforce]
// Without --device: every device found. --enforce: exit status 1 if a floor is missed.
#include <cstring>
#include <iostream>

#include <fmt/format.h>

#include "bench.h"
#include "prism/device.h"
#include "prism/error.h"

namespace prism::bench {

std::optional<bool> Line::met() const {
  if (!floor) return std::nullopt;
  return less_is_better ? figure <= *floor : share() >= *floor;
}

namespace {

std::string floor_text(const Line& line) {
  if (!line.floor) return "no floor here";
  return line.less_is_better ? fmt::format("floor {:g} {}", *line.floor, line.unit)
                             : fmt::format("floor {:.0f}%", *line.floor * 100);
}

void print_text(const Line& line) {
  std::cout << fmt::format("{:10} {:45} {:10.4g} {}", line.device, line.what, line.figure,
                           line.unit);
  if (line.peer_figure > 0) {
    std::cout << fmt::format("; {} {:.4g}: {:.1f}%", line.peer, line.peer_figure,
                             line.share() * 100);
  }
  std::cout << "; " << floor_text(line);
  if (const auto met = line.met()) std::cout << (*met ? " met" : " MISSED");
  if (!line.note.empty()) std::cout << " (" << line.note << ")";
  std::cout << std::endl;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + "\"";
}

std::string json_of(const Line& line) {
  return fmt::format(
      "{{\"device\": {}, \"what\": {}, \"unit\": {}, \"figure\": {:.6g}, \"peer\": {}, "
      "\"peer_figure\": {:.6g}, "
      "\"share\": {:.4f}, \"floor\": {}, \"met\": {}, \"note\": {}}}",
      quoted(line.device), quoted(line.what), quoted(line.unit), line.figure, quoted(line.peer),
      line.peer_figure, line.share(), line.floor ? fmt::format("{:g}", *line.floor) : "null",
      line.met() ? (*line.met() ? "true" : "false") : "null", quoted(line.note));
}

struct Options {
  std::string device;
  bool json = false, enforce = false;
};

int run(const Options& options) {
  std::vector<Device> devices;
  if (!options.device.empty()) {
    devices.push_back(Device::named(options.device));
  } else {
    for (const BackendReport& report : discover_backends()) {
      for (const auto& driver : report.devices) devices.emplace_back(driver, "");
    }
  }
  std::vector<Line> lines;
  const auto add = [&](const Line& line) {
    lines.push_back(line);
    if (!options.json) print_text(line);
  };
  for (const Device& device : devices) {
    std::cerr << fmt::format("{}: {}\n", device.id(), device.name());
    add(bench_copy(device));
    for (const Line& line : bench_products(device)) add(line);
    add(bench_replay(device));
    add(bench_load(device));
  }
  bool met = true;
  std::string json;
  for (const Line& line : lines) {
    met = met && line.met().value_or(true);
    json += (json.empty() ? "  " : ",\n  ") + json_of(line);
  }
  if (options.json) std::cout << "[\n" << json << "\n]\n";
  return options.enforce && !met ? 1 : 0;
}

}  // namespace
}  // namespace prism::bench

int main(int count, char** words) {
  prism::bench::Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--json")
      options.json = true;
    else if (word == "--enforce")
      options.enforce = true;
    else if (word == "--device" && i + 1 < count)
      options.device = words[++i];
    else {
      std::cerr << "usage: bench_devices [--device D] [--json] [--enforce]\n";
      return 2;
    }
  }
  try {
    return prism::bench::run(options);
  } catch (const prism::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
