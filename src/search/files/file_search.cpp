// Searches an index of files by words, by vectors or by both.
#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "prism/error.h"
#include "search/files/file_index_state.h"
#include "search/files/file_walk.h"
#include "search/files/words.h"

namespace prism::search {
namespace {

namespace fs = std::filesystem;

// Reciprocal rank fusion (Cormack et al., 2009): the sum of 1 / (60 + rank) over the rankings.
constexpr double kFusion = 60;
constexpr uint64_t kLeastCandidates = 100, kMostCandidates = 2000;

struct Candidate {
  PassageAt at;
  double score = 0;
  std::optional<uint64_t> word_rank, vector_rank;
};

uint64_t key_of(PassageAt at) { return uint64_t{at.part} << 32 | at.passage; }

}  // namespace

Freshness freshness_of(const FileRecord& file) {
  const std::string path(file.path);
  std::error_code failed;
  const uint64_t bytes = fs::file_size(path, failed);
  if (failed) return Freshness::missing;
  if (bytes != file.bytes) return Freshness::changed;
  const fs::file_time_type time = fs::last_write_time(path, failed);
  const auto modified =
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  if (!failed && modified == file.modified) return Freshness::fresh;
  try {
    return content_hash(read_content(path).text) == file.hash ? Freshness::fresh
                                                              : Freshness::changed;
  } catch (const Error&) {
    return Freshness::missing;
  }
}

class FileSearch {
 public:
  FileSearch(const FileIndex::State& state, const std::string& question,
             const FileSearchOptions& options)
      : state_(state),
        catalogue_(state.catalogue),
        options_(options),
        question_(question),
        words_(question_words(question)) {
    if (options.count == 0 || options.count > kMostCandidates)
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("search: {} results; there can be 1 to {}", options.count, kMostCandidates));
    if (question.find_first_not_of(" \t\r\n") == question.npos)
      throw Error(ErrorCode::kInvalidArgument, "search: the question is empty; ask for something");
    if (options.embedder) state.check_embedder(*options.embedder);
    if (!options.under.empty()) under_ = whole_path(options.under);
  }

  FileSearchResult run() {
    const bool has_vectors = options_.embedder && state_.index.info().vectors > 0;
    const Ranking ranking = has_vectors ? options_.ranking : Ranking::words;
    wanted_ = std::clamp(options_.count * 10, kLeastCandidates, kMostCandidates);
    if (ranking != Ranking::vectors) rank_by_words();
    if (ranking != Ranking::words) rank_by_vectors();
    std::ranges::sort(candidates_, {}, [](const Candidate& each) {
      return std::tuple(-each.score, each.at.part, each.at.passage);
    });
    FileSearchResult result{{}, ranking};
    pick(options_.per_file, result);
    return result;
  }

 private:
  bool is_allowed(PassageAt at) const {
    if (!options_.only && under_.empty()) return true;
    const FileRecord file = catalogue_.file_of(at);
    return (!options_.only || *options_.only == file.kind) &&
           (under_.empty() || is_under(file.path, under_));
  }

  Candidate& candidate(PassageAt at) {
    const auto [found, is_new] = places_.emplace(key_of(at), candidates_.size());
    if (is_new) candidates_.push_back({at, 0, std::nullopt, std::nullopt});
    return candidates_[found->second];
  }

  void rank_by_words() {
    uint64_t rank = 0;
    for (const ScoredPassage& each :
         catalogue_.best_by_words(words_, wanted_, [&](PassageAt at) { return is_allowed(at); })) {
      Candidate& found = candidate(each.at);
      found.word_rank = ++rank;
      found.score += 1 / (kFusion + static_cast<double>(rank));
    }
  }

  void rank_by_vectors() {
    const std::vector<std::vector<float>> vectors =
        options_.embedder->embed(std::span(&question_, 1));
    SearchOptions options;
    options.k = wanted_;
    if (options_.only || !under_.empty()) {
      std::unordered_set<uint64_t> ids;
      catalogue_.each_passage([&](PassageAt at, const PassageRecord& passage) {
        if (is_allowed(at)) ids.insert(passage.vector_id);
      });
      options.filter =
          Filter::where([ids = std::move(ids)](const Id& id) { return ids.contains(id.number()); });
    }
    uint64_t rank = 0;
    for (const Hit& hit : state_.index.search(vectors.at(0), options).hits) {
      ++rank;
      for (const PassageAt at : catalogue_.with_vector(hit.id.number())) {
        if (!is_allowed(at)) continue;
        Candidate& found = candidate(at);
        found.vector_rank = rank;
        found.score += 1 / (kFusion + static_cast<double>(rank));
      }
    }
  }

  // The best candidates, at most `per_file` of one file, and no text twice.
  void pick(uint64_t per_file, FileSearchResult& result) {
    std::unordered_map<std::string, uint64_t> of_file;
    std::unordered_set<uint64_t> texts;
    for (const Candidate& each : candidates_) {
      if (result.passages.size() == options_.count) return;
      const PassageRecord passage = catalogue_.passage(each.at);
      const FileRecord file = catalogue_.file_of(each.at);
      uint64_t& shown = of_file[std::string(file.path)];
      if (shown == per_file || !texts.insert(passage.vector_id).second) continue;
      ++shown;
      result.passages.push_back(found(each, passage, file));
    }
  }

  FoundPassage found(const Candidate& candidate, const PassageRecord& passage,
                     const FileRecord& file) const {
    FoundPassage made;
    made.path = file.path;
    made.first_line = passage.first_line;
    made.last_line = passage.last_line;
    made.context = passage.context;
    made.text = passage.text;
    made.kind = file.kind;
    made.score = candidate.score;
    made.word_rank = candidate.word_rank;
    made.vector_rank = candidate.vector_rank;
    made.freshness = freshness_of(file);
    mark(made);
    return made;
  }

  // Marks the words of the question, and finds the line with most different ones.
  void mark(FoundPassage& passage) const {
    std::unordered_map<uint64_t, std::unordered_set<std::string>> in_line;
    uint64_t line = passage.first_line;
    size_t counted = 0;
    each_word(passage.text, [&](const std::string& word, size_t begin, size_t end) {
      if (std::ranges::find(words_, word) == words_.end()) return;
      if (begin >= counted) {
        line += static_cast<uint64_t>(
            std::count(passage.text.begin() + static_cast<ptrdiff_t>(counted),
                       passage.text.begin() + static_cast<ptrdiff_t>(begin), '\n'));
        counted = begin;
      }
      in_line[line].insert(word);
      // An identifier comes before its parts.
      if (passage.marks.empty() || begin >= passage.marks.back().end)
        passage.marks.push_back({begin, end});
    });
    passage.best_line = passage.first_line;
    size_t most = 0;
    for (uint64_t each = passage.first_line; each <= passage.last_line; ++each) {
      const auto here = in_line.find(each);
      if (here == in_line.end() || here->second.size() <= most) continue;
      most = here->second.size();
      passage.best_line = each;
    }
  }

  const FileIndex::State& state_;
  const Catalogue& catalogue_;
  const FileSearchOptions& options_;
  std::string question_;
  std::vector<std::string> words_;
  std::string under_;
  uint64_t wanted_ = 0;
  std::vector<Candidate> candidates_;
  std::unordered_map<uint64_t, size_t> places_;
};

FileSearchResult FileIndex::search(const std::string& question,
                                   const FileSearchOptions& options) const {
  return FileSearch(*state_, question, options).run();
}

}  // namespace prism::search
