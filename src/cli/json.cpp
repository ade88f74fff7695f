// JSON values on top of nlohmann's library.
#include "cli/json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace prism::cli {

struct Json::Member {
  std::string key;
  Json value;
};

struct Json::Writer {
  using Library = nlohmann::ordered_json;

  static Library written(const Json& json) {
    if (const auto* items = std::get_if<std::vector<Json>>(&json.value_)) {
      Library result = Library::array();
      for (const Json& each : *items) result.push_back(written(each));
      return result;
    }
    if (const auto* members = std::get_if<std::vector<Member>>(&json.value_)) {
      Library result = Library::object();
      for (const Member& each : *members) result[each.key] = written(each.value);
      return result;
    }
    if (const auto* text = std::get_if<std::string>(&json.value_)) return *text;
    if (const auto* number = std::get_if<double>(&json.value_)) return *number;
    if (const auto* number = std::get_if<int64_t>(&json.value_)) return *number;
    if (const auto* number = std::get_if<uint64_t>(&json.value_)) return *number;
    if (const auto* flag = std::get_if<bool>(&json.value_)) return *flag;
    return nullptr;
  }

  // Returns whether this is a text and a value: a member of an object.
  static bool is_pair(const Json& json) {
    const auto* items = std::get_if<std::vector<Json>>(&json.value_);
    return items && items->size() == 2 && std::get_if<std::string>(&items->front().value_);
  }
};

Json::Json(std::nullptr_t) : value_(nullptr) {}
Json::Json(bool value) : value_(value) {}
Json::Json(double value) : value_(value) {}
Json::Json(const char* text) : value_(std::string(text)) {}
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

Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
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

void Json::push_back(Json item) {
  if (std::holds_alternative<std::nullptr_t>(value_)) value_ = std::vector<Json>();
  std::get<std::vector<Json>>(value_).push_back(std::move(item));
}

Json& Json::operator[](const std::string& key) {
  if (std::holds_alternative<std::nullptr_t>(value_)) value_ = std::vector<Member>();
  auto& members = std::get<std::vector<Member>>(value_);
  const auto found = std::ranges::find(members, key, &Member::key);
  if (found != members.end()) return found->value;
  members.push_back({key, nullptr});
  return members.back().value;
}

std::string Json::dump(int indent) const {
  return Writer::written(*this).dump(indent, ' ', false, Writer::Library::error_handler_t::replace);
}

}  // namespace prism::cli
