// Fuzzes the files that Prism keeps between runs: each is ignored, or read and the same after it
// was written again. The first byte chooses the kind of file.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/cache_folder.h"
#include "cli/conversation_text.h"
#include "prism/error.h"
#include "runtime/device_records.h"
#include "runtime/discovery/choice_record.h"
#include "runtime/discovery/timed_record.h"
#include "runtime/measure/calibration_record.h"

using namespace prism;

namespace {

constexpr int64_t kNow = 1'800'000'000;  // a second in 2027

void check(bool holds) {
  if (!holds) std::abort();
}

// A file under its key is read, and ignored after a damage to any byte.
void read_cache_file(const std::string& text) {
  const auto content = std::as_bytes(std::span(text));
  check(!cached_content("key", content) ||
        text.starts_with(cache_file_head("key", content.subspan(40))));
  std::string file = cache_file_head("key", content) + text;
  check(cached_content("key", std::as_bytes(std::span(file))).has_value());
  check(!cached_content("other", std::as_bytes(std::span(file))));
  const size_t at = text.empty() ? 0 : static_cast<uint8_t>(text[0]) % file.size();
  file[at] = static_cast<char>(file[at] ^ (text.size() % 255 + 1));
  check(!cached_content("key", std::as_bytes(std::span(file))));
}

void read_record(const std::string& text) {
  const auto record = parse_device_record(text);
  if (!record) return;
  check(parse_device_record(device_record_text(*record)) == record);
  const auto calibration = parse_calibration(*record);
  if (!calibration) return;
  for (const CalibrationFigure& figure : kCalibrationFigures)
    check(std::isnormal(*calibration.*figure.member) && *calibration.*figure.member > 0);
}

void read_choice(const std::string& content) {
  const auto text = parse_timed(content, kNow);
  const auto choice = text ? parse_choice(*text) : std::nullopt;
  if (!choice) return;
  const std::string written = choice_text(*choice);
  const auto again = parse_choice(*parse_timed(timed_text(written, kNow, kNow + 1), kNow));
  check(again && again->id == choice->id && again->why == choice->why);
  check(!parse_timed(timed_text(written, kNow + 1, kNow + 2), kNow));
  check(!parse_timed(timed_text(written, kNow - 1, kNow), kNow));
}

void read_conversation(const std::string& text) {
  try {
    const cli::Conversation read = cli::parse_conversation(text, "file");
    const cli::Conversation again = cli::parse_conversation(cli::conversation_text(read), "file");
    check(again.model == read.model && again.messages.size() == read.messages.size());
    for (size_t i = 0; i < read.messages.size(); ++i)
      check(again.messages[i].role == read.messages[i].role &&
            again.messages[i].content == read.messages[i].content);
  } catch (const Error& error) {
    check(error.code() == ErrorCode::kCorruptFile);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      read_cache_file(text);
      break;
    case 1:
      read_record(text);
      break;
    case 2:
      read_choice(text);
      break;
    default:
      read_conversation(text);
  }
  return 0;
}
