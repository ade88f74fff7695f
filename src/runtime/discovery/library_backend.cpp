// Locates and probes the library, then forwards to its discovery.
#include "runtime/discovery/library_backend.h"

#include <cstdlib>

namespace prism {
namespace {

class LibraryBackend final : public Backend {
 public:
  explicit LibraryBackend(LibraryBackendParts parts) : parts_(std::move(parts)) {
    const char* variable = std::getenv(parts_.variable.c_str());
    if (parts_.file.empty() && variable) parts_.file = variable;
    const std::string& given = parts_.file;
    const bool bare = given.find('/') == std::string::npos;
    file_ =
        given.empty() ? find_library(parts_.names) : find_library({bare ? "./" + given : given});
    // Probe here rather than in discover(), which runs concurrently with other drivers' threads.
    if (!file_.empty())
      probe_ = probe_library(file_, parts_.name, [this](const std::string& file) {
        const Discovery found = parts_.devices_of(file);
        return found.found.empty() ? found.reason : "";
      });
  }
  std::string name() const override { return parts_.name; }
  std::string label() const override { return parts_.label; }

  Discovery discover() override {
    const auto lock =
        parts_.alone ? std::unique_lock(*parts_.alone) : std::unique_lock<std::mutex>();
    Discovery found;
    found.reason = probe_.reason;
    if (!file_.empty() && probe_.usable())
      found = parts_.devices_of(file_);
    else if (file_.empty())
      found.reason = parts_.file.empty() ? "no " + parts_.label + " library was found"
                                         : parts_.variable + "=" + parts_.file + " is no file";
    if (found.devices.empty() && found.next_step.empty()) found.next_step = parts_.next_step;
    return found;
  }

 private:
  LibraryBackendParts parts_;
  std::string file_;
  ProbeResult probe_;
};

}  // namespace

std::unique_ptr<Backend> make_library_backend(LibraryBackendParts parts) {
  return std::make_unique<LibraryBackend>(std::move(parts));
}

}  // namespace prism
