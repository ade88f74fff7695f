// Reads files and tells text from other content.
#include "search/files/file_content.h"

#include <algorithm>
#include <cctype>

#include "base/system/input_file.h"
#include "base/utf8.h"
#include "prism/error.h"
#include "search/files/text_encoding.h"

namespace prism::search {
namespace {

// Text of other encodings has some invalid bytes, and binary content many.
constexpr size_t kLookedAt = 8192, kInvalidShare = 10;
// Generated lines: a hand-written line is rarely longer than 500 bytes, a paragraph than 20,000.
constexpr size_t kMaximumLine = 100000, kMaximumMeanLine = 2000;

constexpr std::string_view kBraces =
    " c h cc cpp cxx hh hpp hxx inc inl ipp cu cuh m mm java kt kts scala groovy cs js jsx mjs cjs "
    "ts tsx go rs swift dart php css scss less glsl vert frag comp hlsl cl proto "
    "thrift zig v sv r pl pm d sol tf hcl gradle json jsonc json5 ";
constexpr std::string_view kIndents =
    " py pyi pyx rb lua jl ex exs erl hrl hs ml mli fs fsx clj cljs el lisp scm nim cr sh bash zsh "
    "fish ps1 bat cmd cmake mk mak bazel bzl yaml yml toml ini cfg conf sql vim tcl awk sed asm s "
    "f90 f95 pas vb nix dockerfile makefile ";
constexpr std::string_view kMarkdown = " md markdown mdx rst adoc org ";

bool lists(std::string_view list, const std::string& word) {
  return list.find(" " + word + " ") != list.npos;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return static_cast<char>(std::tolower(c & 0xff)); });
  return result;
}

// By its byte order mark; every second byte of plain letters is 0.
bool is_utf16(std::string_view bytes) {
  return bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff");
}

bool is_binary(std::string_view bytes) {
  const std::string_view looked_at = bytes.substr(0, kLookedAt);
  if (looked_at.find('\0') != looked_at.npos) return true;
  size_t invalid = 0;
  for (size_t at = 0; at < looked_at.size();) {
    const Utf8Character character = utf8_at(bytes, at);
    invalid += character.is_valid ? 0 : 1;
    at += character.bytes;
  }
  return invalid * kInvalidShare > looked_at.size();
}

bool is_minified(std::string_view text) {
  size_t lines = 0, longest = 0;
  for (size_t at = 0; at < text.size(); ++lines) {
    const size_t end = std::min(text.find('\n', at), text.size());
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  return longest > kMaximumLine || text.size() > kMaximumMeanLine * std::max<size_t>(lines, 10);
}

}  // namespace

ContentType content_type(std::string_view path) {
  const std::string name = lower(path.substr(path.rfind('/') + 1));
  const size_t dot = name.rfind('.');
  const std::string ending = dot == name.npos ? name : name.substr(dot + 1);
  if (name == "cmakelists.txt" || lists(kIndents, ending))
    return {ContentKind::code, Structure::indents};
  if (dot != name.npos && lists(kBraces, ending)) return {ContentKind::code, Structure::braces};
  if (dot != name.npos && lists(kMarkdown, ending)) return {ContentKind::text, Structure::markdown};
  return {ContentKind::text, Structure::prose};
}

FileContent content_of(std::string bytes) {
  FileContent content;
  if (bytes.size() > kMaximumFileBytes)
    content.unsearchable = Unsearchable::large;
  else if (!is_utf16(bytes) && is_binary(bytes))
    content.unsearchable = Unsearchable::binary;
  else if (is_minified(bytes))
    content.unsearchable = Unsearchable::minified;
  if (content.unsearchable) return content;
  std::string text = as_utf8(bytes);
  if (text.find('\0') != text.npos) {
    content.unsearchable = Unsearchable::binary;
    return content;
  }
  size_t to = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] != '\r' || (i + 1 < text.size() && text[i + 1] != '\n')) text[to++] = text[i];
  text.resize(to);
  content.text = std::move(text);
  return content;
}

FileContent read_content(const std::string& path) {
  // A file may grow while it is read; one byte beyond the limit says that it is too large.
  try {
    return content_of(read_input_file(path, kMaximumFileBytes));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    FileContent large;
    large.unsearchable = Unsearchable::large;
    return large;
  }
}

}  // namespace prism::search
