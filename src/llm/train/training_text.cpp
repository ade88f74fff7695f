// The text of a file as training data.
#include "llm/train/training_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/units.h"
#include "base/utf8.h"
#include "prism/error.h"
#include "prism/nn/data.h"
#include "prism/warning.h"

namespace prism::llm {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, message));
}

std::string count_text(size_t count) { return exact_count_text(count); }

}  // namespace

std::string read_training_text(const std::string& path) {
  std::string text = nn::load_text(path);
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    fail(path, "the text is in UTF-16; convert it: iconv -f UTF-16 -t UTF-8");
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  if (text.find_first_not_of(" \t\r\n") == text.npos)
    fail(path, "the file is empty; training needs text");
  // NUL is valid UTF-8, but stands in no text: it tells UTF-16 and binary files.
  size_t invalid = 0, first = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character next = utf8_at(text, at);
    if (!next.is_valid || next.code == 0) {
      if (invalid++ == 0) first = at;
    }
    at += next.bytes;
  }
  if (invalid == 0) return text;
  if (invalid > text.size() / 100)
    fail(path, fmt::format("{} of {} bytes are no UTF-8 text, the first at {}; is it a binary file "
                           "or in another encoding (iconv -t UTF-8 converts)?",
                           count_text(invalid), count_text(text.size()), count_text(first)));
  warn(fmt::format("{}: {} bytes are not valid UTF-8, the first at {}; they are read as U+FFFD",
                   path, count_text(invalid), count_text(first)));
  return repair_utf8(text);
}

TokenSplit split_tokens(std::vector<int32_t> tokens, double share, int64_t context, int64_t batch,
                        const std::string& path) {
  if (!(share >= 0 && share < 1))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("validation: a share of {}; it must be at least 0 and below 1", share));
  const auto count = static_cast<int64_t>(tokens.size());
  const int64_t sequence = context + 1;  // with the token after
  const int64_t kept =
      share == 0 ? 0
                 : std::max<int64_t>(sequence, std::llround(share * static_cast<double>(count)));
  if (count - kept < sequence)
    fail(path, fmt::format("{} tokens are too few: a sequence has {} and the token after{}; use "
                           "more text or a shorter context",
                           count, context,
                           kept > 0 ? fmt::format(", and validation takes {}", kept) : ""));
  const int64_t sequences = (count - kept - 1) / context;
  if (sequences < batch)
    fail(path, fmt::format("{} sequences of {} tokens are too few for batches of {}; use more "
                           "text, smaller batches or a shorter context",
                           sequences, context, batch));
  TokenSplit result;
  result.validation.assign(tokens.end() - kept, tokens.end());
  tokens.resize(static_cast<size_t>(count - kept));
  result.training = std::move(tokens);
  return result;
}

}  // namespace prism::llm
