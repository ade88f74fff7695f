// Vector search: an index of vectors in one file, searched exactly or approximately.
//
//   search::Index index({.width = 3, .metric = Metric::l2});
//   index.add(7, {1, 0, 0}, {{"year", 1999}});
//   index.add(8, {0, 1, 0}, {{"year", 2024}});
//   const search::Filter recent = search::Filter::parse("year > 2000");
//   const search::SearchResult found = index.search({0.1f, 0.9f, 0}, {.k = 1, .filter = recent});
//   const uint64_t id = found.hits[0].id.number();
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "prism/dtype.h"
#include "prism/metric.h"

#pragma GCC visibility push(default)

namespace prism::search {

// The name of a vector: a number of 64 bits or a text. All ids of an index are of one kind.
class Id {
 public:
  Id(uint64_t number) : value_(number) {}
  Id(int number) : value_(static_cast<uint64_t>(number)) {}
  Id(std::string text) : value_(std::move(text)) {}
  Id(const char* text) : value_(std::string(text)) {}
  bool is_text() const { return value_.index() == 1; }
  uint64_t number() const { return std::get<0>(value_); }
  const std::string& text() const { return std::get<1>(value_); }
  std::string shown() const { return is_text() ? text() : std::to_string(number()); }
  friend bool operator==(const Id&, const Id&) = default;
  friend auto operator<=>(const Id&, const Id&) = default;

 private:
  std::variant<uint64_t, std::string> value_;
};

// A value of a vector, for filters: an integer, a float, a text or a list of texts.
using FieldValue = std::variant<int64_t, double, std::string, std::vector<std::string>>;
class Field : public FieldValue {
 public:
  Field(int64_t integer) : FieldValue(integer) {}
  Field(int integer) : FieldValue(int64_t{integer}) {}
  Field(double number) : FieldValue(number) {}
  Field(const char* text) : FieldValue(std::string(text)) {}
  Field(std::string text) : FieldValue(std::move(text)) {}
  Field(std::vector<std::string> list) : FieldValue(std::move(list)) {}
};
using Fields = std::map<std::string, Field>;

// Which vectors a search may return. An empty filter allows all.
class Filter {
 public:
  struct Node;
  Filter() = default;
  explicit Filter(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  // Conditions on fields: year >= 1990 and year < 2000 and not (lang in ("en", "de")). Operators:
  // == != < <= > >= in, and, or, not; numbers and quoted texts. A condition on a field that a
  // vector lacks is false. On a list, == and in test whether one of its items matches. Throws
  // kInvalidArgument with the position of an error.
  static Filter parse(const std::string& text);
  static Filter ids(std::vector<Id> ids);
  static Filter where(std::function<bool(const Id&)> predicate);

  static Filter all_of(const Filter& a, const Filter& b);
  static Filter one_of(const Filter& a, const Filter& b);
  static Filter none_of(const Filter& a);
  bool is_empty() const { return node_ == nullptr; }
  const Node* node() const { return node_.get(); }

 private:
  std::shared_ptr<const Node> node_;
};

// How a search finds vectors: by scanning all of them; by scanning the lists (clusters) nearest to
// the query; or by walking through a graph of neighbours.
enum class Method : uint8_t { exact, ivf, graph };
const char* method_name(Method method);
std::optional<Method> parse_method(std::string_view name);

struct IndexOptions {
  uint64_t width = 0;
  Metric metric = Metric::cosine;
  // f32, f16, bf16, i8 (scaled for each vector) or b1 (one sign bit). b1 compares bits; with a
  // metric other than hamming it needs rescore.
  DType type = DType::f32;
  // f32 or f16: a second copy of each vector, by which the best of a coarse type are ranked.
  std::optional<DType> rescore = std::nullopt;
  bool text_ids = false;
};

struct SearchOptions {
  uint64_t k = 10;  // at most 2,048
  Filter filter = {};
  // The share of the exact results that a search should find, on average; 1: all of them. An index
  // without a method scans all vectors in any case. Otherwise the least effort is used that found
  // as much when the index was built, or a scan where that is less work.
  double recall = 0.95;
  // In place of recall: a method, and its effort if it is not 0 (the lists to scan, or the vectors
  // that a walk through a graph keeps).
  std::optional<Method> method = std::nullopt;
  uint64_t effort = 0;
  // With rescore: the candidates of the coarse type for each result; 0: 8 of bits, 3 of others.
  uint64_t oversample = 0;
  // The best hit of each value of this field only.
  std::string group_by = {};
};

struct Hit {
  Id id;
  float score;  // a similarity or a distance
};

struct SearchResult {
  std::vector<Hit> hits;  // the best first
  std::string how;        // the method and its settings
};

// The settings of build().
struct BuildOptions {
  Method method = Method::graph;
  // ivf: the number of lists; 0: the square root of the number of vectors.
  uint64_t lists = 0;
  // graph: the links of a vector, and the vectors that are kept while its neighbours are searched.
  uint64_t links = 32;
  uint64_t effort = 100;
  // ivf: the device that trains and assigns.
  std::string device = "cpu";
};

// What was measured with vectors that were held back when the method was built.
struct MeasuredEffort {
  uint64_t k = 0, effort = 0;
  double recall = 0, microseconds = 0;  // for each query of a batch, on all cores
};

struct IndexInfo {
  IndexOptions options;
  Method method = Method::exact;
  std::vector<MeasuredEffort> measured = {};  // of the largest part with a method
  double exact_microseconds = 0;              // a query of a scan there; 0: not measured
  uint64_t scanned = 0;                       // vectors without a method, which are always scanned
  uint64_t vectors = 0;                       // that a search can return
  uint64_t removed = 0;                       // still in the file, until compact()
  uint64_t segments = 0;
  uint64_t file_bytes = 0;  // 0: in memory only
  uint64_t generation = 0;  // of the file; each commit() adds one
  std::vector<std::string> fields = {};
};

enum class Access { read, write };

// Named bytes that an index keeps beside its vectors. They stay valid while this object lives, also
// when the index changes.
struct Attachment {
  std::shared_ptr<const std::byte> data;
  uint64_t bytes = 0;
  std::string_view text() const { return {reinterpret_cast<const char*>(data.get()), bytes}; }
};

// A set of vectors. Functions may be called from several threads. Changes are searchable at once,
// and in the file after commit(). A crash at any moment leaves the file as it was before or after a
// commit. One process may open a file for writing, while others read it.
class Index {
 public:
  // An index in memory; save() writes it to a file.
  explicit Index(const IndexOptions& options);
  // Opens a file. Throws kNotFound, kIo, kCorruptFile for a damaged or foreign file, and kIo if
  // another process has it open for writing.
  static Index open(const std::string& path, Access access = Access::read);
  ~Index();
  Index(Index&&) noexcept;
  Index& operator=(Index&&) noexcept;

  // Throws kInvalidArgument if the width is wrong, a number is NaN or infinite, the id exists or is
  // of the other kind, or a field has another type than before. Nothing changes then.
  void add(const Id& id, std::span<const float> vector, const Fields& fields = {});
  void add(const Id& id, std::initializer_list<float> vector, const Fields& fields = {});
  // Adds, or replaces what is there.
  void update(const Id& id, std::span<const float> vector, const Fields& fields = {});
  bool remove(const Id& id);  // false if there is no such vector
  bool contains(const Id& id) const;
  std::optional<std::vector<float>> vector(const Id& id) const;  // as stored
  std::optional<Fields> fields(const Id& id) const;

  SearchResult search(std::span<const float> query, const SearchOptions& options = {}) const;
  SearchResult search(std::initializer_list<float> query, const SearchOptions& options = {}) const;
  SearchResult search(std::span<const float> query, uint64_t k, SearchOptions options = {}) const;
  // Several queries [queries][width] at once.
  std::vector<SearchResult> search_batch(std::span<const float> queries,
                                         const SearchOptions& options = {}) const;
  // All vectors at least as good as `bound`: a similarity or a distance.
  SearchResult search_within(std::span<const float> query, float bound,
                             const Filter& filter = {}) const;

  // Keeps bytes under a name, in the file after the same commit() as the vectors; each is written
  // once. No value removes what is there. Throws kInvalidArgument for an index open for reading.
  void attach(const std::string& name, std::optional<std::string> bytes);
  std::optional<Attachment> attachment(const std::string& name) const;
  std::vector<std::string> attachments() const;  // their names, sorted

  // Joins all vectors, makes the structures of a method for them, and measures it with vectors that
  // are held back meanwhile. Later additions are scanned until there are many; commit() then makes
  // structures for them, too. Method::exact drops the structures. Includes a commit() if there is a
  // file.
  void build(const BuildOptions& options = {});

  // Scans (of all vectors and of lists) run on this device from now on: cuda:0, auto, cpu ... The
  // vectors are uploaded when a search first needs them, and later only what is new. What does not
  // fit into the device's memory is scanned on the CPU at the same time. Not stored in the file.
  void set_device(const std::string& name);

  // Writes the changes to the file and flushes it. Throws kIo (a full disk); the changes stay in
  // memory then, and commit() may be called again.
  void commit();
  void save(const std::string& path) const;  // the whole index as a new file
  // Rewrites the file without removed vectors. Includes a commit().
  void compact();
  // The same by a thread, while searches and changes go on; only the last step, which writes the
  // file, keeps them waiting. Does nothing if a compaction is under way. What compact(), build() or
  // a failure made useless is dropped, and the old file stays.
  void compact_in_background();
  // Waits for that thread, and throws its error. The destructor waits, too.
  void wait_for_compaction();
  void refresh();       // for readers: what a writer has committed since
  void verify() const;  // throws kCorruptFile naming the section whose checksum is wrong

  IndexInfo info() const;
  // Calls visit for each vector, in the order in which they were added.
  void each(const std::function<void(const Id&, std::span<const float>)>& visit) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace prism::search

#pragma GCC visibility pop
