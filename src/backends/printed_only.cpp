#include "backends/printed_only.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

namespace prism {
namespace {

namespace fs = std::filesystem;

struct Description {
  const char* name;
  const char* label;
  const char* library;   // how the file's name starts
  const char* variable;  // names the vendor's folder; may be null
  const char* usual_folder;
  const char* instead;  // the next step
};

constexpr Description kDescriptions[] = {
    {"metal", "Metal", "Metal.framework", nullptr, "/System/Library/Frameworks",
     "on macOS the GPU is used through Vulkan (brew install molten-vk) or OpenCL"},
};

// The library's file, found without opening it: opening would start a run-time that is not used.
std::string find_file(const Description& description) {
  std::vector<fs::path> folders;
  if (const char* path = std::getenv("LD_LIBRARY_PATH")) {
    const std::string_view listed = path;
    for (size_t start = 0; start < listed.size();) {
      const size_t end = std::min(listed.find(':', start), listed.size());
      if (end > start) folders.emplace_back(listed.substr(start, end - start));
      start = end + 1;
    }
  }
  if (description.variable && std::getenv(description.variable)) {
    const fs::path root = std::getenv(description.variable);
    folders.insert(folders.end(), {root / "lib", root / "compiler/latest/lib"});
  }
  const fs::path usual = description.usual_folder;
  folders.insert(folders.end(),
                 {usual, usual / "lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                  "/usr/lib64", "/usr/lib", "/usr/local/lib", "/opt/homebrew/lib"});
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    std::string best;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      // The shortest name is the one programs open: libx.so before libx.so.5.2.
      if (name.starts_with(description.library) && (best.empty() || name.size() < best.size()))
        best = name;
    }
    if (!best.empty()) return (folder / best).string();
  }
  return "";
}

class PrintedOnlyBackend final : public Backend {
 public:
  explicit PrintedOnlyBackend(const Description& description) : description_(description) {}
  std::string name() const override { return description_.name; }
  std::string label() const override { return description_.label; }
  Discovery discover() override {
    Discovery discovery;
    discovery.found = find_file(description_);
    discovery.reason =
        fmt::format("Prism prints {} kernels but does not yet run them ({} on this machine)",
                    description_.label,
                    discovery.found.empty() ? fmt::format("no {}", description_.library)
                                            : discovery.found + " is");
    discovery.next_step = description_.instead;
    return discovery;
  }

 private:
  const Description& description_;
};

}  // namespace

std::unique_ptr<Backend> make_printed_only_backend(const std::string& name) {
  const auto* found =
      std::ranges::find_if(kDescriptions, [&](const Description& d) { return name == d.name; });
  assert(found != std::end(kDescriptions));
  return std::make_unique<PrintedOnlyBackend>(*found);
}

}  // namespace prism
