// The text headers of tensor files: JSON objects and Python dictionaries of strings and integers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "prism/shape.h"

namespace prism {

// Reads a header from left to right. Every function skips spaces first and throws kCorruptFile with
// the file's path when it finds something else than asked for.
class HeaderText {
 public:
  HeaderText(std::string path, std::string_view text) : path_(std::move(path)), text_(text) {}

  bool take(char wanted);  // whether it comes next; then it is passed
  void expect(char wanted);
  std::string quoted();                  // in single or double quotes, with the escapes of JSON
  int64_t number();                      // a whole number of 0 or more
  bool truth();                          // Python's True or False
  Shape lengths(char open, char close);  // comma-separated numbers, at most kMaxRank
  void expect_end();
  [[noreturn]] void fail(const std::string& what) const;

 private:
  void skip_spaces();
  char next_char();
  uint32_t hex_digits();
  void append_escaped(std::string& text);

  std::string path_;
  std::string_view text_;
  size_t at_ = 0;
};

// Throws kCorruptFile with the path.
[[noreturn]] void fail_loading(const std::string& path, const std::string& what);

// "a" with quotes, as JSON writes it.
std::string json_quoted(std::string_view text);

}  // namespace prism
