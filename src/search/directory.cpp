// The directory of an index file as JSON.
#include <charconv>

#include <fmt/format.h>

#include "base/json.h"
#include "prism/error.h"
#include "search/index_file.h"

namespace prism::search {

namespace {

// JSON numbers are exact up to 2^53; checksums are texts.
constexpr uint64_t kMost = uint64_t{1} << 53;
constexpr uint64_t kMaximumWidth = 65536, kMaximumRows = uint64_t{1} << 31;

uint64_t hexadecimal(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(ErrorCode::kInvalidArgument, "a checksum is not a number");
  return value;
}

uint64_t count_of(const JsonView& view, uint64_t most) {
  return static_cast<uint64_t>(view.integer(0, static_cast<int64_t>(most)));
}

Json places(const std::vector<Placed>& sections) {
  Json all = Json::array();
  for (const Placed& placed : sections)
    all.push_back({{"name", placed.name},
                   {"at", placed.at},
                   {"bytes", placed.bytes},
                   {"checksum", fmt::format("{:x}", placed.checksum)}});
  return all;
}

std::vector<Placed> read_places(const JsonView& view) {
  std::vector<Placed> sections;
  for (const JsonView& each : view.items())
    sections.push_back({each["name"].string(), count_of(each["at"], kMost),
                        count_of(each["bytes"], kMost), hexadecimal(each["checksum"].string())});
  return sections;
}

DType type_of(const std::string& name, std::initializer_list<DType> types) {
  for (const DType type : types)
    if (name == dtype_name(type)) return type;
  throw Error(ErrorCode::kInvalidArgument, "vectors of type " + name);
}

}  // namespace

std::string Directory::text() const {
  Json all = Json::array();
  for (const PlacedSegment& segment : segments)
    all.push_back({{"rows", segment.rows}, {"sections", places(segment.sections)}});
  Json top = {{"width", options.width},
              {"metric", metric_name(options.metric)},
              {"type", dtype_name(options.type)},
              {"rescore", options.rescore ? dtype_name(*options.rescore) : ""},
              {"text_ids", options.text_ids},
              {"segments", all}};
  if (!attachments.empty()) top["attachments"] = places(attachments);
  return top.dump();
}

Directory Directory::parse(const std::string& path, std::string_view text) {
  try {
    const Json json = Json::parse(text);
    const JsonView top(json);
    Directory made;
    made.options.width = count_of(top["width"], kMaximumWidth);
    const std::optional<Metric> metric = parse_metric(top["metric"].string());
    if (!metric) top["metric"].fail("is no metric");
    made.options.metric = *metric;
    made.options.type =
        type_of(top["type"].string(), {DType::f32, DType::f16, DType::bf16, DType::i8, DType::b1});
    if (const std::string& rescore = top["rescore"].string(); !rescore.empty())
      made.options.rescore = type_of(rescore, {DType::f32, DType::f16});
    made.options.text_ids = top["text_ids"].boolean();
    for (const JsonView& each : top["segments"].items())
      made.segments.push_back(
          {count_of(each["rows"], kMaximumRows), read_places(each["sections"])});
    if (top["attachments"]) made.attachments = read_places(top["attachments"]);
    return made;
  } catch (const Error& error) {
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: its directory cannot be read: {}", path, error.what()));
  }
}

}  // namespace prism::search
