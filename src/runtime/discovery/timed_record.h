// Texts in the cache folder that are valid for a limited time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace prism {

// Does nothing if `valid` is not positive.
void write_timed_record(std::string_view kind, const std::string& key, std::string_view text,
                        std::chrono::seconds valid);

// The text, if it is still valid.
std::optional<std::string> read_timed_record(std::string_view kind, const std::string& key);

// The content of a record. made, ends: seconds since 1970; it is valid from `made` until before
// `ends`.
std::string timed_text(std::string_view text, int64_t made, int64_t ends);
// Absent for content that is no record, and for one that is not valid at `now`: a record from the
// future means that the clock was set back.
std::optional<std::string> parse_timed(std::string_view content, int64_t now);

}  // namespace prism
