// Writes and reads the parts of the catalogue.
//
// Layout: Header, FileRow[], PassageRow[], VectorRow[] (sorted by id), WordRow[] (sorted by word),
// texts (paths, contexts, passages, words and their postings). Numbers are little-endian.
#include "search/files/catalogue_part.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/fast_hash.h"
#include "prism/error.h"
#include "search/files/words.h"

namespace prism::search {

struct CataloguePart::Header {
  char magic[8];
  uint32_t files, passages, words, reserved;
  uint64_t texts_bytes, total_words;
};
struct CataloguePart::FileRow {
  uint64_t path_at;
  uint32_t path_bytes;
  uint8_t kind, is_removed, reserved[2];
  uint64_t bytes;
  int64_t modified;
  ContentHash hash;
  uint32_t first_passage, passages;
};
struct CataloguePart::PassageRow {
  uint64_t text_at, context_at;
  uint32_t text_bytes, context_bytes;
  uint32_t file, first_line, last_line, words;
  uint64_t vector_id;
};
struct CataloguePart::VectorRow {
  uint64_t id;
  uint32_t passage, reserved;
};
struct CataloguePart::WordRow {
  uint64_t word_at, postings_at;
  uint32_t word_bytes, postings_bytes, postings, reserved;
};

namespace {

constexpr char kMagic[8] = {'P', 'R', 'F', 'I', 'L', 'E', 'S', '1'};

void append_number(std::string& to, uint32_t number) {  // 7 bits in each byte
  for (; number >= 0x80; number >>= 7) to += static_cast<char>(number | 0x80);
  to += static_cast<char>(number);
}

// False at the end and for a number that is not whole.
bool take_number(std::string_view& from, uint32_t& number) {
  number = 0;
  for (int shift = 0; shift < 35 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    number |= static_cast<uint32_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

template <class Row>
void append_row(std::string& to, const Row& row) {
  to.append(reinterpret_cast<const char*>(&row), sizeof row);
}

}  // namespace

ContentHash content_hash(std::string_view bytes) {
  const std::string digits = fast_hash(std::as_bytes(std::span(bytes)));
  return {std::stoull(digits.substr(0, 16), nullptr, 16),
          std::stoull(digits.substr(16), nullptr, 16)};
}

std::string_view CataloguePartBuilder::keep(std::string_view text) {
  text_bytes_ += text.size();
  return *texts_.emplace_back(std::make_unique<std::string>(text));
}

void CataloguePartBuilder::add_file(const FileRecord& file) {
  files_.push_back(file);
  files_.back().path = keep(file.path);
  files_.back().first_passage = static_cast<uint32_t>(passages_.size());
  files_.back().passages = 0;
  path_words_ = question_words(file.path);
}

void CataloguePartBuilder::add_passage(const PassageRecord& passage) {
  const auto index = static_cast<uint32_t>(passages_.size());
  PassageRecord& kept = passages_.emplace_back(passage);
  kept.file = static_cast<uint32_t>(files_.size() - 1);
  kept.text = keep(passage.text);
  kept.context = keep(passage.context);
  kept.vector_id = content_hash(kept.embedded_text())[0];
  ++files_.back().passages;
  kept.words = 0;
  const auto add = [&](const std::string& word) {
    std::vector<Posting>& postings = words_[word];
    if (postings.empty() || postings.back().passage != index)
      postings.push_back({index, 1});
    else
      ++postings.back().count;
  };
  each_word(kept.text, [&](const std::string& word, size_t, size_t) {
    ++kept.words;
    add(word);
  });
  each_word(kept.context, [&](const std::string& word, size_t, size_t) { add(word); });
  for (const std::string& word : path_words_) add(word);
}

std::string CataloguePartBuilder::bytes() const {
  using Part = CataloguePart;
  std::string texts, files, passages, vectors, words;
  const auto place = [&](std::string_view text) {
    texts += text;
    return texts.size() - text.size();
  };
  for (const FileRecord& each : files_) {
    Part::FileRow row{};
    row.path_at = place(each.path);
    row.path_bytes = static_cast<uint32_t>(each.path.size());
    row.kind = static_cast<uint8_t>(each.kind);
    row.is_removed = each.is_removed ? 1 : 0;
    row.bytes = each.bytes;
    row.modified = each.modified;
    row.hash = each.hash;
    row.first_passage = each.first_passage;
    row.passages = each.passages;
    append_row(files, row);
  }
  std::vector<Part::VectorRow> by_vector;
  for (const PassageRecord& each : passages_) {
    Part::PassageRow row{};
    row.text_at = place(each.text);
    row.context_at = place(each.context);
    row.text_bytes = static_cast<uint32_t>(each.text.size());
    row.context_bytes = static_cast<uint32_t>(each.context.size());
    row.file = each.file;
    row.first_line = each.first_line;
    row.last_line = each.last_line;
    row.words = each.words;
    row.vector_id = each.vector_id;
    append_row(passages, row);
    by_vector.push_back({each.vector_id, static_cast<uint32_t>(by_vector.size()), 0});
  }
  std::ranges::sort(by_vector, {},
                    [](const Part::VectorRow& each) { return std::pair(each.id, each.passage); });
  for (const Part::VectorRow& each : by_vector) append_row(vectors, each);
  std::vector<const std::pair<const std::string, std::vector<Posting>>*> sorted;
  for (const auto& each : words_) sorted.push_back(&each);
  std::ranges::sort(sorted, {}, [](const auto* each) -> const std::string& { return each->first; });
  for (const auto* each_word : sorted) {
    const std::vector<Posting>& postings = each_word->second;
    Part::WordRow row{};
    row.word_at = place(each_word->first);
    row.word_bytes = static_cast<uint32_t>(each_word->first.size());
    row.postings_at = texts.size();
    row.postings = static_cast<uint32_t>(postings.size());
    uint32_t before = 0;
    for (const Posting& each : postings) {
      append_number(texts, each.passage - before);
      append_number(texts, each.count);
      before = each.passage;
    }
    row.postings_bytes = static_cast<uint32_t>(texts.size() - row.postings_at);
    append_row(words, row);
  }
  Part::Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.files = static_cast<uint32_t>(files_.size());
  header.passages = static_cast<uint32_t>(passages_.size());
  header.words = static_cast<uint32_t>(words_.size());
  header.texts_bytes = texts.size();
  for (const PassageRecord& each : passages_) header.total_words += each.words;
  std::string all;
  append_row(all, header);
  for (const std::string* each : {&files, &passages, &vectors, &words, &texts}) all += *each;
  return all;
}

void CataloguePart::corrupt() const {
  throw Error(ErrorCode::kCorruptFile,
              name_ + ": its list of files is damaged; delete the file and index again");
}

template <class Row>
Row CataloguePart::row(uint64_t table, uint64_t index) const {
  Row result;
  std::memcpy(&result, bytes_.data.get() + table + index * sizeof(Row), sizeof(Row));
  return result;
}

std::string_view CataloguePart::text(uint64_t at, uint64_t bytes) const {
  if (at > texts_bytes_ || bytes > texts_bytes_ - at) corrupt();
  return bytes_.text().substr(texts_at_ + at, bytes);
}

CataloguePart::CataloguePart(Attachment bytes, const std::string& name)
    : bytes_(std::move(bytes)), name_(name) {
  if (bytes_.bytes < sizeof(Header)) corrupt();
  const auto header = row<Header>(0, 0);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) corrupt();
  file_count_ = header.files;
  passage_count_ = header.passages;
  word_count_ = header.words;
  texts_bytes_ = header.texts_bytes;
  total_words_ = header.total_words;
  files_at_ = sizeof(Header);
  passages_at_ = files_at_ + uint64_t{file_count_} * sizeof(FileRow);
  vectors_at_ = passages_at_ + uint64_t{passage_count_} * sizeof(PassageRow);
  words_at_ = vectors_at_ + uint64_t{passage_count_} * sizeof(VectorRow);
  texts_at_ = words_at_ + uint64_t{word_count_} * sizeof(WordRow);
  if (texts_at_ > bytes_.bytes || texts_bytes_ != bytes_.bytes - texts_at_) corrupt();
}

FileRecord CataloguePart::file(uint32_t index) const {
  if (index >= file_count_) corrupt();
  const auto found = row<FileRow>(files_at_, index);
  if (found.first_passage > passage_count_ ||
      found.passages > passage_count_ - found.first_passage || found.kind > 1)
    corrupt();
  return {text(found.path_at, found.path_bytes),
          static_cast<ContentKind>(found.kind),
          found.is_removed != 0,
          found.bytes,
          found.modified,
          found.hash,
          found.first_passage,
          found.passages};
}

PassageRecord CataloguePart::passage(uint32_t index) const {
  if (index >= passage_count_) corrupt();
  const auto found = row<PassageRow>(passages_at_, index);
  if (found.file >= file_count_) corrupt();
  return {found.file,
          found.first_line,
          found.last_line,
          found.words,
          found.vector_id,
          text(found.context_at, found.context_bytes),
          text(found.text_at, found.text_bytes)};
}

uint32_t CataloguePart::file_of(uint32_t passage) const {
  const uint32_t file = row<PassageRow>(passages_at_, passage).file;
  if (file >= file_count_) corrupt();
  return file;
}

uint32_t CataloguePart::words_of(uint32_t passage) const {
  return row<PassageRow>(passages_at_, passage).words;
}

void CataloguePart::each_with_vector(uint64_t vector_id,
                                     const std::function<void(uint32_t)>& visit) const {
  uint64_t low = 0, high = passage_count_;
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (row<VectorRow>(vectors_at_, middle).id < vector_id)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < passage_count_; ++low) {
    const auto found = row<VectorRow>(vectors_at_, low);
    if (found.id != vector_id) return;
    if (found.passage >= passage_count_) corrupt();
    visit(found.passage);
  }
}

void CataloguePart::each_with_word(std::string_view word,
                                   const std::function<void(uint32_t, uint32_t)>& visit) const {
  uint64_t low = 0, high = word_count_;
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    const auto found = row<WordRow>(words_at_, middle);
    if (text(found.word_at, found.word_bytes) < word)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == word_count_) return;
  const auto found = row<WordRow>(words_at_, low);
  if (text(found.word_at, found.word_bytes) != word) return;
  std::string_view postings = text(found.postings_at, found.postings_bytes);
  uint64_t passage = 0;
  for (uint32_t i = 0; i < found.postings; ++i) {
    uint32_t step = 0, count = 0;
    if (!take_number(postings, step) || !take_number(postings, count)) corrupt();
    passage += step;
    if (passage >= passage_count_) corrupt();
    visit(static_cast<uint32_t>(passage), count);
  }
}

}  // namespace prism::search
