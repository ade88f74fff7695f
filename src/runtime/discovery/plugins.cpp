// Opens, probes and wraps plug-in libraries.
#include "runtime/discovery/plugins.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/system/dynamic_library.h"
#include "base/system/probe_library.h"
#include "prism/error.h"
#include "runtime/discovery/plugin.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

std::string try_plugin(const std::string& file) {
  std::string reason;
  const auto backend = open_plugin(file, &reason);
  return backend && backend->name().empty() ? file + " has a backend without a name" : reason;
}

// A plug-in's backend and the file it was loaded from.
class PluginBackend final : public Backend {
 public:
  PluginBackend(std::unique_ptr<Backend> inner, std::string file)
      : inner_(std::move(inner)), file_(std::move(file)) {}
  std::string name() const override { return inner_->name(); }
  std::string label() const override { return inner_->label(); }
  Discovery discover() override {
    Discovery found = inner_->discover();
    found.found += fmt::format("{}plug-in {}", found.found.empty() ? "" : ", ", file_);
    return found;
  }
  bool starts_driver() const override { return inner_->starts_driver(); }
  std::string set_up(const std::function<void(const std::string&)>& progress) override {
    return inner_->set_up(progress);
  }

 private:
  std::unique_ptr<Backend> inner_;
  std::string file_;
};

class RefusedPlugin final : public Backend {
 public:
  RefusedPlugin(std::string name, std::string reason)
      : name_(std::move(name)), reason_(std::move(reason)) {}
  std::string name() const override { return name_; }
  std::string label() const override { return name_; }
  Discovery discover() override {
    Discovery found;
    found.reason = reason_;
    found.next_step = "remove the file from the folder PRISM_PLUGINS names, or build it again";
    return found;
  }
  bool starts_driver() const override { return false; }

 private:
  std::string name_, reason_;
};

bool is_library(const fs::path& path) {
  const std::string end = path.extension().string();
  return end == ".so" || end == ".dylib" || end == ".dll";
}

}  // namespace

std::unique_ptr<Backend> open_plugin(const std::string& file, std::string* reason) {
  DynamicLibrary library = DynamicLibrary::open_first({file}, reason);
  if (!library) return nullptr;
  const auto entry = library.function<PluginEntry>(kPluginEntry);
  if (!entry) {
    *reason = fmt::format("{} has no function {}", file, kPluginEntry);
    return nullptr;
  }
  std::unique_ptr<Backend> backend(entry(kPluginInterface));
  if (!backend)
    *reason = fmt::format("{} was built for another version of Prism; build it again", file);
  library.keep_open();
  return backend;
}

void add_plugins(std::vector<std::unique_ptr<Backend>>& backends, const std::string& folder) {
  if (folder.empty()) return;
  std::error_code failed;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder, failed))
    if (is_library(entry.path())) files.push_back(entry.path().string());
  if (failed) {
    throw Error(ErrorCode::kNotFound, fmt::format("PRISM_PLUGINS={}: the folder cannot be read: {}",
                                                  folder, failed.message()));
  }
  std::ranges::sort(files);
  for (const std::string& file : files) {
    std::string reason = probe_library(file, "plug-in", try_plugin).reason;
    std::unique_ptr<Backend> made;
    if (reason.empty()) made = open_plugin(file, &reason);
    if (made)
      made = std::make_unique<PluginBackend>(std::move(made), file);
    else
      made = std::make_unique<RefusedPlugin>(fs::path(file).stem().string(), reason);
    const auto at = [&](const std::string& name) {
      return std::ranges::find_if(backends, [&](const auto& b) { return b->name() == name; });
    };
    if (const auto same = at(made->name()); same != backends.end())
      *same = std::move(made);
    else
      backends.insert(at("cpu"), std::move(made));
  }
}

}  // namespace prism
