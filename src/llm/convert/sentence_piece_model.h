// Reads the files of SentencePiece, tokenizer.model and spiece.model: protocol buffers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prism/llm/tokenizer.h"

namespace prism::llm {

struct SentencePieceModel {
  struct Piece {
    std::string text;
    float score = 0;
    TokenType type = TokenType::normal;
  };
  std::vector<Piece> pieces;
  bool is_unigram = true;  // else BPE
  std::string character_map;
  bool add_space_prefix = true, remove_extra_spaces = true;
  int64_t unknown = 0, bos = 1, eos = 2, padding = -1;
};

// Throws kCorruptFile for bytes that are no such file, kNotSupported for models of words or
// characters.
SentencePieceModel read_sentence_piece_model(std::string_view bytes);

}  // namespace prism::llm
