// Text to tokens and back, by the tables a model file carries.
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

// With the numbers that files give them.
enum class TokenType : uint8_t {
  undefined,
  normal,
  unknown,       // stands for what the vocabulary cannot say
  control,       // steers the model and is no text: <s>, <|im_end|>
  user_defined,  // text that is always one token
  unused,
  byte,  // one byte of a character that has no token: <0x0A>
};

// What a tokenizer is made of, under the names of `tokenizer.ggml.*`. The views must live as long
// as the tokenizer, or be held by keep_alive.
struct TokenizerTables {
  std::string model;  // llama, gpt2, gemma4, bert, t5
  std::string pre;    // gpt2: how text is split before merging; see pre_tokenizer.h
  std::vector<std::string_view> tokens;
  std::vector<float> scores;             // llama, t5
  std::vector<TokenType> types;          // empty: all normal
  std::vector<std::string_view> merges;  // gpt2: "left right", the first merge first
  // Ids beyond the vocabulary count as absent; some files write 2^32 - 1 for none.
  std::optional<int64_t> bos, eos, eot, eom, unknown, separator;
  std::optional<bool> add_bos, add_eos, add_separator, add_space_prefix, remove_extra_spaces;
  std::optional<bool> lowercase, strip_accents;  // bert
  std::vector<uint8_t> character_map;            // t5: precompiled_charsmap
  bool strip_after_special = false;              // spaces after a special token are no text (phi-3)
  std::shared_ptr<const void> keep_alive;

  static TokenizerTables from(const GgufFile& file);
};

struct EncodeOptions {
  bool add_special = true;  // the BOS, EOS or separator that the model was trained with
  // Texts of control tokens become those tokens. User-defined ones always do.
  bool parse_special = true;
};

// Copies share the tables; every member may be called from several threads at once.
class Tokenizer {
 public:
  // Throws kNotSupported for a kind or pre-type that is unknown, listing the known ones, and
  // kCorruptFile for tables that contradict each other.
  static Tokenizer from(const GgufFile& file);
  explicit Tokenizer(TokenizerTables tables);

  // Where a text starts with the BOS token already, no second one is added. Bytes that are no UTF-8
  // are encoded as bytes where the vocabulary can, and as U+FFFD where it cannot.
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  // The bytes a token stands for, which need not be whole characters (see TextStream); empty for
  // control and unknown tokens unless `special`. Throws kInvalidArgument for an id out of range.
  std::string piece(int32_t id, bool special = false) const;
  // The text of tokens that open a text: a space that encode() has put before it is taken away.
  std::string decode(std::span<const int32_t> ids, bool special = false) const;

  size_t size() const;
  std::string_view text(int32_t id) const;  // as it stands in the vocabulary
  TokenType type(int32_t id) const;
  int32_t find(std::string_view text) const;  // -1: no such token
  const std::string& model() const;           // llama, gpt2, ...
  const std::string& pre() const;

  // -1: none.
  int32_t bos() const;
  int32_t eos() const;
  int32_t eot() const;  // end of a turn
  int32_t unknown() const;
  int32_t separator() const;
  bool adds_bos() const;
  bool adds_eos() const;
  bool adds_space_prefix() const;
  // Whether generation ends with this token: eos, eot, eom and others known by their text.
  bool ends_text(int32_t id) const;
  const std::vector<int32_t>& end_tokens() const;  // all of those, ascending

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

// Tokens to text while they are generated: never half a character.
class TextStream {
 public:
  struct Options {
    bool special = false;   // show control tokens
    bool at_start = false;  // the tokens open a text: drop the space that encode() puts before it
  };
  explicit TextStream(const Tokenizer& tokenizer) : TextStream(tokenizer, Options{}) {}
  TextStream(const Tokenizer& tokenizer, Options options);

  // What has become whole with this token: valid UTF-8, maybe empty. Bytes that can no longer
  // become a character are U+FFFD.
  std::string put(int32_t id);
  // The rest, with U+FFFD for a character that was never completed; the stream starts anew.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  Options options_;
  bool drop_space_;
  std::string open_;  // bytes of a character not yet whole
};

}  // namespace prism::llm

#pragma GCC visibility pop
