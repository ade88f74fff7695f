// JSON values: written by commands and the server, read from requests and files. Members keep their
// order. The parser (nlohmann) is hidden in one file because it takes seconds to compile.
//
//   const Json body = Json::parse(text);
//   const int64_t count = JsonView(body)["options"]["count"].integer_or(1);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "prism/error.h"

namespace prism {

// Limits for untrusted text.
struct JsonLimits {
  size_t bytes = size_t{64} << 20;
  size_t values = size_t{4} << 20;  // a value takes 48 bytes, and may be 2 bytes of text
  int depth = 128;                  // of arrays and objects
};

class Json {
 public:
  struct Member;
  enum class Kind : uint8_t { null, boolean, number, string, array, object };

  Json(std::nullptr_t = nullptr);
  Json(bool value);
  Json(double value);  // infinities and NaN are written as null
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text);
  // Pairs that begin with a text make an object: {{"id", 1}, {"name", "a"}}. Anything else makes an
  // array.
  Json(std::initializer_list<Json> items);
  template <typename T>
  requires std::is_integral_v<T> Json(T value);
  template <typename T>
  Json(const std::vector<T>& items) : Json(of(items)) {}
  template <typename T, size_t N>
  Json(const std::array<T, N>& items) : Json(of(items)) {}
  template <typename T>
  Json(const std::map<std::string, T>& members);
  static Json array();
  static Json object();
  // Of several members with the same key the last one counts. Throws kInvalidArgument with the byte
  // position for text that is not JSON, is not UTF-8 or exceeds a limit.
  static Json parse(std::string_view text, const JsonLimits& limits = {});

  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  void push_back(Json item);                 // turns null into an array
  Json& operator[](const std::string& key);  // turns null into an object; a new value is null
  // indent: spaces for each level; -1: one line. Invalid UTF-8 becomes U+FFFD.
  std::string dump(int indent = -1) const;

  Kind kind() const;
  bool is_null() const { return kind() == Kind::null; }
  bool is_string() const { return kind() == Kind::string; }
  bool is_number() const { return kind() == Kind::number; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_object() const { return kind() == Kind::object; }
  std::span<const Json> items() const;           // empty unless this is an array
  std::span<const Member> members() const;       // empty unless this is an object
  const Json* find(std::string_view key) const;  // null when absent

 private:
  friend class JsonView;
  struct Parser;
  struct Writer;
  using Value = std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string,
                             std::vector<Json>, std::vector<Member>>;
  static Json signed_number(int64_t value);
  static Json unsigned_number(uint64_t value);
  template <typename Items>
  static Json of(const Items& items);
  Value value_;
};

struct Json::Member {
  std::string key;
  Json value;
};

// A value that is missing or wrong.
class JsonError : public Error {
 public:
  JsonError(std::string path, const std::string& message)
      : Error(ErrorCode::kInvalidArgument, message), path_(std::move(path)) {}
  const std::string& path() const { return path_; }  // "messages[0].content"

 private:
  std::string path_;
};

const char* json_kind_name(Json::Kind kind);  // "null", "a string" ...

// A place in a document, and its path for messages: "messages[0].content". The document must
// outlive it. A getter throws JsonError with the path, the kind found and the kind needed.
// The _or forms return the argument if the value is absent or null.
class JsonView {
 public:
  explicit JsonView(const Json& json, std::string path = "")
      : json_(&json), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  const Json& json() const;                                              // null if absent
  explicit operator bool() const { return json_ && !json_->is_null(); }  // present and not null
  bool is_string() const { return json().is_string(); }
  bool is_number() const { return json().is_number(); }
  bool is_array() const { return json().is_array(); }
  bool is_object() const { return json().is_object(); }

  // A member or an item, which may be absent. Throws if this is neither absent, null nor an object
  // or array.
  JsonView operator[](std::string_view key) const;
  std::vector<JsonView> items() const;
  std::vector<std::pair<std::string, JsonView>> members() const;

  const std::string& string() const;
  bool boolean() const;
  double number(double least = -1e308, double most = 1e308) const;
  int64_t integer(int64_t least = INT64_MIN, int64_t most = INT64_MAX) const;
  std::string string_or(std::string otherwise) const { return *this ? string() : otherwise; }
  bool boolean_or(bool otherwise) const { return *this ? boolean() : otherwise; }
  double number_or(double otherwise, double least = -1e308, double most = 1e308) const {
    return *this ? number(least, most) : otherwise;
  }
  int64_t integer_or(int64_t otherwise, int64_t least = INT64_MIN, int64_t most = INT64_MAX) const {
    return *this ? integer(least, most) : otherwise;
  }

  // Throws JsonError: "PATH WHAT".
  [[noreturn]] void fail(const std::string& what) const;

 private:
  JsonView() = default;
  [[noreturn]] void fail_kind(Json::Kind needed) const;
  const Json* json_ = nullptr;  // null: absent
  std::string path_;
};

template <typename T>
requires std::is_integral_v<T> Json::Json(T value)
    : Json(std::is_signed_v<T> ? signed_number(static_cast<int64_t>(value))
                               : unsigned_number(static_cast<uint64_t>(value))) {}

template <typename Items>
Json Json::of(const Items& items) {
  Json result = array();
  for (const auto& each : items) result.push_back(each);
  return result;
}

template <typename T>
Json::Json(const std::map<std::string, T>& members) : Json(object()) {
  for (const auto& [key, value] : members) (*this)[key] = value;
}

}  // namespace prism
