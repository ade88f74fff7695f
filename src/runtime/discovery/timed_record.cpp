// Puts the first and the last second of validity before the text.
#include "runtime/discovery/timed_record.h"

#include <charconv>
#include <span>

#include <fmt/format.h>

#include "base/cache_folder.h"

namespace prism {
namespace {

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Takes a whole number and its newline from the front of the text.
std::optional<int64_t> take_number(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == text.npos) return std::nullopt;
  int64_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + end, value);
  if (error != std::errc() || at != text.data() + end) return std::nullopt;
  text.remove_prefix(end + 1);
  return value;
}

}  // namespace

std::string timed_text(std::string_view text, int64_t made, int64_t ends) {
  return fmt::format("{}\n{}\n{}", made, ends, text);
}

std::optional<std::string> parse_timed(std::string_view content, int64_t now) {
  const std::optional<int64_t> made = take_number(content);
  const std::optional<int64_t> ends = made ? take_number(content) : std::nullopt;
  if (!made || !ends || now < *made || now >= *ends) return std::nullopt;
  return std::string(content);
}

void write_timed_record(std::string_view kind, const std::string& key, std::string_view text,
                        std::chrono::seconds valid) {
  if (valid.count() <= 0) return;
  const int64_t now = seconds_now();
  const std::string record = timed_text(text, now, now + valid.count());
  write_cached(kind, key, std::as_bytes(std::span(record)));
}

std::optional<std::string> read_timed_record(std::string_view kind, const std::string& key) {
  const auto content = read_cached(kind, key);
  if (!content) return std::nullopt;
  return parse_timed({reinterpret_cast<const char*>(content->data()), content->size()},
                     seconds_now());
}

}  // namespace prism
