// Implements Tokenizer: checks the tables, selects the encoder and handles special tokens.
#include "prism/llm/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "llm/tokenizer/pre_tokenizer.h"
#include "llm/tokenizer/special_tokens.h"
#include "llm/tokenizer/text_encoder.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

// Merging uses 32-bit positions, and a space takes three bytes.
constexpr size_t kMostBytes = size_t{1} << 29;

// The defaults of a tokenizer model, used if the file does not say.
struct KindDefaults {
  int32_t bos, eos, unknown, separator;
  bool add_bos, add_eos, add_separator, space_prefix;
};

KindDefaults defaults_of(const TokenizerTables& tables) {
  if (tables.model == "llama") return {1, 2, 0, -1, true, false, false, true};
  if (tables.model == "gpt2" || tables.model == "gemma4") {
    // Falcon's first files named neither; all other models name theirs.
    const bool falcon = tables.pre == "falcon";
    return {falcon ? 11 : -1, falcon ? 11 : -1, -1, -1, false, false, false, false};
  }
  if (tables.model == "bert") return {101, -1, 100, 102, true, false, true, false};
  if (tables.model == "t5") return {-1, 1, 2, -1, false, true, false, true};
  if (tables.model == "rwkv" || tables.model == "no_vocab")
    return {-1, -1, -1, -1, false, false, false, false};
  if (tables.model == "plamo2") return {1, 2, 0, -1, false, false, false, false};
  throw Error(
      ErrorCode::kNotSupported,
      fmt::format(
          "tokenizer: model \"{}\" is not supported; supported are llama, gpt2, gemma4, bert, t5, "
          "rwkv, plamo2, no_vocab",
          tables.model));
}

// The byte that a text like <0x0A> names; other texts are returned unchanged.
std::string byte_text(std::string_view text) {
  const auto digit = [&](size_t at) -> int {
    const char c = text[at];
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (text.size() != 6 || !text.starts_with("<0x") || digit(3) < 0 || digit(4) < 0)
    return std::string(text);
  return std::string(1, static_cast<char>(digit(3) * 16 + digit(4)));
}

Vocabulary make_vocabulary(TokenizerTables* tables) {
  const size_t count = tables->tokens.size();
  if (count == 0)
    throw Error(ErrorCode::kCorruptFile, "tokenizer: tokenizer.ggml.tokens is empty or absent");
  if (count > size_t{1} << 28) {
    throw Error(
        ErrorCode::kCorruptFile,
        fmt::format("tokenizer: tokenizer.ggml.tokens has {} entries, the limit is 2^28", count));
  }
  const auto check = [&](const char* name, size_t found) {
    if (found == 0 || found >= count) return;
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("tokenizer: {} has {} entries for {} tokens", name, found, count));
  };
  check("tokenizer.ggml.scores", tables->scores.size());
  check("tokenizer.ggml.token_type", tables->types.size());
  if (tables->model != "plamo2") {  // which refuses them
    for (float& score : tables->scores)
      if (std::isnan(score)) score = 0;
  }
  if (tables->types.empty()) tables->types.assign(count, TokenType::normal);
  tables->types.resize(count);
  return {TextTable(tables->tokens), tables->scores, tables->types, -1};
}

}  // namespace

int32_t Vocabulary::byte_token(unsigned char byte) const {
  const int32_t id = texts.find(fmt::format("<0x{:02X}>", byte));
  return id >= 0 ? id : texts.find(std::string_view(reinterpret_cast<const char*>(&byte), 1));
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    const size_t at = text.find(from);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += to;
    text.remove_prefix(at + from.size());
  }
}

struct Tokenizer::State {
  std::string model, pre;
  Vocabulary vocabulary;
  std::unique_ptr<TextEncoder> encoder;
  std::unique_ptr<SpecialTokens> special;
  int32_t bos, eos, eot, separator;
  bool add_bos, add_eos, add_separator, space_prefix, strip_after_special;
  std::vector<int32_t> ends;  // ascending
  std::vector<int32_t> suppressed;
  std::shared_ptr<const void> keep_alive;

  explicit State(TokenizerTables tables)
      : model(tables.model),
        pre(tables.pre),
        vocabulary(make_vocabulary(&tables)),
        strip_after_special(tables.strip_after_special),
        keep_alive(tables.keep_alive) {
    const KindDefaults defaults = defaults_of(tables);
    set_special_ids(tables, defaults);
    space_prefix = tables.add_space_prefix.value_or(defaults.space_prefix);
    add_bos = tables.add_bos.value_or(defaults.add_bos);
    add_eos = tables.add_eos.value_or(defaults.add_eos);
    add_separator = tables.add_separator.value_or(defaults.add_separator);
    if (model == "llama") encoder = make_spm_encoder(vocabulary, space_prefix);
    if (model == "gpt2" || model == "gemma4") {
      if (model == "gemma4") tables.pre = pre = "gemma4";
      encoder = make_bpe_encoder(vocabulary, tables);
      if (!tables.add_bos) add_bos = pre_tokenizer_traits(pre).add_bos;
      if (!tables.add_separator) add_separator = pre_tokenizer_traits(pre).add_separator;
    }
    if (model == "bert") encoder = make_wordpiece_encoder(vocabulary, tables);
    if (model == "t5") {
      encoder = make_unigram_encoder(vocabulary, tables, space_prefix);
      // XLM-RoBERTa, whose older files do not say it: <s> a </s></s> b </s>.
      if (!tables.add_separator) add_separator = add_bos && add_eos && bos >= 0;
    }
    if (model == "rwkv") encoder = make_rwkv_encoder(vocabulary);
    if (model == "plamo2") encoder = make_plamo_encoder(vocabulary, tables);
    if (model == "no_vocab") encoder = make_no_encoder();
    special = std::make_unique<SpecialTokens>(vocabulary);
  }

  void set_special_ids(const TokenizerTables& tables, const KindDefaults& defaults) {
    const auto count = static_cast<int64_t>(vocabulary.texts.size());
    const auto id_of = [&](const std::optional<int64_t>& given, int32_t otherwise) {
      const int64_t id = given.value_or(otherwise);
      return id >= 0 && id < count ? static_cast<int32_t>(id) : -1;
    };
    bos = id_of(tables.bos, defaults.bos);
    eos = id_of(tables.eos, defaults.eos);
    separator = id_of(tables.separator, defaults.separator);
    vocabulary.unknown = id_of(tables.unknown, defaults.unknown);
    for (const int64_t each : tables.suppressed)
      if (const int32_t id = id_of(each, -1); id >= 0) suppressed.push_back(id);
    eot = id_of(tables.eot, -1);
    const std::vector<int32_t> turn_ends = find_turn_ends(vocabulary);
    if (eot < 0 && !turn_ends.empty()) eot = turn_ends[0];
    ends = find_generation_ends(vocabulary);
    // Some files mark tokens that end a turn as ordinary text.
    for (const int32_t id : ends) {
      TokenType& type = vocabulary.types[static_cast<size_t>(id)];
      if (type == TokenType::normal) type = TokenType::control;
    }
    // Harmony's <|end|> ends a turn by name but not the text.
    if (!tables.eot && std::ranges::find(ends, eot) == ends.end()) eot = -1;
    for (const int32_t id : {eos, eot, id_of(tables.eom, -1)})
      if (id >= 0) ends.push_back(id);
    std::ranges::sort(ends);
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  }

  size_t check(int32_t id) const {
    if (id >= 0 && static_cast<size_t>(id) < vocabulary.texts.size())
      return static_cast<size_t>(id);
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("tokenizer: token {} is out of range, the vocabulary has {}", id,
                            vocabulary.texts.size()));
  }
};

Tokenizer::Tokenizer(TokenizerTables tables)
    : state_(std::make_shared<const State>(std::move(tables))) {}

Tokenizer Tokenizer::from(const GgufFile& file) { return Tokenizer(TokenizerTables::from(file)); }

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > kMostBytes) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("tokenizer: the text has {} bytes, at most {} can be encoded at once",
                            text.size(), kMostBytes));
  }
  const State& state = *state_;
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 4);
  const bool bos_first = options.add_special && state.add_bos && state.bos >= 0;
  if (bos_first) ids.push_back(state.bos);
  bool after_special = true;
  for (size_t at = 0; at < text.size();) {
    const auto found = state.special->find(text, at, options.parse_special);
    const size_t end = found ? found->start : text.size();
    if (end > at) state.encoder->encode(text.substr(at, end - at), after_special, &ids);
    if (!found) break;
    const bool second_bos = bos_first && found->id == state.bos && ids.size() == 1 && end == 0;
    if (!second_bos) ids.push_back(found->id);
    after_special = true;
    at = end + found->bytes;
    if (state.strip_after_special &&
        state.vocabulary.types[static_cast<size_t>(found->id)] != TokenType::unknown &&
        found->id != state.bos)
      at = std::min(text.find_first_not_of(" \t\r\n\v\f", at), text.size());
  }
  if (options.add_special && state.add_eos && state.eos >= 0) ids.push_back(state.eos);
  // Elsewhere it only separates the texts of a pair.
  if (options.add_special && state.add_separator && state.separator >= 0 && state.model == "bert")
    ids.push_back(state.separator);
  return ids;
}

std::string Tokenizer::piece(int32_t id, bool special) const {
  const size_t at = state_->check(id);
  const std::string_view text = state_->vocabulary.texts[at];
  switch (state_->vocabulary.types[at]) {
    case TokenType::unknown:
    case TokenType::control:
      return special ? std::string(text) : "";
    case TokenType::user_defined:
      return std::string(text);
    case TokenType::byte:
      return byte_text(text);
    default:
      return state_->encoder->bytes_of(text);
  }
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool special) const {
  std::string out;
  bool drop_space = state_->space_prefix || state_->model == "bert";
  for (const int32_t id : ids) {
    const std::string text = piece(id, special);
    if (text.empty()) continue;
    const bool drop = drop_space && text[0] == ' ' &&
                      state_->vocabulary.types[static_cast<size_t>(id)] == TokenType::normal;
    out.append(text, drop ? 1 : 0);
    drop_space = false;
  }
  return out;
}

size_t Tokenizer::size() const { return state_->vocabulary.texts.size(); }
std::string_view Tokenizer::text(int32_t id) const {
  return state_->vocabulary.texts[state_->check(id)];
}
TokenType Tokenizer::type(int32_t id) const { return state_->vocabulary.types[state_->check(id)]; }
int32_t Tokenizer::find(std::string_view text) const { return state_->vocabulary.texts.find(text); }
const std::string& Tokenizer::model() const { return state_->model; }
const std::string& Tokenizer::pre() const { return state_->pre; }
int32_t Tokenizer::bos() const { return state_->bos; }
int32_t Tokenizer::eos() const { return state_->eos; }
int32_t Tokenizer::eot() const { return state_->eot; }
int32_t Tokenizer::unknown() const { return state_->vocabulary.unknown; }
int32_t Tokenizer::separator() const { return state_->separator; }
bool Tokenizer::adds_bos() const { return state_->add_bos && state_->bos >= 0; }
bool Tokenizer::adds_eos() const { return state_->add_eos && state_->eos >= 0; }
bool Tokenizer::adds_separator() const { return state_->add_separator && state_->separator >= 0; }
bool Tokenizer::adds_space_prefix() const { return state_->space_prefix; }
bool Tokenizer::ends_text(int32_t id) const { return std::ranges::binary_search(state_->ends, id); }
const std::vector<int32_t>& Tokenizer::end_tokens() const { return state_->ends; }
const std::vector<int32_t>& Tokenizer::suppressed() const { return state_->suppressed; }

}  // namespace prism::llm
