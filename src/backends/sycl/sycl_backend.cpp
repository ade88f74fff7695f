// Finding the plug-in and what it finds.
#include "backends/sycl/sycl_backend.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "backends/sycl/sycl_device.h"
#include "base/cache.h"
#include "base/driver_start.h"

namespace prism {
namespace {

namespace fs = std::filesystem;
using namespace sycl_backend;

constexpr const char* kLibrary = "libprism_sycl.so";
// The best first. Not 32 before 16: in groups of 32 Intel's CPU compiler multiplies wrongly (seen
// in 2026.22: 21168 * 31 in the kernel many_groups).
constexpr uint32_t kPreferredSubgroups[] = {16, 32, 8, 64};

// Named by the user, beside the program, in the folder of libraries beside that, then the system's.
std::vector<std::string> places(const std::string& given) {
  std::vector<std::string> names;
  if (!given.empty()) return {given};
  if (const char* named = std::getenv("PRISM_SYCL_LIBRARY")) return {named};
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  if (!folder.empty())
    for (const char* part : {".", "../lib", "../lib64"})
      names.push_back((folder / part / kLibrary).string());
  names.emplace_back(kLibrary);
  return names;
}

DeviceInfo info_of(const PrismSyclDevice& d, size_t number) {
  DeviceInfo info;
  info.id = fmt::format("sycl:{}", number);
  info.backend = "sycl";
  info.name = d.name;
  info.vendor = d.vendor;
  info.card = d.card[0] ? d.card : info.id;
  info.driver = fmt::format("{} {}", d.platform, d.driver);
  info.total_bytes = d.total_bytes;
  info.unified = d.unified;
  info.software = d.is_cpu;
  info.compute_units = d.compute_units;
  ir::Capabilities& c = info.capabilities;
  c.dialect = "sycl";
  c.storage_bf16 = c.math_i64 = c.float_atomics = c.precise_math = true;
  c.math_f16 = d.f16;
  c.math_f64 = d.f64;
  c.max_group_size = std::min(d.largest_group, 1024u);
  c.shared_bytes = static_cast<uint32_t>(std::min<uint64_t>(d.shared_bytes, 1u << 20));
  c.max_binding_bytes = d.largest_allocation;
  c.max_groups = {0x7fffffffu / std::max(1u, c.max_group_size), 65535, 65535};
  for (const uint32_t* size = d.subgroup_sizes; *size; ++size) c.subgroup_sizes.push_back(*size);
  for (const uint32_t size : kPreferredSubgroups)
    if (c.subgroup_size == 0 && std::ranges::count(c.subgroup_sizes, size)) c.subgroup_size = size;
  return info;
}

class SyclBackend final : public Backend {
 public:
  explicit SyclBackend(std::string given) : given_(std::move(given)) {}
  std::string name() const override { return "sycl"; }
  std::string label() const override { return "SYCL"; }
  Discovery discover() override {
    // SYCL starts every driver of OpenCL; PoCL 3.1 crashes when OpenCL's backend does so too.
    const std::scoped_lock lock(driver_start_mutex());
    Discovery found;
    // SYCL's compiler keeps what it made beside what the other backends keep.
    setenv("SYCL_CACHE_PERSISTENT", "1", 0);
    setenv("SYCL_CACHE_DIR", (cache_folder() / "sycl").c_str(), 0);
    auto plugin = std::make_shared<Plugin>();
    std::string reason;
    plugin->library = DynamicLibrary::open_first(places(given_), &reason);
    if (!plugin->library) {
      found.reason = fmt::format("{} cannot be opened ({})", kLibrary, reason);
      found.next_step =
          "install Intel's oneAPI runtime and headers and build Prism again (docs/backends.md); an "
          "Intel GPU is also used through Vulkan or OpenCL";
      return found;
    }
    plugin->library.keep_open();
    const auto entry = plugin->library.function<PrismSyclEntry>("prism_sycl_api");
    plugin->api = entry ? entry() : nullptr;
    found.found = plugin->library.name();
    if (!plugin->api || plugin->api->version != kPrismSyclVersion) {
      found.reason = fmt::format("{} is of another version of Prism", found.found);
      found.next_step = "build it with this program";
      return found;
    }
    const PrismSyclDevice* list = nullptr;
    size_t count = 0;
    if (plugin->api->devices(&list, &count) != kPrismSyclDone) {
      found.reason = fmt::format("SYCL cannot list its devices: {}", plugin->api->message());
      found.next_step = "see docs/backends.md, SYCL";
      return found;
    }
    for (size_t i = 0; i < count; ++i)
      found.devices.push_back(std::make_shared<Device>(plugin, i, info_of(list[i], i)));
    if (count == 0) {
      found.reason = "SYCL finds no device that its run-time compiler can compile for";
      found.next_step =
          "install a driver for it: intel-opencl-icd or intel-level-zero-gpu for Intel's GPUs";
    }
    return found;
  }

 private:
  std::string given_;
};

}  // namespace

std::unique_ptr<Backend> make_sycl_backend(const std::string& plugin) {
  return std::make_unique<SyclBackend>(plugin);
}

}  // namespace prism
