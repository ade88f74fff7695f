// Reads, writes and extends index files.
#include "search/index_file.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/system/output_file.h"
#include "prism/error.h"
#include "search/checksum.h"

namespace prism::search {

namespace {

constexpr char kMagic[8] = {'P', 'R', 'I', 'S', 'M', 'V', 'E', 'C'};
constexpr uint32_t kVersion = 1;
constexpr uint64_t kSlotBytes = 512;  // a disk writes a sector of this size whole or not at all
// The highest bit of the identities of segments in files; others count from 0.
constexpr uint64_t kInFile = uint64_t{1} << 63;
constexpr uint64_t kFirstSection = 4096, kAlignment = 64;

[[noreturn]] void corrupt(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::kCorruptFile, fmt::format("{}: {}", path, what));
}

uint64_t aligned(uint64_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; }

uint64_t own_checksum(const Root& root) {
  return checksum(std::as_bytes(std::span(&root, 1)).first(sizeof(Root) - sizeof(uint64_t)));
}

Section alive_section(const Segment& segment) {
  Section section;
  section.append(std::as_bytes(std::span(segment.alive())));
  return section;
}

// Receives bytes at ascending places of a file.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void write(uint64_t at, std::span<const std::byte> bytes) = 0;
};

class UpdateSink : public Sink {
 public:
  explicit UpdateSink(UpdatedFile& file) : file_(file) {}
  void write(uint64_t at, std::span<const std::byte> bytes) override { file_.write_at(at, bytes); }

 private:
  UpdatedFile& file_;
};

class OutputSink : public Sink {
 public:
  explicit OutputSink(OutputFile& file) : file_(file) {}
  void write(uint64_t at, std::span<const std::byte> bytes) override {
    const std::vector<std::byte> gap(at - file_.written());
    file_.write(gap);
    file_.write(bytes);
  }

 private:
  OutputFile& file_;
};

// Assigns places to sections behind `end`.
class Layout {
 public:
  explicit Layout(uint64_t end) : end_(end) {}
  Placed place(const std::string& name, const Section& section) {
    const Placed placed{name, aligned(end_), section.bytes(), checksum(section.span())};
    end_ = placed.at + placed.bytes;
    pending_.push_back({placed.at, section});
    return placed;
  }
  PlacedSegment place(const Segment& segment) {
    PlacedSegment placed{segment.rows(), {}};
    for (const auto& [name, section] : segment.sections())
      placed.sections.push_back(place(name, section));
    if (segment.removed() > 0) placed.sections.push_back(place("alive", alive_section(segment)));
    return placed;
  }
  Root root(const Directory& directory, uint64_t generation) {
    const std::string text = directory.text();
    Section section;
    section.append(std::as_bytes(std::span(text)));
    const Placed placed = place("directory", section);
    Root root{};
    std::memcpy(root.magic, kMagic, sizeof kMagic);
    root.version = kVersion;
    root.generation = generation;
    root.directory_at = placed.at;
    root.directory_bytes = placed.bytes;
    root.directory_checksum = placed.checksum;
    root.end = end_;
    root.own_checksum = own_checksum(root);
    return root;
  }
  void write(Sink& sink) const {
    for (const auto& [at, section] : pending_) sink.write(at, section.span());
  }

 private:
  uint64_t end_;
  std::vector<std::pair<uint64_t, Section>> pending_;
};

std::span<const std::byte> bytes_of(const Root& root) { return std::as_bytes(std::span(&root, 1)); }

}  // namespace

Root newest_root(const std::string& path, std::string_view file) {
  if (file.size() < sizeof kMagic || std::memcmp(file.data(), kMagic, sizeof kMagic) != 0)
    corrupt(path, "is not an index of vectors; make one with prism vectors build");
  Root best{};
  for (const uint64_t at : {uint64_t{0}, kSlotBytes}) {
    Root root{};
    if (file.size() < at + sizeof root) continue;
    std::memcpy(&root, file.data() + at, sizeof root);
    if (std::memcmp(root.magic, kMagic, sizeof kMagic) != 0 ||
        root.own_checksum != own_checksum(root))
      continue;
    if (root.version != kVersion)
      corrupt(path, fmt::format("has format version {}; this program reads version {}",
                                root.version, kVersion));
    if (root.generation > best.generation) best = root;
  }
  if (best.generation == 0) corrupt(path, "has no valid header; restore the file from a copy");
  if (best.end > file.size())
    corrupt(path, fmt::format("has {} of {} bytes; it was truncated, so restore it from a copy",
                              file.size(), best.end));
  if (best.directory_at > best.end || best.directory_bytes > best.end - best.directory_at)
    corrupt(path, "has a directory outside of the file; restore it from a copy");
  return best;
}

OpenFile OpenFile::open(const std::string& path) {
  OpenFile made;
  made.path = path;
  made.mapped = map_file(path, MapAccess::read);
  const std::string_view file(reinterpret_cast<const char*>(made.mapped.data.get()),
                              made.mapped.bytes);
  made.root = newest_root(path, file);
  const std::string_view text = file.substr(made.root.directory_at, made.root.directory_bytes);
  if (checksum(std::as_bytes(std::span(text))) != made.root.directory_checksum)
    corrupt(path, "has a damaged directory; restore the file from a copy");
  made.directory = Directory::parse(path, text);
  uint64_t left = made.root.end;  // sections that share bytes could claim any number of vectors
  const auto check_place = [&](const Placed& placed) {
    if (placed.at > made.root.end || placed.bytes > made.root.end - placed.at || placed.at % 8 != 0)
      corrupt(path, fmt::format("section {} is outside of the file; restore it from a copy",
                                placed.name));
    if (placed.bytes > left)
      corrupt(path,
              fmt::format("section {} overlaps another; restore it from a copy", placed.name));
    left -= placed.bytes;
  };
  for (const PlacedSegment& segment : made.directory.segments)
    std::ranges::for_each(segment.sections, check_place);
  std::ranges::for_each(made.directory.attachments, check_place);
  return made;
}

Section OpenFile::section(const Placed& placed) const {
  return {std::shared_ptr<const std::byte>(mapped.data, mapped.data.get() + placed.at),
          placed.bytes};
}

std::vector<Segment> OpenFile::segments() const {
  std::vector<Segment> all;
  for (const PlacedSegment& placed : directory.segments) {
    std::vector<NamedSection> sections;
    std::vector<uint32_t> alive;
    uint64_t identity = 0;
    for (const Placed& each : placed.sections) {
      sections.push_back({each.name, section(each)});
      if (each.name == "vectors") identity = each.checksum ^ (each.at << 20);
      if (each.name != "alive") continue;
      if (each.bytes != (placed.rows + 31) / 32 * 4)
        corrupt(path, "the bitmap of removed vectors has a wrong size; restore it from a copy");
      const auto* const words = sections.back().section.as<uint32_t>();
      alive.assign(words, words + each.bytes / 4);
    }
    all.push_back(Segment::from_sections(directory.options, placed.rows, sections, path));
    if (!alive.empty()) all.back().set_alive(std::move(alive));
    all.back().set_identity(identity | kInFile);
  }
  return all;
}

Attachments OpenFile::attachments() const {
  Attachments all;
  for (const Placed& placed : directory.attachments) all[placed.name] = section(placed);
  return all;
}

void OpenFile::verify() const {
  for (const Placed& placed : directory.attachments)
    if (checksum(section(placed).span()) != placed.checksum)
      corrupt(path,
              fmt::format("attachment {} is damaged; restore the file from a copy", placed.name));
  for (size_t i = 0; i < directory.segments.size(); ++i)
    for (const Placed& placed : directory.segments[i].sections)
      if (checksum(section(placed).span()) != placed.checksum)
        corrupt(path, fmt::format("section {} of segment {} is damaged; restore the file from a "
                                  "copy",
                                  placed.name, i));
}

void write_index(const std::string& path, const IndexOptions& options,
                 const std::vector<const Segment*>& segments, const Attachments& attachments,
                 uint64_t generation) {
  Directory directory{options, {}};
  Layout layout(kFirstSection);
  for (const auto& [name, section] : attachments)
    directory.attachments.push_back(layout.place(name, section));
  for (const Segment* segment : segments)
    if (segment->rows() > 0) directory.segments.push_back(layout.place(*segment));
  const Root root = layout.root(directory, generation);
  OutputFile file(path);
  OutputSink sink(file);
  sink.write(0, bytes_of(root));
  layout.write(sink);
  file.commit();
}

void append_commit(UpdatedFile& file, const OpenFile& before, const IndexOptions& options,
                   const std::vector<const Segment*>& segments, size_t placed,
                   const Attachments& attachments) {
  Directory directory{options, before.directory.segments};
  Layout layout(before.root.end);
  for (size_t i = 0; i < segments.size(); ++i) {
    const Segment& segment = *segments[i];
    if (i >= placed) {
      if (segment.rows() > 0) directory.segments.push_back(layout.place(segment));
      continue;
    }
    std::vector<Placed>& sections = directory.segments[i].sections;
    const Section alive = alive_section(segment);
    const auto old = std::ranges::find(sections, "alive", &Placed::name);
    if (segment.removed() == 0 ||
        (old != sections.end() && old->checksum == checksum(alive.span())))
      continue;
    if (old != sections.end()) sections.erase(old);
    sections.push_back(layout.place("alive", alive));
  }
  for (const auto& [name, section] : attachments) {
    const auto& there = before.directory.attachments;
    const auto old = std::ranges::find(there, name, &Placed::name);
    directory.attachments.push_back(
        section.is_mapped() && old != there.end() ? *old : layout.place(name, section));
  }
  const Root root = layout.root(directory, before.root.generation + 1);
  UpdateSink sink(file);
  layout.write(sink);
  file.flush();
  file.write_at(root.generation % 2 == 1 ? 0 : kSlotBytes, bytes_of(root));
  file.flush();
}

}  // namespace prism::search
