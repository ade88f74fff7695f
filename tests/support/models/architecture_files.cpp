// Unpacks the archive of tiny models.
#include "support/models/architecture_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "support/paths.h"

namespace prism::test {

namespace {

namespace fs = std::filesystem;

// A folder that is removed when the process ends.
struct Unpacked {
  std::string folder = (fs::temp_directory_path() / "prism-architectures-XXXXXX").string();
  std::vector<ArchitectureFile> files;

  Unpacked() {
    const fs::path archive = shared_dir() / "expected" / "architectures.tar.xz";
    if (!fs::exists(archive) || !mkdtemp(folder.data())) return;
    const std::string unpack =
        fmt::format("tar -xJf '{}' -C '{}' 2>/dev/null", archive.string(), folder);
    if (std::system(unpack.c_str()) != 0) return;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".gguf") files.push_back(read(entry.path()));
    std::ranges::sort(files, {}, &ArchitectureFile::name);
  }
  ~Unpacked() {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }

  static ArchitectureFile read(fs::path path) {
    ArchitectureFile file;
    file.name = path.stem().string();
    file.path = path.string();
    std::ifstream tokens(path.replace_extension(".tokens"));
    for (int32_t id = 0; tokens >> id; tokens.ignore()) file.tokens.push_back(id);
    std::ifstream logits(path.replace_extension(".logits"), std::ios::binary | std::ios::ate);
    file.logits.resize(static_cast<size_t>(logits.tellg()) / sizeof(float));
    logits.seekg(0);
    logits.read(reinterpret_cast<char*>(file.logits.data()),
                static_cast<std::streamsize>(file.logits.size() * sizeof(float)));
    return file;
  }
};

}  // namespace

const std::vector<ArchitectureFile>& architecture_files() {
  static const Unpacked unpacked;
  return unpacked.files;
}

}  // namespace prism::test
