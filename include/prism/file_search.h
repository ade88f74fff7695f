// Search over a person's own files by words and by meaning, in one index file.
//
//   search::FileIndex index = search::FileIndex::open_or_create("notes.index");
//   index.update({"/home/me/notes"});
//   for (const search::FoundPassage& each : index.search("a cake without eggs").passages)
//     std::cout << each.path << ":" << each.first_line << "\n" << each.text << "\n";
//
// Without an embedder the index holds words only; with one also the vectors of its passages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prism/search.h"

#pragma GCC visibility push(default)

namespace prism::search {

// Turns texts into vectors of length 1.
struct PassageEmbedder {
  std::string name;  // kept in the index, because vectors of different models cannot be compared
  uint64_t width = 0;
  uint64_t max_tokens = 256;  // of a text; more are ignored
  std::function<uint64_t(std::string_view text)> count_tokens;
  std::function<std::vector<std::vector<float>>(std::span<const std::string> texts)> embed;
};

enum class ContentKind : uint8_t { code, text };
enum class Ranking { hybrid, vectors, words };

// First all files are read, and their words can be searched; then passages are embedded.
struct UpdateProgress {
  uint64_t files = 0, files_done = 0;  // 0 files: folders are being listed
  uint64_t passages = 0;               // without a vector when the embedding began
  uint64_t embedded = 0;               // of them
  double seconds = 0;                  // since the files, or the embedding, began
};

struct UpdateOptions {
  const PassageEmbedder* embedder = nullptr;
  // Called often; false ends the update after a commit of what is done.
  std::function<bool(const UpdateProgress&)> progress = {};
  double commit_seconds = 10;  // between two commits
};

struct UpdateResult {
  uint64_t files = 0;     // found, that can be searched
  uint64_t changed = 0;   // new or different since the last update
  uint64_t removed = 0;   // no longer there
  uint64_t passages = 0;  // of all files of the index
  uint64_t embedded = 0;  // vectors computed; unchanged and moved passages have theirs
  uint64_t binary = 0, large = 0, minified = 0;  // files left out
  std::vector<std::string> unreadable;           // "path: reason"
  bool is_complete = true;                       // false: progress ended it
  double seconds = 0;
};

struct FileSearchOptions {
  uint64_t count = 10;
  Ranking ranking = Ranking::hybrid;
  std::optional<ContentKind> only = std::nullopt;
  std::string under = {};                     // a folder or file: only what is in it
  uint64_t per_file = 2;                      // passages of one file, so that none fills the page
  const PassageEmbedder* embedder = nullptr;  // words only without it
};

enum class Freshness : uint8_t { fresh, changed, missing };  // the file, against the index

// A part of a passage's text that answers a word of the question.
struct MarkedRange {
  uint64_t begin, end;  // bytes
};

struct FoundPassage {
  std::string path;
  uint64_t first_line, last_line;
  uint64_t best_line;   // the one with most words of the question; else the first
  std::string context;  // headings, or the first lines of the blocks around it; may be empty
  std::string text;
  std::vector<MarkedRange> marks;
  ContentKind kind;
  double score;
  std::optional<uint64_t> word_rank, vector_rank;  // from 1
  Freshness freshness;
};

struct FileSearchResult {
  std::vector<FoundPassage> passages;  // the best first
  Ranking ranking;                     // words where the index or the search has no vectors
};

struct FileIndexInfo {
  std::string path;
  std::vector<std::string> roots;  // the folders that were indexed
  std::string embedder;            // empty: words only
  uint64_t files = 0, passages = 0, vectors = 0;
  uint64_t file_bytes = 0;
  int64_t updated = 0;  // seconds since 1970
};

// One process may update a file, while others search it. Functions may be called from one thread at
// a time.
class FileIndex {
 public:
  // Throws kNotFound, kCorruptFile, and kIo if another process has it open for writing.
  static FileIndex open(const std::string& path, Access access = Access::read);
  static FileIndex open_or_create(const std::string& path);  // for writing
  ~FileIndex();
  FileIndex(FileIndex&&) noexcept;
  FileIndex& operator=(FileIndex&&) noexcept;

  // Brings the index up to date with these folders and files: new, changed and deleted files.
  // Contents are compared, so a moved file costs no embedding. Commits as it goes. Throws kNotFound
  // for a missing path, kInvalidArgument for an embedder other than the index's, and kIo (a full
  // disk); what was committed before stays.
  UpdateResult update(const std::vector<std::string>& paths, const UpdateOptions& options = {});

  // Throws kInvalidArgument for an empty question or an embedder other than the index's.
  FileSearchResult search(const std::string& question, const FileSearchOptions& options = {}) const;

  void refresh();  // for readers: what a writer has committed since
  FileIndexInfo info() const;

 private:
  friend class FileUpdate;
  friend class FileSearch;
  struct State;
  explicit FileIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The index file of a folder in the cache folder, whether it exists or not.
std::string file_index_path(const std::string& folder);
// The existing index of the folder (or file) or of the nearest folder around it.
std::optional<std::string> nearest_file_index(const std::string& path);

}  // namespace prism::search

#pragma GCC visibility pop
