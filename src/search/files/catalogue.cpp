// Reads the parts of the catalogue, ranks by words and merges parts.
#include "search/files/catalogue.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_set>

#include <fmt/format.h>

namespace prism::search {
namespace {

constexpr std::string_view kPartPrefix = "files.";
// The usual constants of BM25: how fast repeated words stop to count, and how much long passages
// lose.
constexpr double kSaturation = 1.2, kLengthWeight = 0.75;
constexpr size_t kMaximumParts = 8;
constexpr uint64_t kLargePart = 64 << 20;  // bytes; merged only when most of it is dead

uint64_t number_of(const std::string& name) {
  uint64_t number = 0;
  std::from_chars(name.data() + kPartPrefix.size(), name.data() + name.size(), number);
  return number;
}

}  // namespace

Catalogue Catalogue::read(const Index& index, const std::string& path) {
  Catalogue made;
  for (const std::string& name : index.attachments())
    if (name.starts_with(kPartPrefix)) made.names_.push_back(name);
  std::ranges::sort(made.names_, {}, number_of);
  for (const std::string& name : made.names_)
    made.parts_.emplace_back(*index.attachment(name), path);
  made.alive_.resize(made.parts_.size());
  made.alive_in_part_.resize(made.parts_.size());
  std::unordered_set<std::string_view> removed;
  for (size_t p = made.parts_.size(); p-- > 0;) {
    const CataloguePart& part = made.parts_[p];
    made.alive_[p].resize(part.files());
    for (uint32_t f = part.files(); f-- > 0;) {
      const FileRecord file = part.file(f);
      if (made.by_path_.contains(file.path) || removed.contains(file.path)) continue;
      if (file.is_removed) {
        removed.insert(file.path);
        continue;
      }
      made.by_path_.emplace(file.path, FileAt{static_cast<uint32_t>(p), f});
      made.alive_[p][f] = true;
      made.alive_in_part_[p] += file.passages;
    }
    made.alive_passages_ += made.alive_in_part_[p];
  }
  return made;
}

std::optional<FileRecord> Catalogue::find(std::string_view path) const {
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return std::nullopt;
  return parts_[found->second.part].file(found->second.file);
}

void Catalogue::each_file(const std::function<void(uint32_t, const FileRecord&)>& visit) const {
  for (uint32_t p = 0; p < parts_.size(); ++p)
    for (uint32_t f = 0; f < parts_[p].files(); ++f)
      if (alive_[p][f]) visit(p, parts_[p].file(f));
}

void Catalogue::each_passage(
    const std::function<void(PassageAt, const PassageRecord&)>& visit) const {
  each_file([&](uint32_t part, const FileRecord& file) {
    for (uint32_t i = 0; i < file.passages; ++i) {
      const PassageAt at{part, file.first_passage + i};
      visit(at, passage(at));
    }
  });
}

FileRecord Catalogue::file_of(PassageAt at) const {
  return parts_[at.part].file(parts_[at.part].file_of(at.passage));
}

bool Catalogue::is_alive(PassageAt at) const {
  return alive_[at.part][parts_[at.part].file_of(at.passage)];
}

std::vector<PassageAt> Catalogue::with_vector(uint64_t vector_id) const {
  std::vector<PassageAt> found;
  for (uint32_t p = 0; p < parts_.size(); ++p)
    parts_[p].each_with_vector(vector_id, [&](uint32_t passage) {
      if (is_alive({p, passage})) found.push_back({p, passage});
    });
  return found;
}

std::vector<ScoredPassage> Catalogue::best_by_words(const std::vector<std::string>& words,
                                                    size_t count, const Allowed& allowed) const {
  std::vector<std::vector<float>> scores(parts_.size());
  double total_words = 0, all_passages = 0;
  for (size_t p = 0; p < parts_.size(); ++p) {
    scores[p].resize(parts_[p].passages());
    total_words += static_cast<double>(parts_[p].total_words());
    all_passages += parts_[p].passages();
  }
  const double mean_words = std::max(1.0, total_words / std::max(1.0, all_passages));
  struct Posting {
    PassageAt at;
    uint32_t count;
  };
  std::vector<Posting> postings;
  for (const std::string& word : words) {
    postings.clear();
    for (uint32_t p = 0; p < parts_.size(); ++p)
      parts_[p].each_with_word(word, [&](uint32_t passage, uint32_t times) {
        if (is_alive({p, passage})) postings.push_back({{p, passage}, times});
      });
    const auto having = static_cast<double>(postings.size());
    const double rarity =
        std::log(1 + (static_cast<double>(alive_passages_) - having + 0.5) / (having + 0.5));
    for (const Posting& each : postings) {
      const double length = parts_[each.at.part].words_of(each.at.passage) / mean_words;
      const double damped =
          each.count * (kSaturation + 1) /
          (each.count + kSaturation * (1 - kLengthWeight + kLengthWeight * length));
      scores[each.at.part][each.at.passage] += static_cast<float>(rarity * damped);
    }
  }
  std::vector<ScoredPassage> found;
  for (uint32_t p = 0; p < parts_.size(); ++p)
    for (uint32_t i = 0; i < scores[p].size(); ++i)
      if (scores[p][i] > 0 && (!allowed || allowed({p, i})))
        found.push_back({{p, i}, static_cast<double>(scores[p][i])});
  const size_t kept = std::min(count, found.size());
  std::ranges::partial_sort(found, found.begin() + static_cast<ptrdiff_t>(kept), {},
                            [](const ScoredPassage& each) {
                              return std::tuple(-each.score, each.at.part, each.at.passage);
                            });
  found.resize(kept);
  return found;
}

void Catalogue::add_part(Index& index, const CataloguePartBuilder& part) {
  uint64_t last = 0;
  for (const std::string& name : index.attachments())
    if (name.starts_with(kPartPrefix)) last = std::max(last, number_of(name));
  index.attach(fmt::format("{}{}", kPartPrefix, last + 1), part.bytes());
}

uint64_t Catalogue::dead_passages(size_t part) const {
  return parts_[part].passages() - alive_in_part_[part];
}

bool Catalogue::merge_parts(Index& index) const {
  std::vector<bool> is_merged(parts_.size());
  size_t merged = 0;
  uint64_t dead = 0;
  for (size_t p = 0; p < parts_.size(); ++p) {
    is_merged[p] = parts_[p].bytes() < kLargePart || dead_passages(p) > alive_in_part_[p];
    if (!is_merged[p]) continue;
    ++merged;
    dead += dead_passages(p);
  }
  if (merged <= kMaximumParts && dead <= alive_passages_) return false;
  CataloguePartBuilder builder;
  for (uint32_t p = 0; p < parts_.size(); ++p) {
    if (!is_merged[p]) continue;
    for (uint32_t f = 0; f < parts_[p].files(); ++f) {
      const FileRecord file = parts_[p].file(f);
      // A large part may still hold a removed file.
      if (!alive_[p][f] && !(file.is_removed && !by_path_.contains(file.path))) continue;
      builder.add_file(file);
      for (uint32_t i = 0; i < file.passages; ++i)
        builder.add_passage(parts_[p].passage(file.first_passage + i));
    }
  }
  add_part(index, builder);
  for (size_t p = 0; p < parts_.size(); ++p)
    if (is_merged[p]) index.attach(names_[p], std::nullopt);
  return true;
}

}  // namespace prism::search
