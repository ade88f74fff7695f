// Selects the wheel, downloads and verifies it with pip, unpacks it and tests the result.
#include "backends/cuda/setup_cuda.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "backends/cuda/cuda_device.h"
#include "backends/cuda/nvrtc_search.h"
#include "base/cache_folder.h"
#include "base/system/pip_download.h"
#include "base/system/process.h"
#include "base/transfer_progress.h"

namespace prism::cuda {
namespace {

namespace fs = std::filesystem;
using Progress = std::function<void(const std::string&)>;

// A temporary folder next to its destination, removed afterwards.
class Workplace {
 public:
  explicit Workplace(const fs::path& folder)
      : path_(folder / fmt::format(".fetch-{:08x}", std::random_device{}())) {
    std::error_code failed;
    fs::create_directories(path_, failed);
    if (failed)
      throw Error(ErrorCode::kIo, fmt::format("setting up CUDA: cannot make {}: {}; set "
                                              "PRISM_CACHE_DIR to a folder that can be written",
                                              path_.string(), failed.message()));
  }
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::optional<fs::path> wheel_in(const fs::path& folder) {
  std::vector<fs::path> wheels;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("nvidia_cuda_nvrtc", 0) == 0 && entry.path().extension() == ".whl")
      wheels.push_back(entry.path());
  }
  if (wheels.empty()) return std::nullopt;
  return *std::max_element(wheels.begin(), wheels.end());
}

fs::path fetch(const WheelChoice& choice, const fs::path& into, const fs::path& home,
               const Progress& progress) {
  const std::string requirement = choice.package + choice.versions;
  progress("fetching " + requirement);
  std::string said;
  PipOptions how;
  how.line = [&](const std::string& line) {
    said += line + "\n";
    progress(line);
  };
  how.progress = [&](uint64_t done, uint64_t all) { report_transfer(choice.package, done, all); };
  const PipResult result = pip_download(requirement, into, how);
  if (!result.is_installed)
    throw Error(
        ErrorCode::kNotFound,
        fmt::format(
            "setting up CUDA: pip is needed to fetch {} and is missing; install it (Debian: apt "
            "install "
            "python3-pip), or put the package's wheel ({}) into {} and run this again, or install "
            "NVIDIA's CUDA toolkit",
            choice.package, requirement, home.string()));
  const auto wheel = wheel_in(into);
  if (!result.is_right || !wheel)
    throw Error(ErrorCode::kIo, fmt::format("setting up CUDA: pip could not fetch {}:\n{}is this "
                                            "machine online? Otherwise put the package's "
                                            "wheel into {} and run this again",
                                            requirement, said, home.string()));
  return *wheel;
}

void unpack(const fs::path& wheel, const fs::path& into) {
  // A wheel is a zip archive. Use Python if pip is available, else unzip or bsdtar (macOS,
  // Windows).
  std::string said;
  const auto note = [&](const std::string& line) { said += line + "\n"; };
  const std::string from = wheel.string(), to = into.string();
  std::error_code failed;
  fs::create_directories(into, failed);
  for (const auto& command :
       std::vector<std::vector<std::string>>{{"python3", "-I", "-m", "zipfile", "-e", from, to},
                                             {"python", "-I", "-m", "zipfile", "-e", from, to},
                                             {"unzip", "-q", "-o", from, "-d", to},
                                             {"tar", "-xf", from, "-C", to}})
    if (run_process(command, note) == 0) return;
  throw Error(
      ErrorCode::kIo,
      fmt::format("setting up CUDA: {} cannot be unpacked:\n{}is the wheel complete?", from, said));
}

// Why some card has no compiler (empty if all have one), and the compilers found.
struct Served {
  std::string reason;
  std::string compilers;
};
Served served_cards(const Api& api, const std::vector<int>& capabilities) {
  Compilers compilers(api.version);
  Served served;
  for (const int capability : capabilities) {
    Target target;
    std::string why;
    if (!compilers.find(capability, &target, &why) && served.reason.empty()) served.reason = why;
  }
  for (const auto& compiler : compilers.opened())
    served.compilers += fmt::format("{}NVRTC {}.{} ({})", served.compilers.empty() ? "" : ", ",
                                    compiler->version() / 1000, compiler->version() % 1000 / 10,
                                    compiler->library());
  return served;
}

std::vector<int> card_capabilities(const Api& api) {
  std::vector<int> capabilities;
  int count = 0;
  api.device_count(&count);
  for (int index = 0; index < count; ++index) {
    Ordinal ordinal = 0;
    if (api.device_get(&ordinal, index) != kSuccess) continue;
    const int capability = compute_capability(api, ordinal);
    if (capability >= kOldestCapability) capabilities.push_back(capability);
  }
  return capabilities;
}

}  // namespace

WheelChoice wheel_for(int driver_version, int oldest_capability) {
  const int major = driver_version / 1000, minor = driver_version % 1000 / 10;
  // NVRTC 13 dropped cards before Turing (7.5); a newer driver runs the output of NVRTC 12.
  if (major >= 13 && oldest_capability < 75) return {"nvidia-cuda-nvrtc-cu12", ">=12,<13"};
  // The package name has no suffix since 13.
  if (major >= 13) return {"nvidia-cuda-nvrtc", fmt::format(">=13,<{}.{}", major, minor + 1)};
  return {fmt::format("nvidia-cuda-nvrtc-cu{}", major),
          fmt::format(">={},<{}.{}", major, major, minor + 1)};
}

std::string set_up_cuda(const Progress& progress) {
  Absence absence;
  const auto api = open_api(&absence);
  if (!api)
    throw Error(ErrorCode::kNotFound,
                fmt::format("setting up CUDA: {}; {}", absence.reason, absence.next_step));
  const std::vector<int> capabilities = card_capabilities(*api);
  if (capabilities.empty())
    throw Error(ErrorCode::kNotFound,
                "setting up CUDA: the driver sees no card of compute capability 5.0 or newer; see "
                "what nvidia-smi says");
  if (const Served served = served_cards(*api, capabilities); served.reason.empty())
    return "nothing to fetch: " + served.compilers + " is here";

  const fs::path home = required_cache_folder() / "cuda";
  const Workplace workplace(home);
  const WheelChoice choice =
      wheel_for(api->version, *std::min_element(capabilities.begin(), capabilities.end()));
  const auto given = wheel_in(home);
  const fs::path wheel = given ? *given : fetch(choice, workplace.path(), home, progress);
  progress("unpacking " + wheel.filename().string());
  unpack(wheel, workplace.path() / "content");

  const fs::path place = home / wheel.stem();
  std::error_code failed;
  fs::rename(workplace.path() / "content", place, failed);
  if (failed) {  // left by an earlier attempt or another process; ours is complete, so replace it
    fs::remove_all(place, failed);
    fs::rename(workplace.path() / "content", place, failed);
  }
  if (failed && !fs::exists(place))
    throw Error(ErrorCode::kIo, fmt::format("setting up CUDA: cannot move NVRTC to {}: {}",
                                            place.string(), failed.message()));

  const Served served = served_cards(*api, capabilities);
  if (!served.reason.empty())
    throw Error(ErrorCode::kNotSupported,
                fmt::format("setting up CUDA: {} is unpacked in {}, but {}",
                            wheel.filename().string(), place.string(), served.reason));
  return fmt::format("{} is ready", served.compilers);
}

}  // namespace prism::cuda
