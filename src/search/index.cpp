// search::Index: changes, commits and the file behind them.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "prism/error.h"
#include "search/index_state.h"

namespace prism::search {

namespace {

constexpr uint64_t kMaximumWidth = 65536;

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

void check(const IndexOptions& options) {
  if (options.width == 0 || options.width > kMaximumWidth)
    fail(fmt::format("index: vectors of {} numbers; there must be 1 to {}", options.width,
                     kMaximumWidth));
  const bool bits = options.type == DType::b1;
  if (!bits && options.type != DType::f32 && options.type != DType::f16 &&
      options.type != DType::bf16 && options.type != DType::i8)
    fail(fmt::format("index: vectors of type {}; f32, f16, bf16, i8 and b1 are possible",
                     dtype_name(options.type)));
  if (options.rescore && options.rescore != DType::f32 && options.rescore != DType::f16)
    fail(fmt::format("index: rescoring with {}; f32 and f16 are possible",
                     dtype_name(*options.rescore)));
  if (options.metric == Metric::hamming && (!bits || options.rescore))
    fail("index: hamming compares bits; use the type b1 without rescoring");
  if (bits && options.metric != Metric::hamming && !options.rescore)
    fail(fmt::format("index: bits cannot rank by {}; use hamming, or rescore with f16 or f32",
                     metric_name(options.metric)));
}

// Products and squared differences of two vectors that are not longer are finite in f32.
constexpr float kLongest = 0x1p62f;

// Infinite if the sum overflows, NaN or infinite if one of the numbers is.
float squared_length(std::span<const float> row) {
  std::array<float, 8> sums = {};  // independent, so that they are added side by side
  size_t i = 0;
  for (; i + sums.size() <= row.size(); i += sums.size())
    for (size_t k = 0; k < sums.size(); ++k) sums[k] += row[i + k] * row[i + k];
  for (; i < row.size(); ++i) sums[0] += row[i] * row[i];
  return std::accumulate(sums.begin(), sums.end(), 0.0f);
}

// Larger numbers become infinite when they are stored. i8 has a scale, b1 only signs.
float largest(DType type) {
  if (type == DType::f16) return 65504;
  return type == DType::bf16 ? 0x1.fep127f : std::numeric_limits<float>::max();
}

bool is_field_name(const std::string& name) {
  for (const char c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '-')
      return false;
  return !name.empty() && name.size() <= 200;
}

}  // namespace

void IdMap::build(const std::vector<Segment>& segments) {
  for (uint32_t s = 0; s < segments.size(); ++s)
    for (uint32_t row = 0; row < segments[s].rows(); ++row)
      if (segments[s].is_alive(row)) set(segments[s].id(row), {s, row});
}

std::optional<Location> IdMap::find(const Id& id) const {
  if (id.is_text()) {
    const auto found = texts_.find(id.text());
    return found == texts_.end() ? std::nullopt : std::optional(found->second);
  }
  const auto found = numbers_.find(id.number());
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

void IdMap::set(const Id& id, Location location) {
  if (id.is_text())
    texts_[id.text()] = location;
  else
    numbers_[id.number()] = location;
}

void IdMap::erase(const Id& id) {
  if (id.is_text())
    texts_.erase(id.text());
  else
    numbers_.erase(id.number());
}

IdMap& Index::State::id_map() const {
  const std::scoped_lock lock(ids_mutex);
  if (!ids) ids.emplace().build(segments);
  return *ids;
}

std::optional<Location> Index::State::find(const Id& id) const {
  check_id(id);
  return id_map().find(id);
}

void Index::State::check_id(const Id& id) const {
  if (id.is_text() != options.text_ids)
    fail(fmt::format("index: the id {} is a {}, the ids of this index are {}", id.shown(),
                     id.is_text() ? "text" : "number", options.text_ids ? "texts" : "numbers"));
}

void Index::State::check_vectors(const char* doing, std::span<const float> vectors,
                                 const std::function<std::string(size_t)>& name) const {
  for (size_t begin = 0; begin < vectors.size(); begin += options.width) {
    const std::span<const float> row = vectors.subspan(begin, options.width);
    if (squared_length(row) <= kLongest * kLongest) continue;
    const std::string own = name(begin / options.width);
    for (size_t i = 0; i < row.size(); ++i)
      if (!std::isfinite(row[i]))
        fail(fmt::format("{}: number {} of {} is {}; all must be finite", doing, i, own, row[i]));
    fail(fmt::format("{}: {} is longer than {:.3g}; scale it down", doing, own, kLongest));
  }
}

void Index::State::check_queries(std::span<const float> queries) const {
  check_vectors("search", queries, [](size_t row) { return fmt::format("query {}", row); });
}

void Index::State::check_stored(const Id& id, std::span<const float> vector) const {
  check_vectors("index", vector, [&](size_t) { return "the vector " + id.shown(); });
  for (const std::optional<DType> type : {std::optional(options.type), options.rescore}) {
    const float most = type ? largest(*type) : std::numeric_limits<float>::max();
    for (size_t i = 0; i < vector.size(); ++i)
      if (std::abs(vector[i]) > most)
        fail(fmt::format("index: number {} of the vector {} is {}, the largest of {} is {}", i,
                         id.shown(), vector[i], dtype_name(*type), most));
  }
}

void Index::State::check_writable() const {
  if (file && !writing)
    fail(fmt::format("index: {} is open for reading; open it with Access::write", file->path));
}

Fields Index::State::checked(const Fields& fields) const {
  Fields result = fields;
  for (auto& [name, value] : result) {
    if (!is_field_name(name))
      fail(fmt::format("index: a field named '{}'; names have letters, digits, _ . and -", name));
    if (const auto* list = std::get_if<std::vector<std::string>>(&value))
      for (const std::string& item : *list)
        if (item.find('\0') != std::string::npos)
          fail(fmt::format("index: an item of the list {} contains a zero byte", name));
    for (const Segment& segment : segments) {
      const Column* const column = segment.column(name);
      if (!column || column->type == static_cast<FieldType>(value.index())) continue;
      if (column->type == FieldType::number && value.index() == 0) {
        value = static_cast<double>(std::get<int64_t>(value));
        continue;
      }
      fail(fmt::format("index: the field {} is of type {} here, and {} in other vectors", name,
                       field_type_name(static_cast<FieldType>(value.index())),
                       field_type_name(column->type)));
    }
  }
  return result;
}

uint64_t Index::State::alive() const {
  uint64_t sum = 0;
  for (const Segment& segment : segments) sum += segment.rows() - segment.removed();
  return sum;
}

void Index::State::remove(const Id& id, Location at) {
  segments[at.segment].remove(at.row);
  id_map().erase(id);
  is_changed = true;
}

void Index::State::add(const Id& id, std::span<const float> vector, const Fields& fields) {
  IdMap& map = id_map();
  // The structures of a segment have all its rows: what follows goes into a segment of its own.
  if (segments.size() == placed || segments.back().searcher()) segments.emplace_back(options);
  Segment& last = segments.back();
  last.add(id, vector, fields);
  map.set(id, {static_cast<uint32_t>(segments.size() - 1), static_cast<uint32_t>(last.rows() - 1)});
  is_changed = true;
}

void Index::State::open(const std::string& path) {
  OpenFile opened = OpenFile::open(path);
  // First: segments compute sizes from the options.
  try {
    check(opened.directory.options);
  } catch (const Error& error) {
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: {}; restore the file from a copy", path, error.what()));
  }
  std::vector<Segment> all = opened.segments();
  attachments = opened.attachments();
  options = opened.directory.options;
  segments = std::move(all);
  placed = segments.size();
  file = std::move(opened);
  is_changed = false;
}

Index::Index(const IndexOptions& options) {
  check(options);
  state_ = std::make_unique<State>(options);
}
Index::~Index() = default;
Index::Index(Index&&) noexcept = default;
Index& Index::operator=(Index&&) noexcept = default;

Index Index::open(const std::string& path, Access access) {
  std::unique_ptr<UpdatedFile> writing;
  if (access == Access::write) writing = std::make_unique<UpdatedFile>(path);
  Index index(IndexOptions{.width = 1});
  index.state_->open(path);
  index.state_->writing = std::move(writing);
  return index;
}

void Index::add(const Id& id, std::span<const float> vector, const Fields& fields) {
  const std::unique_lock lock(state_->mutex);
  state_->check_writable();
  if (vector.size() != state_->options.width)
    fail(fmt::format("index: the vector {} has {} numbers, the index {}", id.shown(), vector.size(),
                     state_->options.width));
  state_->check_stored(id, vector);
  if (state_->find(id))
    fail(
        fmt::format("index: there is a vector {} already; use update() to replace it", id.shown()));
  state_->add(id, vector, state_->checked(fields));
}

void Index::add(const Id& id, std::initializer_list<float> vector, const Fields& fields) {
  add(id, std::span(vector.begin(), vector.size()), fields);
}

void Index::update(const Id& id, std::span<const float> vector, const Fields& fields) {
  const std::unique_lock lock(state_->mutex);
  state_->check_writable();
  if (vector.size() != state_->options.width)
    fail(fmt::format("index: the vector {} has {} numbers, the index {}", id.shown(), vector.size(),
                     state_->options.width));
  state_->check_stored(id, vector);
  const Fields right = state_->checked(fields);
  if (const std::optional<Location> at = state_->find(id)) state_->remove(id, *at);
  state_->add(id, vector, right);
}

bool Index::remove(const Id& id) {
  const std::unique_lock lock(state_->mutex);
  state_->check_writable();
  const std::optional<Location> at = state_->find(id);
  if (at) state_->remove(id, *at);
  return at.has_value();
}

bool Index::contains(const Id& id) const {
  const std::shared_lock lock(state_->mutex);
  return state_->find(id).has_value();
}

std::optional<std::vector<float>> Index::vector(const Id& id) const {
  const std::shared_lock lock(state_->mutex);
  const std::optional<Location> at = state_->find(id);
  if (!at) return std::nullopt;
  return state_->segments[at->segment].vector(at->row);
}

std::optional<Fields> Index::fields(const Id& id) const {
  const std::shared_lock lock(state_->mutex);
  const std::optional<Location> at = state_->find(id);
  if (!at) return std::nullopt;
  return state_->segments[at->segment].fields(at->row);
}

void Index::attach(const std::string& name, std::optional<std::string> bytes) {
  const std::unique_lock lock(state_->mutex);
  state_->check_writable();
  if (bytes) {
    Section section;
    section.append(std::as_bytes(std::span(*bytes)));
    state_->attachments[name] = std::move(section);
  } else if (state_->attachments.erase(name) == 0) {
    return;
  }
  state_->is_changed = true;
}

std::optional<Attachment> Index::attachment(const std::string& name) const {
  const std::shared_lock lock(state_->mutex);
  const auto found = state_->attachments.find(name);
  if (found == state_->attachments.end()) return std::nullopt;
  return Attachment{found->second.shared(), found->second.bytes()};
}

std::vector<std::string> Index::attachments() const {
  const std::shared_lock lock(state_->mutex);
  std::vector<std::string> names;
  for (const auto& each : state_->attachments) names.push_back(each.first);
  return names;
}

void Index::commit() {
  const std::unique_lock lock(state_->mutex);
  state_->check_writable();
  if (!state_->file) fail("index: it is in memory only; save() writes it to a file");
  if (!state_->is_changed) return;
  state_->build_committed();
  std::vector<const Segment*> segments;
  for (const Segment& segment : state_->segments) segments.push_back(&segment);
  append_commit(*state_->writing, *state_->file, state_->options, segments, state_->placed,
                state_->attachments);
  state_->open(state_->file->path);
}

void Index::save(const std::string& path) const {
  const std::shared_lock lock(state_->mutex);
  std::vector<const Segment*> segments;
  for (const Segment& segment : state_->segments) segments.push_back(&segment);
  write_index(path, state_->options, segments, state_->attachments, 1);
}

void Index::refresh() {
  const std::unique_lock lock(state_->mutex);
  if (!state_->file || state_->writing) return;
  state_->open(state_->file->path);
  state_->ids.reset();
}

void Index::verify() const {
  const std::shared_lock lock(state_->mutex);
  if (state_->file) state_->file->verify();
}

IndexInfo Index::info() const {
  const std::shared_lock lock(state_->mutex);
  IndexInfo info;
  info.options = state_->options;
  info.vectors = state_->alive();
  for (const Segment& segment : state_->segments) {
    info.removed += segment.removed();
    if (!segment.searcher()) info.scanned += segment.rows();
    for (const Column& column : segment.columns())
      if (std::ranges::find(info.fields, column.name) == info.fields.end())
        info.fields.push_back(column.name);
  }
  info.segments = state_->segments.size();
  if (const Segment* const largest = state_->largest_with_method()) {
    info.method = largest->searcher()->method();
    const Curve& curve = largest->searcher()->curve;
    info.exact_microseconds = curve.exact_microseconds;
    for (const EffortPoint& point : curve.points)
      info.measured.push_back({point.k, point.effort, point.recall, point.microseconds});
  }
  if (state_->file) {
    info.file_bytes = state_->file->root.end;
    info.generation = state_->file->root.generation;
  }
  return info;
}

void Index::each(const std::function<void(const Id&, std::span<const float>)>& visit) const {
  const std::shared_lock lock(state_->mutex);
  for (const Segment& segment : state_->segments)
    for (const uint32_t row : segment.added_order())
      if (segment.is_alive(row)) visit(segment.id(row), segment.vector(row));
}

}  // namespace prism::search
