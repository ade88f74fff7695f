// Fuzzes the parsers of HTTP header lines, validators and ranges.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "llm/store/content_version.h"
#include "llm/store/http_headers.h"

using namespace prism;
using namespace prism::llm;

namespace {

void expect(bool is_right) {
  if (!is_right) __builtin_trap();
}

void check_version(const ContentVersion& version) {
  for (const unsigned char c : version.validator()) expect(c >= 0x20 && c != 0x7f);
  expect(ContentVersion::parse(version.text()).text() == version.text());
  expect(version.agrees_with(version));
  expect(version.is_continued_by(version) == !version.validator().empty());
}

void check_range(std::string_view text) {
  const auto range = parse_content_range(text);
  if (!range) return;
  expect(range->first <= range->last && range->last < UINT64_MAX);
  expect(!range->file_bytes || range->last < *range->file_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  HttpHeaders headers;
  size_t taken = 0;
  for (std::string_view rest = all; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n') + 1);
    const std::string_view next = line.empty() ? rest : line;
    rest.remove_prefix(next.size());
    if (!headers.line(next)) {
      expect(!headers.is_final() && !headers.answer().problem.empty());
      break;
    }
    taken += next.size();
    expect(taken <= HttpHeaders::kMostBytes);
    if (!headers.is_final()) continue;
    const HttpAnswer& answer = headers.answer();
    expect(answer.status >= 200);
    check_version(version_of(answer));
    check_range(header(answer, "content-range"));
  }
  check_version(ContentVersion::parse(all));
  check_range(all);
  return 0;
}
