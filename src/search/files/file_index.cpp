// Opens and creates indexes of files, and finds them in the cache folder.
#include "prism/file_search.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/cache_folder.h"
#include "base/json.h"
#include "prism/error.h"
#include "search/files/file_index_state.h"
#include "search/files/file_walk.h"

namespace prism::search {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFormat = 1;

// Creates the file without replacing one that another process has made meanwhile.
void create(const std::string& path) {
  Index empty({.width = 1});
  empty.attach("about", AboutIndex().text());
  static constexpr const char* kTemporary = ".new";
  const std::string temporary = fmt::format(
      "{}{}-{:x}", path, kTemporary,
      reinterpret_cast<uintptr_t>(&empty) ^
          static_cast<uintptr_t>(fs::file_time_type::clock::now().time_since_epoch().count()));
  empty.save(temporary);
  std::error_code failed;
  fs::create_hard_link(temporary, path, failed);
  if (failed && failed != std::errc::file_exists) {  // a file system without links
    failed.clear();
    if (!fs::exists(path)) fs::rename(temporary, path, failed);
  } else {
    failed.clear();
  }
  std::error_code ignored;
  fs::remove(temporary, ignored);
  if (failed)
    throw Error(ErrorCode::kIo, fmt::format("{}: cannot be created: {}", path, failed.message()));
}

}  // namespace

std::string AboutIndex::text() const {
  return Json{
      {"format", kFormat}, {"embedder", embedder}, {"roots", Json(roots)}, {"updated", updated}}
      .dump();
}

AboutIndex AboutIndex::parse(const std::string& path, const Index& index) {
  const std::optional<Attachment> text = index.attachment("about");
  if (!text)
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: is an index of plain vectors, not of files; search it with prism "
                            "vectors search",
                            path));
  try {
    const Json json = Json::parse(text->text());
    const JsonView top(json);
    if (top["format"].integer() != kFormat)
      top["format"].fail(
          fmt::format("is {}; this program reads {}", top["format"].integer(), kFormat));
    AboutIndex about{top["embedder"].string(), {}, top["updated"].integer()};
    for (const JsonView& root : top["roots"].items()) about.roots.push_back(root.string());
    return about;
  } catch (const Error& error) {
    throw Error(
        ErrorCode::kCorruptFile,
        fmt::format("{}: cannot be read: {}; delete the file and index again", path, error.what()));
  }
}

void FileIndex::State::check_embedder(const PassageEmbedder& embedder) const {
  if (about.embedder.empty() || about.embedder == embedder.name) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: its vectors were made by {}, and cannot be compared with those of "
                          "{}; delete the file and index again, or use another --index FILE",
                          path, about.embedder, embedder.name));
}

FileIndex::FileIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
FileIndex::~FileIndex() = default;
FileIndex::FileIndex(FileIndex&&) noexcept = default;
FileIndex& FileIndex::operator=(FileIndex&&) noexcept = default;

FileIndex FileIndex::open(const std::string& path, Access access) {
  return FileIndex(std::make_unique<State>(path, Index::open(path, access)));
}

FileIndex FileIndex::open_or_create(const std::string& path) {
  if (!fs::exists(path)) create(path);
  return open(path, Access::write);
}

void FileIndex::refresh() {
  state_->index.refresh();
  state_->read();
}

FileIndexInfo FileIndex::info() const {
  const IndexInfo facts = state_->index.info();
  FileIndexInfo info;
  info.path = state_->path;
  info.roots = state_->about.roots;
  info.embedder = state_->about.embedder;
  info.files = state_->catalogue.files();
  info.passages = state_->catalogue.passages();
  info.vectors = facts.vectors;
  info.file_bytes = facts.file_bytes;
  info.updated = state_->about.updated;
  return info;
}

std::string file_index_path(const std::string& folder) {
  return (required_cache_folder() / "files" / (hash_text(whole_path(folder)) + ".index")).string();
}

std::optional<std::string> nearest_file_index(const std::string& path) {
  for (fs::path folder = whole_path(path);; folder = folder.parent_path()) {
    const std::string index = file_index_path(folder.string());
    std::error_code failed;
    if (fs::exists(index, failed)) return index;
    if (folder == folder.parent_path()) return std::nullopt;
  }
}

}  // namespace prism::search
