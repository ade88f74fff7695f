// A part of the catalogue: files, their passages and an inverted list of words, as one run of bytes
// that is written once and read where it is mapped.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "prism/search.h"
#include "search/files/splitter.h"

namespace prism::search {

using ContentHash = std::array<uint64_t, 2>;
ContentHash content_hash(std::string_view bytes);

struct FileRecord {
  std::string_view path;
  ContentKind kind = ContentKind::text;
  bool is_removed = false;  // the file is no longer there
  uint64_t bytes = 0;
  int64_t modified = 0;  // nanoseconds
  ContentHash hash{};
  uint32_t first_passage = 0, passages = 0;
};

struct PassageRecord {
  uint32_t file = 0, first_line = 1, last_line = 1;
  uint32_t words = 0;      // of its text
  uint64_t vector_id = 0;  // by the text that is embedded
  std::string_view context, text;

  std::string embedded_text() const {
    return context.empty() ? std::string(text) : std::string(context) + "\n" + std::string(text);
  }
};

class CataloguePartBuilder {
 public:
  // Passages of the file follow by add_passage; file and first_passage of the records are set here.
  void add_file(const FileRecord& file);
  void add_passage(const PassageRecord& passage);  // sets words and vector_id
  uint64_t files() const { return files_.size(); }
  uint64_t passages() const { return passages_.size(); }
  uint64_t text_bytes() const { return text_bytes_; }
  std::string bytes() const;

 private:
  struct Posting {
    uint32_t passage, count;
  };
  std::string_view keep(std::string_view text);

  std::vector<FileRecord> files_;  // their texts are ranges of texts_
  std::vector<PassageRecord> passages_;
  std::vector<std::unique_ptr<std::string>> texts_;
  std::vector<std::string> path_words_;  // of the last file
  std::unordered_map<std::string, std::vector<Posting>> words_;
  uint64_t text_bytes_ = 0;
};

class CataloguePart {
 public:
  // Checks all tables. Throws kCorruptFile, naming `name`.
  CataloguePart(Attachment bytes, const std::string& name);

  uint32_t files() const { return file_count_; }
  uint32_t passages() const { return passage_count_; }
  uint64_t bytes() const { return bytes_.bytes; }
  uint64_t total_words() const { return total_words_; }  // of all passages
  FileRecord file(uint32_t index) const;
  PassageRecord passage(uint32_t index) const;
  uint32_t file_of(uint32_t passage) const;
  uint32_t words_of(uint32_t passage) const;  // their number
  // The passages with this vector.
  void each_with_vector(uint64_t vector_id, const std::function<void(uint32_t)>& visit) const;
  // The passages with this word, ascending, and how often they have it.
  void each_with_word(std::string_view word,
                      const std::function<void(uint32_t passage, uint32_t count)>& visit) const;

 private:
  friend class CataloguePartBuilder;
  struct Header;
  struct FileRow;
  struct PassageRow;
  struct VectorRow;
  struct WordRow;
  template <class Row>
  Row row(uint64_t table, uint64_t index) const;
  std::string_view text(uint64_t at, uint64_t bytes) const;
  [[noreturn]] void corrupt() const;

  Attachment bytes_;
  std::string name_;
  uint32_t file_count_ = 0, passage_count_ = 0, word_count_ = 0;
  uint64_t total_words_ = 0;
  uint64_t files_at_ = 0, passages_at_ = 0, vectors_at_ = 0, words_at_ = 0, texts_at_ = 0,
           texts_bytes_ = 0;
};

}  // namespace prism::search
