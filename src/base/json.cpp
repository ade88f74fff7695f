// JSON values: the tree, its parser on top of nlohmann's library, and its writer.
#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace prism {

// Builds the tree from the library's events. The open arrays and objects are a stack, so that the
// depth of a document uses no stack of the thread.
struct Json::Parser : nlohmann::json_sax<nlohmann::json> {
  explicit Parser(const JsonLimits& most) : limits(most) {}

  struct Level {
    Json json;
    std::string key = {};
  };
  const JsonLimits& limits;
  std::vector<Level> open;
  Json result;
  size_t values = 0;
  std::string failure = {};

  bool refuse(std::string why) {
    if (failure.empty()) failure = std::move(why);
    return false;
  }
  bool put(Json json) {
    if (++values > limits.values)
      return refuse(fmt::format("the JSON has more than {} values", limits.values));
    if (open.empty()) {
      result = std::move(json);
    } else if (auto* items = std::get_if<std::vector<Json>>(&open.back().json.value_)) {
      items->push_back(std::move(json));
    } else {
      auto& members = std::get<std::vector<Member>>(open.back().json.value_);
      members.push_back({std::move(open.back().key), std::move(json)});
    }
    return true;
  }
  bool begin(Json json) {
    if (open.size() >= static_cast<size_t>(limits.depth))
      return refuse(fmt::format("the JSON is nested more than {} levels deep", limits.depth));
    open.push_back({std::move(json)});
    return true;
  }
  bool end() {
    Json json = std::move(open.back().json);
    open.pop_back();
    return put(std::move(json));
  }
  // Sorts indices instead of searching for each key: an object may have millions of members.
  static void keep_last(std::vector<Member>& members) {
    std::vector<size_t> order(members.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {},
                             [&](size_t i) -> const std::string& { return members[i].key; });
    std::vector<bool> is_earlier(members.size());
    bool has_twins = false;
    for (size_t i = 0; i + 1 < order.size(); ++i)
      if (members[order[i]].key == members[order[i + 1]].key)
        is_earlier[order[i]] = has_twins = true;
    if (!has_twins) return;
    std::vector<Member> kept;
    for (size_t i = 0; i < members.size(); ++i)
      if (!is_earlier[i]) kept.push_back(std::move(members[i]));
    members = std::move(kept);
  }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(int64_t value) override { return put(value); }
  bool number_unsigned(uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string&) override { return put(value); }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(size_t) override { return begin(Json::object()); }
  bool key(std::string& value) override {
    open.back().key = std::move(value);
    return true;
  }
  bool end_object() override {
    keep_last(std::get<std::vector<Member>>(open.back().json.value_));
    return end();
  }
  bool start_array(size_t) override { return begin(Json::array()); }
  bool end_array() override { return end(); }
  bool parse_error(size_t position, const std::string& near,
                   const nlohmann::detail::exception& error) override {
    std::string_view why = error.what();  // "[json.exception.NAME] parse error at line ...: why"
    if (const size_t at = why.find("] "); at != why.npos) why.remove_prefix(at + 2);
    if (const size_t at = why.find(": "); at != why.npos) why.remove_prefix(at + 2);
    return refuse(fmt::format("the JSON is invalid at byte {}, near \"{}\": {}", position,
                              near.size() > 40 ? near.substr(near.size() - 40) : near, why));
  }
};

namespace {

// Returns the length of the valid character at the start of the text; 0: it begins with an invalid
// byte.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // No longer forms than needed, no surrogates, nothing beyond U+10FFFF.
  const unsigned char second = byte(1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
    return 0;
  return length;
}

void write_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto plain = static_cast<size_t>(
        std::ranges::find_if(text,
                             [](char c) {
                               const auto byte = static_cast<unsigned char>(c);
                               return byte < ' ' || byte >= 0x80 || c == '"' || c == '\\';
                             }) -
        text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const char c = text.front();
    const size_t bytes = character_bytes(text);
    if (bytes == 0)
      out += "\xEF\xBF\xBD";
    else if (bytes > 1)
      out += text.substr(0, bytes);
    else if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (const size_t at = std::string_view("\b\t\n\f\r").find(c); at != std::string_view::npos)
      (out += '\\') += "btnfr"[at];
    else
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  out += '"';
}

void write_number(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  const size_t start = out.size();
  fmt::format_to(std::back_inserter(out), "{}", number);
  if (out.find_first_of(".e", start) == out.npos) out += ".0";
}

}  // namespace

struct Json::Writer {
  std::string out = {};
  int indent = -1;

  void new_line(int level) {
    if (indent >= 0) (out += '\n').append(static_cast<size_t>(indent * level), ' ');
  }
  template <typename Values, typename Write>
  void write_list(char begin, char end, const Values& values, int level, Write&& write_value) {
    out += begin;
    bool is_first = true;
    for (const auto& each : values) {
      if (!std::exchange(is_first, false)) out += ',';
      new_line(level + 1);
      write_value(each);
    }
    if (!is_first) new_line(level);
    out += end;
  }
  void write(const Json& json, int level) {
    if (const auto* items = std::get_if<std::vector<Json>>(&json.value_))
      write_list('[', ']', *items, level, [&](const Json& each) { write(each, level + 1); });
    else if (const auto* members = std::get_if<std::vector<Member>>(&json.value_))
      write_list('{', '}', *members, level, [&](const Member& each) {
        write_string(out, each.key);
        out += indent < 0 ? ":" : ": ";
        write(each.value, level + 1);
      });
    else if (const auto* text = std::get_if<std::string>(&json.value_))
      write_string(out, *text);
    else if (const auto* number = std::get_if<double>(&json.value_))
      write_number(out, *number);
    else if (const auto* integer = std::get_if<int64_t>(&json.value_))
      fmt::format_to(std::back_inserter(out), "{}", *integer);
    else if (const auto* natural = std::get_if<uint64_t>(&json.value_))
      fmt::format_to(std::back_inserter(out), "{}", *natural);
    else if (const auto* flag = std::get_if<bool>(&json.value_))
      out += *flag ? "true" : "false";
    else
      out += "null";
  }

  // Returns whether this is a text and a value: a member of an object.
  static bool is_pair(const Json& json) {
    const auto* items = std::get_if<std::vector<Json>>(&json.value_);
    return items && items->size() == 2 && items->front().is_string();
  }
};

Json::Json(std::nullptr_t) : value_(nullptr) {}
Json::Json(bool value) : value_(value) {}
Json::Json(double value) : value_(value) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(std::string text) : value_(std::move(text)) {}

Json::Json(std::initializer_list<Json> items) {
  if (!std::ranges::all_of(items, Writer::is_pair)) {
    value_ = std::vector<Json>(items);
    return;
  }
  value_ = std::vector<Member>();
  for (const Json& each : items) {
    const auto& pair = std::get<std::vector<Json>>(each.value_);
    (*this)[std::get<std::string>(pair[0].value_)] = pair[1];
  }
}

// Not the variant's own copies: where all alternatives are strings, vectors and the like, those of
// libstdc++ 12 crash instead of throwing bad_alloc.
Json::Json(const Json& other) { *this = other; }
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json& other) {
  std::visit(
      [this](const auto& value) {
        auto copy = value;  // first: the other may be a part of this value
        value_ = std::move(copy);
      },
      other.value_);
  return *this;
}
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json Json::array() {
  Json result;
  result.value_ = std::vector<Json>();
  return result;
}

Json Json::object() {
  Json result;
  result.value_ = std::vector<Member>();
  return result;
}

Json Json::signed_number(int64_t value) {
  Json result;
  result.value_ = value;
  return result;
}

Json Json::unsigned_number(uint64_t value) {
  Json result;
  result.value_ = value;
  return result;
}

Json Json::parse(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("the JSON has {} bytes; at most {} are read", text.size(), limits.bytes));
  Parser parser(limits);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &parser))
    throw Error(ErrorCode::kInvalidArgument, parser.failure);
  return std::move(parser.result);
}

void Json::push_back(Json item) {
  if (is_null()) value_ = std::vector<Json>();
  std::get<std::vector<Json>>(value_).push_back(std::move(item));
}

Json& Json::operator[](const std::string& key) {
  if (is_null()) value_ = std::vector<Member>();
  auto& members = std::get<std::vector<Member>>(value_);
  const auto found = std::ranges::find(members, key, &Member::key);
  if (found != members.end()) return found->value;
  members.push_back({key, nullptr});
  return members.back().value;
}

std::string Json::dump(int indent) const {
  Writer writer{.indent = indent};
  writer.write(*this, 0);
  return std::move(writer.out);
}

Json::Kind Json::kind() const {
  // In the order of the types in Value.
  static constexpr Kind kKinds[] = {Kind::null,   Kind::boolean, Kind::number, Kind::number,
                                    Kind::number, Kind::string,  Kind::array,  Kind::object};
  return kKinds[value_.index()];
}

std::span<const Json> Json::items() const {
  const auto* items = std::get_if<std::vector<Json>>(&value_);
  return items ? std::span<const Json>(*items) : std::span<const Json>();
}

std::span<const Json::Member> Json::members() const {
  const auto* members = std::get_if<std::vector<Member>>(&value_);
  return members ? std::span<const Member>(*members) : std::span<const Member>();
}

const Json* Json::find(std::string_view key) const {
  for (const Member& each : members())
    if (each.key == key) return &each.value;
  return nullptr;
}

const char* json_kind_name(Json::Kind kind) {
  static constexpr const char* kNames[] = {"null",     "a boolean", "a number",
                                           "a string", "an array",  "an object"};
  return kNames[static_cast<size_t>(kind)];
}

const Json& JsonView::json() const {
  static const Json null;
  return json_ ? *json_ : null;
}

void JsonView::fail(const std::string& what) const {
  throw JsonError(path_, fmt::format("{} {}", path_.empty() ? "the JSON" : path_, what));
}

void JsonView::fail_kind(Json::Kind needed) const {
  fail(fmt::format("{}; it must be {}",
                   json_ ? fmt::format("is {}", json_kind_name(json_->kind())) : "is missing",
                   json_kind_name(needed)));
}

JsonView JsonView::operator[](std::string_view key) const {
  JsonView result;
  result.path_ = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  if (!*this) return result;
  if (!json_->is_object()) fail_kind(Json::Kind::object);
  result.json_ = json_->find(key);
  return result;
}

std::vector<JsonView> JsonView::items() const {
  std::vector<JsonView> result;
  if (!*this) return result;
  if (!json_->is_array()) fail_kind(Json::Kind::array);
  for (const Json& each : json_->items())
    result.emplace_back(each, fmt::format("{}[{}]", path_, result.size()));
  return result;
}

std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
  std::vector<std::pair<std::string, JsonView>> result;
  if (!*this) return result;
  if (!json_->is_object()) fail_kind(Json::Kind::object);
  for (const Json::Member& each : json_->members())
    result.emplace_back(each.key,
                        JsonView(each.value, path_.empty() ? each.key : path_ + "." + each.key));
  return result;
}

const std::string& JsonView::string() const {
  const auto* text = std::get_if<std::string>(&json().value_);
  if (!text) fail_kind(Json::Kind::string);
  return *text;
}

bool JsonView::boolean() const {
  const auto* flag = std::get_if<bool>(&json().value_);
  if (!flag) fail_kind(Json::Kind::boolean);
  return *flag;
}

double JsonView::number(double least, double most) const {
  double value = 0;
  if (const auto* real = std::get_if<double>(&json().value_))
    value = *real;
  else if (const auto* integer = std::get_if<int64_t>(&json().value_))
    value = static_cast<double>(*integer);
  else if (const auto* natural = std::get_if<uint64_t>(&json().value_))
    value = static_cast<double>(*natural);
  else
    fail_kind(Json::Kind::number);
  if (value < least || value > most)
    fail(fmt::format("is {}; it must be from {} to {}", value, least, most));
  return value;
}

int64_t JsonView::integer(int64_t least, int64_t most) const {
  constexpr double kExact = 9007199254740992;  // 2^53
  int64_t value = 0;
  if (const auto* integer = std::get_if<int64_t>(&json().value_))
    value = *integer;
  else if (const auto* natural = std::get_if<uint64_t>(&json().value_);
           natural && *natural > uint64_t{INT64_MAX})
    fail(fmt::format("is {}; it must be at most {}", *natural, most));
  else if (natural)
    value = static_cast<int64_t>(*natural);
  else if (const double real = number(); real == std::floor(real) && std::abs(real) <= kExact)
    value = static_cast<int64_t>(real);
  else
    fail(fmt::format("is {}; it must be an integer", real));
  if (value < least || value > most)
    fail(most == INT64_MAX ? fmt::format("is {}; it must be at least {}", value, least)
                           : fmt::format("is {}; it must be from {} to {}", value, least, most));
  return value;
}

}  // namespace prism
