// The work that a template may do, and the texts it builds within it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prism::llm::jinja {

// Throws kInvalidArgument: "chat template: ...". Long messages are cut.
[[noreturn]] void fail(std::string_view message);

// What a step costs besides the bytes it creates or compares.
inline constexpr size_t kStep = 16;

// Counts steps and bytes. Whatever takes time or memory is charged here before it is done, so a
// function without a budget takes constant time.
class Budget {
 public:
  explicit Budget(uint64_t limit) : limit_(limit), left_(limit) {}
  Budget(const Budget&) = delete;

  // Throws kInvalidArgument if less than this is left.
  void charge(uint64_t amount) {
    if (amount > left_) stop();
    left_ -= amount;
  }
  void charge(size_t count, size_t each) {
    if (each > 0 && count > left_ / each) stop();
    charge(uint64_t{count} * each);
  }

 private:
  [[noreturn]] void stop() const;
  const uint64_t limit_;
  uint64_t left_;
};

// A text under construction: charges its bytes before it grows.
class TextBuilder {
 public:
  explicit TextBuilder(Budget* budget) : budget_(budget) {}
  TextBuilder& operator+=(std::string_view text) {
    budget_->charge(text.size());
    text_ += text;
    return *this;
  }
  TextBuilder& operator+=(char c) { return *this += std::string_view(&c, 1); }
  void append(size_t count, char c) {
    budget_->charge(count);
    text_.append(count, c);
  }
  void append_character(uint32_t code);  // as UTF-8
  // Charges the visit of a value, which may add only a byte or two.
  void charge_step() { budget_->charge(kStep); }
  size_t size() const { return text_.size(); }
  std::string take() { return std::move(text_); }

 private:
  Budget* budget_;
  std::string text_;
};

// --- functions over texts; each charges the bytes it looks at

bool same(Budget& budget, std::string_view a, std::string_view b);
// As std::string_view's.
size_t find(Budget& budget, std::string_view text, std::string_view part, size_t from = 0);
size_t rfind(Budget& budget, std::string_view text, std::string_view part);
// Byte offsets of the characters of a text; the last entry is the end.
std::vector<size_t> character_starts(Budget& budget, std::string_view text);
size_t character_count(Budget& budget, std::string_view text);

}  // namespace prism::llm::jinja
