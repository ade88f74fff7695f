// Converts text to tokens and back, using the tables of a model file.
//
//   const Tokenizer tokenizer = Tokenizer::from(GgufFile::open("model.gguf"));
//   const std::vector<int32_t> ids = tokenizer.encode("Once upon a time");
//   const std::string text = tokenizer.decode(ids);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)

namespace prism::llm {

class GgufFile;

// Values as in model files.
enum class TokenType : uint8_t {
  undefined,
  normal,
  unknown,       // stands for text outside the vocabulary
  control,       // not text, but a signal to the model: <s>, <|im_end|>
  user_defined,  // text that is always one token
  unused,
  byte,  // one byte of a character without a token: <0x0A>
};

// The tables of a tokenizer, named as in `tokenizer.ggml.*`. The views must outlive the tokenizer
// or be owned by keep_alive.
struct TokenizerTables {
  std::string model;  // llama, gpt2, gemma4, bert, t5, rwkv, plamo2
  std::string pre;    // gpt2: the pre-tokenizer; see pre_tokenizer.h
  std::vector<std::string_view> tokens;
  std::vector<float> scores;             // llama, t5, plamo2
  std::vector<TokenType> types;          // empty: all normal
  std::vector<std::string_view> merges;  // gpt2: "left right", in order of merge rank
  // Ids outside the vocabulary count as absent; some files write 2^32 - 1 for none.
  std::optional<int64_t> bos, eos, eot, eom, unknown, separator;
  std::vector<int64_t> suppressed;  // ids that generated texts never have
  std::optional<bool> add_bos, add_eos, add_separator, add_space_prefix, remove_extra_spaces;
  std::optional<bool> lowercase, strip_accents;  // bert
  // plamo2 with PLaMo 3's rules: no token spans the border of a run of this many equal characters,
  // or of this many spaces.
  std::optional<int64_t> break_repeated, break_spaces;
  std::vector<uint8_t> character_map;  // t5: precompiled_charsmap
  bool strip_after_special = false;    // drop spaces after a special token (phi-3)
  std::shared_ptr<const void> keep_alive;

  static TokenizerTables from(const GgufFile& file);
};

struct EncodeOptions {
  bool add_special = true;  // add the BOS, EOS or separator the model was trained with
  // Parse the text of control tokens as those tokens. User-defined tokens are always parsed.
  bool parse_special = true;
};

// Copies share the tables. Thread-safe.
class Tokenizer {
 public:
  // Throws kNotSupported for an unknown tokenizer model or pre-tokenizer, listing the known ones,
  // and kCorruptFile for inconsistent tables.
  static Tokenizer from(const GgufFile& file);
  explicit Tokenizer(TokenizerTables tables);

  // Does not add a second BOS if the text starts with one. Invalid UTF-8 is encoded as byte tokens
  // if the vocabulary has them, otherwise, and by plamo2, as U+FFFD.
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  // The bytes of a token, possibly a partial character (see TextStream); empty for control and
  // unknown tokens unless `special`. Throws kInvalidArgument for an id out of range.
  std::string piece(int32_t id, bool special = false) const;
  // The text of tokens from the start of a text: drops the space that encode() puts first.
  std::string decode(std::span<const int32_t> ids, bool special = false) const;

  size_t size() const;
  std::string_view text(int32_t id) const;  // as stored in the vocabulary
  TokenType type(int32_t id) const;
  int32_t find(std::string_view text) const;  // -1: no such token
  const std::string& model() const;           // llama, gpt2, ...
  const std::string& pre() const;

  // -1: none.
  int32_t bos() const;
  int32_t eos() const;
  int32_t eot() const;  // end of turn
  int32_t unknown() const;
  int32_t separator() const;
  bool adds_bos() const;
  bool adds_eos() const;
  bool adds_separator() const;
  bool adds_space_prefix() const;
  // Whether this token ends generation: eos, eot, eom and others recognised by their text.
  bool ends_text(int32_t id) const;
  const std::vector<int32_t>& end_tokens() const;  // all such tokens, ascending
  const std::vector<int32_t>& suppressed() const;  // that generated texts never have

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

// Converts tokens to text while they are generated, in whole characters.
class TextStream {
 public:
  struct Options {
    bool special = false;   // show control tokens
    bool at_start = false;  // at the start of a text: drop the space that encode() puts first
  };
  explicit TextStream(const Tokenizer& tokenizer) : TextStream(tokenizer, Options{}) {}
  TextStream(const Tokenizer& tokenizer, Options options);

  // Returns the text completed by this token: valid UTF-8, possibly empty. Invalid bytes become
  // U+FFFD.
  std::string put(int32_t id);
  // Returns the rest, with U+FFFD for an incomplete character, and resets the stream.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  Options options_;
  bool drop_space_;
  std::string open_;  // bytes of an incomplete character
};

}  // namespace prism::llm

#pragma GCC visibility pop
