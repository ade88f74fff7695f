// Splits text by regular expressions with PCRE2.
#include "llm/tokenizer/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <span>

#include "base/utf8.h"
#include "llm/tokenizer/ascii_splitter.h"
#include "llm/tokenizer/pre_tokenizer_types.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreeStack {
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

std::string pcre2_message(int code) {
  PCRE2_UCHAR text[120];
  if (pcre2_get_error_message(code, text, sizeof text) < 0) return fmt::format("error {}", code);
  return reinterpret_cast<const char*>(text);
}

const PreType& find_type(std::string_view name) {
  if (name.empty()) name = "default";
  for (const PreType& type : pre_types())
    if (std::ranges::find(type.names, name) != type.names.end()) return type;
  throw Error(ErrorCode::kNotSupported,
              fmt::format("tokenizer: pre-tokenizer type \"{}\" is not supported; supported are {}",
                          name, fmt::join(pre_tokenizer_types(), ", ")));
}

}  // namespace

class PreTokenizer::Pattern {
 public:
  explicit Pattern(std::string_view expression) : ascii_(ascii_splitter(expression)) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                          PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr);
    if (!code_) {
      throw Error(ErrorCode::kNotSupported,
                  fmt::format("tokenizer: compiling expression {} failed at {}: {}", expression, at,
                              pcre2_message(error)));
    }
    // Without JIT support, PCRE2 falls back to its interpreter.
    pcre2_jit_compile(code_, PCRE2_JIT_COMPLETE);
  }
  // Compiled once: that takes longer than to split most texts. The expressions are constants.
  static std::shared_ptr<const Pattern> shared(std::string_view expression) {
    static std::mutex mutex;
    static std::map<std::string_view, std::shared_ptr<const Pattern>> all;
    const std::scoped_lock lock(mutex);
    std::shared_ptr<const Pattern>& found = all[expression];
    if (!found) found = std::make_shared<const Pattern>(expression);
    return found;
  }
  Pattern(const Pattern&) = delete;
  ~Pattern() { pcre2_code_free(code_); }

  // Appends the matches and the text between them for each text. Texts must be valid UTF-8.
  void split(std::span<const std::string_view> texts, bool short_way,
             std::vector<std::string_view>* words) const {
    Matcher matcher(code_);
    for (const std::string_view text : texts) split(text, short_way, &matcher, words);
  }

 private:
  class Matcher;
  void split(std::string_view text, bool short_way, Matcher* matcher,
             std::vector<std::string_view>* words) const {
    size_t done = 0, at = 0;
    while (at < text.size()) {
      if (short_way && ascii_ && done == at) {
        at = done = ascii_->split(text, at, words);
        if (at == text.size()) break;
      }
      size_t start, end;
      if (!matcher->find(text, at, &start, &end)) break;
      if (start > done) words->push_back(text.substr(done, start - done));
      if (end > start) words->push_back(text.substr(start, end - start));
      done = end;
      // An empty match splits in place; the search continues after the next character.
      at = end > start ? end : end + (end < text.size() ? utf8_at(text, end).bytes : 1);
    }
    if (done < text.size()) words->push_back(text.substr(done));
  }

  // The buffers that searches reuse.
  class Matcher {
   public:
    explicit Matcher(pcre2_code* code) : code_(code), match_(pcre2_match_data_create(1, nullptr)) {
      if (!match_)
        throw Error(ErrorCode::kOutOfMemory, "tokenizer: allocating PCRE2 match data failed");
    }
    bool find(std::string_view text, size_t at, size_t* start, size_t* end) {
      int found = call(text, at, 0);
      if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
        // The default JIT stack is small; long words need a larger one.
        if (!stack_) {
          stack_.reset(pcre2_jit_stack_create(1 << 16, 1 << 26, nullptr));
          context_.reset(pcre2_match_context_create(nullptr));
          if (stack_ && context_) pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
        }
        found = call(text, at, 0);
        if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = call(text, at, PCRE2_NO_JIT);
      }
      if (found == PCRE2_ERROR_NOMATCH) return false;
      if (found < 0) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("tokenizer: splitting a text of {} bytes failed at byte {}: {}",
                                text.size(), at, pcre2_message(found)));
      }
      const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match_.get());
      *start = range[0];
      *end = range[1];
      return true;
    }

   private:
    int call(std::string_view text, size_t at, uint32_t options) const {
      return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                         PCRE2_NO_UTF_CHECK | options, match_.get(), context_.get());
    }
    pcre2_code* code_;
    std::unique_ptr<pcre2_match_data, FreeMatch> match_;
    std::unique_ptr<pcre2_jit_stack, FreeStack> stack_;
    std::unique_ptr<pcre2_match_context, FreeContext> context_;
  };

  const AsciiSplitter* ascii_;
  pcre2_code* code_;
};

PreTokenizer::PreTokenizer(std::string_view type) {
  const PreType& found = find_type(type);
  traits_ = found.traits;
  for (const std::string_view expression : found.patterns)
    patterns_.push_back(Pattern::shared(expression));
}

PreTokenizer::~PreTokenizer() = default;

void PreTokenizer::split_valid(std::string_view text, bool short_way,
                               std::vector<std::string_view>* words) const {
  std::vector<std::string_view> before{text}, after;
  for (const auto& pattern : patterns_) {
    if (pattern == patterns_.back()) return pattern->split(before, short_way, words);
    after.clear();
    pattern->split(before, short_way, &after);
    std::swap(before, after);
  }
}

void PreTokenizer::split(std::string_view text, std::vector<std::string_view>* words) const {
  for (size_t at = 0; at < text.size();) {
    const size_t end = utf8_valid_end(text, at);
    if (end > at) split_valid(text.substr(at, end - at), true, words);
    if (end < text.size()) words->push_back(text.substr(end, 1));
    at = end + 1;
  }
}

void PreTokenizer::split_plainly(std::string_view text,
                                 std::vector<std::string_view>* words) const {
  split_valid(text, false, words);
}

const PreTokenizerTraits& pre_tokenizer_traits(std::string_view type) {
  return find_type(type).traits;
}

std::vector<std::string_view> pre_tokenizer_types() {
  std::vector<std::string_view> names;
  for (const PreType& type : pre_types())
    names.insert(names.end(), type.names.begin(), type.names.end());
  return names;
}

}  // namespace prism::llm
