// The patterns of .gitignore and .ignore files, with the meaning that git gives them.
#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

namespace prism::search {

// One pattern without its leading "!" and "/" and its trailing "/".
class PathPattern {
 public:
  explicit PathPattern(std::string_view text);
  // Takes time proportional to the product of both lengths.
  bool matches(std::string_view path) const;

 private:
  enum class Kind : uint8_t {
    byte,
    one,      // ?: a byte but '/'
    some,     // *: bytes but '/'
    all,      // "**" at the end: any bytes
    folders,  // "**/": nothing, or whole folder names
    set       // [a-z]: a byte but '/'
  };
  struct Token {
    Kind kind;
    unsigned char byte = 0;
    size_t set = 0;
  };
  bool add_set(std::string_view text, size_t& at);

  std::vector<Token> tokens_;
  std::vector<std::bitset<256>> sets_;
  bool is_valid_ = true;  // an invalid pattern matches nothing
};

// The patterns of one file.
class IgnoreRules {
 public:
  enum class Verdict { none, ignored, kept };

  explicit IgnoreRules(std::string_view text);
  bool empty() const { return rules_.empty(); }
  // path is relative to the folder of the file; the last pattern that matches decides. The caller
  // does not enter ignored folders.
  Verdict verdict(std::string_view path, bool is_folder) const;

 private:
  struct Rule {
    PathPattern pattern;
    bool keeps = false;         // "!"
    bool folders_only = false;  // a "/" at the end
    bool is_anchored = false;   // a "/" elsewhere: matches the whole path, not the name
  };
  void add_line(std::string_view line);
  std::vector<Rule> rules_;
};

}  // namespace prism::search
