// Chooses the cuts of a text by dynamic programming over the rates of its lines.
#include "search/files/splitter.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "search/files/text_lines.h"

namespace prism::search {
namespace {

// The price of a cut at each rate, and of leaving it out inside of a passage. A passage costs 1 by
// itself: two sections are kept apart unless one is short, paragraphs are joined up to the limit.
constexpr double kCutPrice[] = {8, 3, 0.8, 0.2, 0};
constexpr double kJoinPrice[] = {0, 0, 0.1, 0.7, 1.7};
constexpr double kShortPrice = 2.5;     // of an empty passage, falling to 0
constexpr uint64_t kShortTokens = 100;  // below this a passage says little
constexpr size_t kMaximumLines = 300;   // blank lines have no tokens
constexpr size_t kPieceBytes = 400;     // of long lines
constexpr uint64_t kOverlapTokens = 40, kOverlapLines = 2;
constexpr size_t kContextBytes = 80, kContexts = 2;
constexpr uint64_t kSpecialTokens = 2;  // an embedder puts one before and one behind the text

std::string_view content(std::string_view text, const TextLine& line) {
  return text.substr(line.begin, line.end - line.begin);
}

std::string shortened(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  size_t end = std::min(line.size(), kContextBytes);
  while (end > 0 && end < line.size() && (line[end] & 0xc0) == 0x80) --end;
  line = line.substr(0, end);
  return std::string(line.substr(0, line.find_last_not_of(" \t{:") + 1));
}

class Splitter {
 public:
  Splitter(std::string_view text, Structure structure, const SplitLimits& limits)
      : text_(text), is_prose_(structure == Structure::markdown || structure == Structure::prose) {
    // Contexts take at most a quarter of a passage.
    budget_ = std::max<uint64_t>(limits.max_tokens, 32) - kSpecialTokens;
    context_budget_ = budget_ / 4;
    budget_ -= context_budget_;
    count_ = limits.count_tokens ? limits.count_tokens : estimated_tokens;
    size_t most = kPieceBytes;
    do {  // pieces of rare symbols have a token for each byte
      lines_ = text_lines(text, most);
      most /= 2;
    } while (count_tokens() > budget_ && most >= 8);
    rate_cuts(text, structure, lines_);
  }

  std::vector<Passage> passages() {
    std::vector<Passage> all;
    const std::vector<size_t> starts = best_cuts();
    for (size_t i = 0; i + 1 < starts.size(); ++i) add(starts[i], starts[i + 1], all);
    return all;
  }

 private:
  uint64_t count_tokens() {  // returns the most of any line
    tokens_.clear();
    uint64_t most = 0;
    for (const TextLine& line : lines_) {
      tokens_.push_back(line.is_blank ? 0 : count_(content(text_, line)));
      most = std::max(most, tokens_.back());
    }
    return most;
  }

  // The first line of each passage, and the end.
  std::vector<size_t> best_cuts() const {
    const size_t count = lines_.size();
    std::vector<double> price(count + 1, std::numeric_limits<double>::infinity());
    std::vector<size_t> from(count + 1, 0);
    price[0] = 0;
    for (size_t begin = 0; begin < count; ++begin) {
      uint64_t tokens = 0;
      double joined = 0;
      for (size_t end = begin; end < std::min(count, begin + kMaximumLines); ++end) {
        const auto cut = static_cast<size_t>(lines_[end].cut);
        if (end > begin) joined += kJoinPrice[cut];
        tokens += tokens_[end];
        if (tokens > budget_ && end > begin) break;
        const double missing = tokens >= kShortTokens ? 0
                                                      : 1 - static_cast<double>(tokens) /
                                                                static_cast<double>(kShortTokens);
        // Blank lines belong to what is before them.
        const double last = end + 1 == count ? 0
                            : lines_[end + 1].is_blank
                                ? 1e3
                                : kCutPrice[static_cast<size_t>(lines_[end + 1].cut)];
        const double sum = price[begin] + 1 + joined + kShortPrice * missing + last;
        if (sum < price[end + 1]) {
          price[end + 1] = sum;
          from[end + 1] = begin;
        }
      }
    }
    std::vector<size_t> starts = {count};
    while (starts.back() > 0) starts.push_back(from[starts.back()]);
    std::ranges::reverse(starts);
    return starts;
  }

  void add(size_t begin, size_t end, std::vector<Passage>& all) const {
    const size_t cut = begin;
    while (begin < end && lines_[begin].is_blank) ++begin;
    while (end > begin && lines_[end - 1].is_blank) --end;
    if (begin == end) return;
    if (begin > 0 && lines_[cut].cut == Cut::inside) {
      uint64_t tokens = 0, repeated = 0;
      for (size_t i = begin; i < end; ++i) tokens += tokens_[i];
      for (uint64_t i = 0; i < kOverlapLines && begin > 0; ++i) {
        const uint64_t more = tokens_[begin - 1];
        if (lines_[begin - 1].is_blank || repeated + more > kOverlapTokens ||
            tokens + repeated + more > budget_)
          break;
        repeated += more;
        --begin;
      }
    }
    Passage passage;
    passage.first_line = lines_[begin].number;
    passage.last_line = lines_[end - 1].number;
    passage.text = text_.substr(lines_[begin].begin, lines_[end - 1].end - lines_[begin].begin);
    passage.context = context_of(begin);
    all.push_back(std::move(passage));
  }

  // Code: the nearest lines above with less indentation. Markdown: the headings above.
  std::string context_of(size_t begin) const {
    std::vector<std::string> contexts;
    uint32_t below = is_prose_ ? (lines_[begin].heading != 0 ? lines_[begin].heading : UINT32_MAX)
                               : lines_[begin].indent;
    uint64_t tokens = 0;
    for (size_t i = begin; i-- > 0 && below > 0 && contexts.size() < kContexts;) {
      const TextLine& line = lines_[i];
      const uint32_t depth = is_prose_ ? line.heading : line.indent;
      if (line.is_blank || line.continues || depth >= below || (is_prose_ && depth == 0)) continue;
      below = depth;
      std::string text = shortened(content(text_, line));
      if (std::ranges::none_of(text, [](unsigned char c) { return c > 127 || std::isalnum(c); }))
        continue;
      const uint64_t more = count_(text);
      if (tokens + more > context_budget_) break;
      tokens += more;
      contexts.insert(contexts.begin(), std::move(text));
    }
    std::string joined;
    for (const std::string& each : contexts) joined += (joined.empty() ? "" : "\n") + each;
    return joined;
  }

  std::string_view text_;
  bool is_prose_;
  uint64_t budget_, context_budget_;
  std::function<uint64_t(std::string_view)> count_;
  std::vector<TextLine> lines_;
  std::vector<uint64_t> tokens_;  // of each line
};

}  // namespace

uint64_t estimated_tokens(std::string_view text) {
  uint64_t tokens = 0, letters = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      tokens += letters++ % 4 == 0 ? 1 : 0;
      continue;
    }
    letters = 0;
    tokens += byte > ' ' && (byte < 0x80 || byte >= 0xc0) ? 1 : 0;  // characters beyond ASCII
  }
  return tokens;
}

std::vector<Passage> split_text(std::string_view text, Structure structure,
                                const SplitLimits& limits) {
  return text.empty() ? std::vector<Passage>() : Splitter(text, structure, limits).passages();
}

}  // namespace prism::search
