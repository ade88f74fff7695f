// Implements the budget of a template and the functions over texts that it bounds.
#include "llm/template/template_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "prism/error.h"

namespace prism::llm::jinja {
namespace {

// A message is copied by each level of an expression that it passes.
constexpr size_t kLongestMessage = 1000;

}  // namespace

void fail(std::string_view message) {
  const bool cut = message.size() > kLongestMessage;
  message = message.substr(0, kLongestMessage);
  if (cut) message.remove_suffix(utf8_open_bytes(message));
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("chat template: {}{}", message, cut ? "..." : ""));
}

void Budget::stop() const { fail(fmt::format("the work exceeds {} steps and bytes", limit_)); }

void TextBuilder::append_character(uint32_t code) {
  budget_->charge(4);
  append_utf8(code, &text_);
}

bool same(Budget& budget, std::string_view a, std::string_view b) {
  budget.charge(1);
  if (a.size() != b.size()) return false;
  budget.charge(a.size());
  return a == b;
}

size_t find(Budget& budget, std::string_view text, std::string_view part, size_t from) {
  if (part.empty() || from >= text.size()) return text.find(part, from);
  while (true) {
    // Charges the bytes up to the next occurrence of the first byte, then those that match.
    const size_t at = text.find(part[0], from);
    budget.charge((at == text.npos ? text.size() : at + 1) - from);
    if (at == text.npos || part.size() > text.size() - at) return text.npos;
    const auto matched = static_cast<size_t>(
        std::mismatch(part.begin(), part.end(), text.begin() + static_cast<ptrdiff_t>(at)).first -
        part.begin());
    budget.charge(matched);
    if (matched == part.size()) return at;
    from = at + 1;
  }
}

size_t rfind(Budget& budget, std::string_view text, std::string_view part) {
  if (part.empty() || part.size() > text.size()) return text.rfind(part);
  for (size_t end = text.size() - part.size() + 1; end > 0;) {
    const size_t at = text.rfind(part[0], end - 1);
    budget.charge(at == text.npos ? end : end - at);
    if (at == text.npos) return at;
    const auto matched = static_cast<size_t>(
        std::mismatch(part.begin(), part.end(), text.begin() + static_cast<ptrdiff_t>(at)).first -
        part.begin());
    budget.charge(matched);
    if (matched == part.size()) return at;
    end = at;
  }
  return text.npos;
}

std::vector<size_t> character_starts(Budget& budget, std::string_view text) {
  budget.charge(text.size() + 1, sizeof(size_t));
  std::vector<size_t> starts;
  starts.reserve(text.size() + 1);
  for (size_t at = 0; at < text.size(); at += utf8_at(text, at).bytes) starts.push_back(at);
  starts.push_back(text.size());
  return starts;
}

size_t character_count(Budget& budget, std::string_view text) {
  budget.charge(text.size());
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += utf8_at(text, at).bytes) ++count;
  return count;
}

}  // namespace prism::llm::jinja
