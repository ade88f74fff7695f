// Implements the folder of a prompt cache: its names, its writer and its limit.
#include "llm/generate/prompt_store.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/cache_folder.h"
#include "base/system/input_file.h"
#include "base/system/output_file.h"
#include "base/system/start_thread.h"
#include "base/units.h"
#include "prism/error.h"
#include "prism/warning.h"

namespace prism::llm {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".prompt";
// What may wait for the disk. Beyond it blocks are dropped, rather than delay texts.
constexpr uint64_t kMostQueued = uint64_t{512} << 20;

// The blocks of a prefix are as old as its last use, and a block is older than those before it: a
// prefix without its end is of use, one without its beginning is not.
void touch(const fs::path& path, uint64_t depth) {
  std::error_code ignored;
  fs::last_write_time(
      path,
      fs::file_time_type::clock::now() - std::chrono::milliseconds(static_cast<int64_t>(depth)),
      ignored);
}

fs::path absolute(const std::string& folder) {
  std::error_code failed;  // the current folder may be gone
  const fs::path whole = fs::absolute(folder, failed);
  return (failed ? fs::path(folder) : whole).lexically_normal();
}

}  // namespace

PromptStore::PromptStore(const std::string& folder, uint64_t most_bytes, const std::string& model,
                         std::string layout)
    : folder_(absolute(folder)),
      most_bytes_(most_bytes),
      start_(fmt::format("{}-{}-", model.substr(0, 16), layout.substr(0, 8))),
      layout_(std::move(layout)) {
  if (!folder_.has_filename()) folder_ = folder_.parent_path();  // "folder/"
  make_private_folder(folder_, "the prompt cache", "give --prompt-cache a folder of your own");
  size_t others = 0;
  std::error_code failed;
  const std::string of_model = start_.substr(0, start_.find('-') + 1);
  for (fs::directory_iterator each(folder_, failed), end; !failed && each != end;
       each.increment(failed)) {
    const std::string name = each->path().filename().string();
    others += name.ends_with(kEnding) && name.starts_with(of_model) && !name.starts_with(start_);
  }
  if (others > 0)
    warn(
        fmt::format("prompt cache: {} files in {} have another cache type, block size or format; "
                    "they are not used, and removed when the folder is full",
                    others, folder_.string()));
  remove_oldest();
  thread_ = start_thread("prompt cache", [this] { run(); });
}

PromptStore::~PromptStore() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::string PromptStore::path_of(const std::string& key) const {
  return (folder_ / fmt::format("{}{}{}", start_, key, kEnding)).string();
}

bool PromptStore::has(const std::string& key) const {
  std::error_code ignored;
  return fs::is_regular_file(path_of(key), ignored);
}

std::optional<PromptStore::Block> PromptStore::read(const std::string& key, uint64_t depth,
                                                    uint64_t most_bytes) {
  const std::string path = path_of(key);
  try {
    if (!has(key)) return std::nullopt;
    Block block;
    block.bytes = read_input_file(path, most_bytes);
    block.file = PromptFile::parse(std::as_bytes(std::span(block.bytes)));
    const PromptFile& file = block.file;
    if (file.layout != layout_ || PromptFile::key(file.layout, file.parent, file.tokens) != key)
      throw Error(ErrorCode::kCorruptFile, "prompt cache: the file is not the one of its name");
    touch(path, depth);
    return block;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotFound) return std::nullopt;  // removed by another process
    std::error_code ignored;
    fs::remove(path, ignored);
    warn_once(fmt::format("{}: {}; it was removed, and its tokens are computed again", path,
                          error.what()));
    return std::nullopt;
  }
}

void PromptStore::warn_once(const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(has_warned_, true)) return;
  }
  warn(text);
}

bool PromptStore::is_full() const {
  const std::lock_guard lock(mutex_);
  return has_failed_ || queued_bytes_ > kMostQueued;
}

void PromptStore::write(const std::string& key, uint64_t depth, std::vector<std::byte> bytes) {
  if (is_full() || bytes.size() > most_bytes_) return;
  {
    const std::lock_guard lock(mutex_);
    queued_bytes_ += bytes.size();
    jobs_.push_back({path_of(key), depth, std::move(bytes)});
  }
  changed_.notify_all();
}

void PromptStore::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return jobs_.empty() && !is_writing_; });
}

void PromptStore::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    queued_bytes_ -= job.bytes.size();
    is_writing_ = true;
    const bool is_last = jobs_.empty(), has_failed = has_failed_;
    lock.unlock();
    try {
      if (!has_failed) {
        OutputFile file(job.path, FileKind::owner_only);
        file.write(job.bytes);
        file.commit();
        touch(job.path, job.depth);
        if (is_last) remove_oldest();
      }
      lock.lock();
    } catch (const std::exception& error) {
      warn_once(fmt::format("prompt cache: {}; no further prompts are kept", error.what()));
      lock.lock();
      has_failed_ = true;
    }
    is_writing_ = false;
    changed_.notify_all();
  }
}

void PromptStore::remove_oldest() const {
  struct Kept {
    fs::path path;
    fs::file_time_type used;
    uint64_t bytes = 0;
  };
  std::vector<Kept> files;
  uint64_t sum = 0;
  std::error_code failed;
  for (fs::directory_iterator each(folder_, failed), end; !failed && each != end;
       each.increment(failed)) {
    std::error_code gone;
    if (!each->path().string().ends_with(kEnding) || !each->is_regular_file(gone)) continue;
    Kept kept{each->path(), each->last_write_time(gone), each->file_size(gone)};
    if (gone) continue;
    sum += kept.bytes;
    files.push_back(std::move(kept));
  }
  if (sum <= most_bytes_) return;
  std::ranges::sort(files, {}, &Kept::used);
  for (const Kept& each : files) {
    if (sum <= most_bytes_) return;
    std::error_code ignored;
    if (fs::remove(each.path, ignored)) sum -= each.bytes;
  }
}

}  // namespace prism::llm
