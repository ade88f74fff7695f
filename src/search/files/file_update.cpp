// Brings an index of files up to date.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <unordered_set>

#include <fmt/format.h>

#include "prism/error.h"
#include "search/files/file_index_state.h"
#include "search/files/file_walk.h"

namespace prism::search {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kPartBytes = 32 << 20;  // of texts in one part of the catalogue
constexpr size_t kEmbedChunk = 256;        // passages between two calls of progress
// A file may change again within the resolution of its time stamp.
constexpr int64_t kUnsafeNanoseconds = 2'000'000'000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t file_clock_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::filesystem::file_time_type::clock::now().time_since_epoch())
      .count();
}

}  // namespace

class FileUpdate {
 public:
  FileUpdate(FileIndex::State& state, const UpdateOptions& options)
      : state_(state), options_(options), started_(Clock::now()) {
    if (options.embedder) {
      limits_.max_tokens = options.embedder->max_tokens;
      limits_.count_tokens = options.embedder->count_tokens;
    }
  }

  UpdateResult run(const std::vector<std::string>& paths) {
    if (options_.embedder) use_embedder();
    find_files(paths);
    add_files();
    state_.about.updated = std::chrono::duration_cast<std::chrono::seconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
    for (const std::string& root : roots_) add_root(root);
    flush();
    if (options_.embedder && result_.is_complete) embed_missing();
    tidy_up();
    result_.passages = state_.catalogue.passages();
    result_.seconds = seconds_since(started_);
    return std::move(result_);
  }

 private:
  bool goes_on(const UpdateProgress& progress) {
    if (options_.progress && !options_.progress(progress)) result_.is_complete = false;
    return result_.is_complete;
  }

  // An index of words gets vectors: they need another width.
  void use_embedder() {
    state_.check_embedder(*options_.embedder);
    if (!state_.about.embedder.empty()) return;
    Index wider({.width = options_.embedder->width, .type = DType::f16});
    state_.about.embedder = options_.embedder->name;
    for (const std::string& name : state_.index.attachments())
      wider.attach(name, std::string(state_.index.attachment(name)->text()));
    wider.attach("about", state_.about.text());
    wider.save(state_.path);
    state_.index = Index::open(state_.path, Access::write);
    state_.read();
  }

  void add_root(const std::string& root) {
    std::vector<std::string>& roots = state_.about.roots;
    if (std::ranges::any_of(roots, [&](const auto& each) { return is_under(root, each); })) return;
    std::erase_if(roots, [&](const std::string& each) { return is_under(each, root); });
    roots.push_back(root);
  }

  void find_files(const std::vector<std::string>& paths) {
    goes_on({});
    for (const std::string& path : paths) {
      roots_.push_back(whole_path(path));
      Walk walk = walk_files(path, [&] { return goes_on({}); });
      std::ranges::move(walk.files, std::back_inserter(files_));
      std::ranges::move(walk.unreadable, std::back_inserter(unreadable_));
    }
    std::ranges::sort(files_, {}, &WalkedFile::path);
    // clang 14 has no std::ranges::unique for this library.
    const auto is_same = [](const WalkedFile& a, const WalkedFile& b) { return a.path == b.path; };
    files_.erase(std::unique(files_.begin(), files_.end(), is_same), files_.end());
  }

  void add_files() {
    const Clock::time_point start = Clock::now();
    std::unordered_set<std::string_view> kept;
    if (!result_.is_complete) return;
    for (size_t i = 0; i < files_.size(); ++i) {
      if (!goes_on({.files = files_.size(), .files_done = i, .seconds = seconds_since(start)}))
        return;
      if (add_file(files_[i])) kept.insert(files_[i].path);
      if (builder_.text_bytes() > kPartBytes) flush();
    }
    // What could not be read now may be readable again later.
    for (const UnreadablePath& each : unreadable_)
      result_.unreadable.push_back(each.path + ": " + each.reason);
    std::vector<std::string> gone;
    state_.catalogue.each_file([&](uint32_t, const FileRecord& file) {
      const auto is_around = [&](const std::string& folder) { return is_under(file.path, folder); };
      if (!kept.contains(file.path) && std::ranges::any_of(roots_, is_around) &&
          std::ranges::none_of(unreadable_, is_around, &UnreadablePath::path))
        gone.emplace_back(file.path);
    });
    result_.files = kept.size();
    result_.removed = gone.size();
    for (const std::string& path : gone) builder_.add_file({.path = path, .is_removed = true});
  }

  // False for a file without text.
  bool add_file(const WalkedFile& walked) {
    const std::optional<FileRecord> known = state_.catalogue.find(walked.path);
    if (known && known->bytes == walked.bytes && known->modified == walked.modified) return true;
    if (walked.bytes > kMaximumFileBytes) {
      ++result_.large;
      return false;
    }
    const int64_t read_at = file_clock_now();
    FileContent content;
    try {
      content = read_content(walked.path);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) unreadable_.push_back({walked.path, error.what()});
      return false;
    }
    if (content.unsearchable) {
      const Unsearchable why = *content.unsearchable;
      ++(why == Unsearchable::binary  ? result_.binary
         : why == Unsearchable::large ? result_.large
                                      : result_.minified);
      return false;
    }
    const ContentType type = content_type(walked.path);
    const ContentHash hash = content_hash(content.text);
    const bool is_same = known && known->hash == hash && known->kind == type.kind;
    result_.changed += is_same ? 0 : 1;
    // The time from before the read: a change meanwhile is seen by the next update.
    const bool is_safe = walked.modified < read_at - kUnsafeNanoseconds;
    builder_.add_file({.path = walked.path,
                       .kind = type.kind,
                       .bytes = walked.bytes,
                       .modified = is_safe ? walked.modified : 0,
                       .hash = hash});
    for (const Passage& each : split_text(content.text, type.structure, limits_)) {
      PassageRecord record;
      record.first_line = each.first_line;
      record.last_line = each.last_line;
      record.context = each.context;
      record.text = each.text;
      builder_.add_passage(record);
    }
    return true;
  }

  void flush() {
    if (builder_.files() > 0) Catalogue::add_part(state_.index, builder_);
    builder_ = {};
    state_.commit();
  }

  void embed_missing() {
    struct Missing {
      uint64_t id;
      PassageAt at;
      size_t bytes;
    };
    std::vector<Missing> missing;
    std::unordered_set<uint64_t> seen;
    state_.catalogue.each_passage([&](PassageAt at, const PassageRecord& passage) {
      if (!seen.insert(passage.vector_id).second || state_.index.contains(passage.vector_id))
        return;
      missing.push_back({passage.vector_id, at, passage.text.size() + passage.context.size()});
    });
    // Passages of similar length make full batches.
    std::ranges::sort(missing, {}, &Missing::bytes);
    const Clock::time_point start = Clock::now();
    Clock::time_point committed = start;
    for (size_t done = 0; done < missing.size();) {
      if (!goes_on({.files = files_.size(),
                    .files_done = files_.size(),
                    .passages = missing.size(),
                    .embedded = done,
                    .seconds = seconds_since(start)}))
        break;
      const auto chunk =
          std::span(missing).subspan(done, std::min(kEmbedChunk, missing.size() - done));
      std::vector<std::string> texts;
      for (const Missing& each : chunk)
        texts.push_back(state_.catalogue.passage(each.at).embedded_text());
      const std::vector<std::vector<float>> vectors = options_.embedder->embed(texts);
      for (size_t i = 0; i < chunk.size(); ++i) state_.index.add(chunk[i].id, vectors[i]);
      done += chunk.size();
      result_.embedded += chunk.size();
      if (seconds_since(committed) < options_.commit_seconds) continue;
      state_.index.commit();
      committed = Clock::now();
    }
    state_.index.commit();
  }

  // Removes vectors without a passage, and dead space.
  void tidy_up() {
    if (result_.changed + result_.removed > 0) {
      std::unordered_set<uint64_t> used;
      state_.catalogue.each_passage(
          [&](PassageAt, const PassageRecord& passage) { used.insert(passage.vector_id); });
      std::vector<Id> unused;
      state_.index.each([&](const Id& id, std::span<const float>) {
        if (!used.contains(id.number())) unused.push_back(id);
      });
      for (const Id& id : unused) state_.index.remove(id);
    }
    state_.catalogue.merge_parts(state_.index);
    state_.commit();
    const IndexInfo facts = state_.index.info();
    uint64_t needed = facts.vectors * facts.options.width * 2;
    for (const std::string& name : state_.index.attachments())
      needed += state_.index.attachment(name)->bytes;
    if (facts.file_bytes > 2 * needed + (uint64_t{1} << 20)) {
      state_.index.compact();
      state_.read();
    }
  }

  FileIndex::State& state_;
  const UpdateOptions& options_;
  Clock::time_point started_;
  SplitLimits limits_;
  UpdateResult result_;
  std::vector<std::string> roots_;
  std::vector<WalkedFile> files_;
  std::vector<UnreadablePath> unreadable_;
  CataloguePartBuilder builder_;
};

UpdateResult FileIndex::update(const std::vector<std::string>& paths,
                               const UpdateOptions& options) {
  return FileUpdate(*state_, options).run(paths);
}

}  // namespace prism::search
