// The file of an index: two root slots, sections of bytes, and a directory that names them.
//
// A root holds the place of the directory, a generation and checksums. A commit appends sections
// and a directory, flushes, and then writes the slot of the older root. So a crash leaves either
// the old root or the new one, and everything a root refers to is on the disk. Readers use the
// valid root with the higher generation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/system/mapped_file.h"
#include "base/system/updated_file.h"
#include "search/segment.h"

namespace prism::search {

struct Root {
  char magic[8];
  uint32_t version, reserved;
  uint64_t generation;
  uint64_t directory_at, directory_bytes, directory_checksum;
  uint64_t end;  // of everything this root refers to
  uint64_t own_checksum;
};
static_assert(sizeof(Root) == 64);

// One entry of the directory.
struct Placed {
  std::string name;
  uint64_t at = 0, bytes = 0, checksum = 0;
};
struct PlacedSegment {
  uint64_t rows = 0;
  std::vector<Placed> sections;
};
struct Directory {
  IndexOptions options;
  std::vector<PlacedSegment> segments;
  std::vector<Placed> attachments = {};

  std::string text() const;  // JSON
  // Throws kCorruptFile naming the path.
  static Directory parse(const std::string& path, std::string_view text);
};

// Bytes that users of an index keep in its file, by name.
using Attachments = std::map<std::string, Section>;

// What is in a file: parsed and checked, but for the checksums of sections.
struct OpenFile {
  std::string path;
  MappedFile mapped;
  Root root{};
  Directory directory;

  static OpenFile open(const std::string& path);
  Section section(const Placed& placed) const;
  std::vector<Segment> segments() const;
  Attachments attachments() const;
  void verify() const;  // compares the checksum of each section
};

// The newer valid root of a file; throws kCorruptFile if there is none.
Root newest_root(const std::string& path, std::string_view file);

// Writes a whole file, or leaves what was there.
void write_index(const std::string& path, const IndexOptions& options,
                 const std::vector<const Segment*>& segments, const Attachments& attachments,
                 uint64_t generation);

// Appends segments behind the `placed` first ones, which are in the file already. Their bitmaps of
// removed rows are written again. Attachments that are mapped from the file stay where they are.
void append_commit(UpdatedFile& file, const OpenFile& before, const IndexOptions& options,
                   const std::vector<const Segment*>& segments, size_t placed,
                   const Attachments& attachments);

}  // namespace prism::search
