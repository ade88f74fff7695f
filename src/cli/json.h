// JSON values for the commands' --json output; members keep the order in which they were added. The
// library that writes them (nlohmann) is hidden in one file because it takes seconds to compile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace prism::cli {

class Json {
 public:
  Json(std::nullptr_t = nullptr);
  Json(bool value);
  Json(double value);  // infinities and NaN are written as null
  Json(const char* text);
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

  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  void push_back(Json item);                 // turns null into an array
  Json& operator[](const std::string& key);  // turns null into an object; a new value is null
  // indent: spaces for each level; -1: one line. Invalid UTF-8 becomes U+FFFD.
  std::string dump(int indent = -1) const;

 private:
  struct Member;
  struct Writer;
  using Value = std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string,
                             std::vector<Json>, std::vector<Member>>;
  static Json signed_number(int64_t value);
  static Json unsigned_number(uint64_t value);
  template <typename Items>
  static Json of(const Items& items);
  Value value_;
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

}  // namespace prism::cli
