// Parses the few fields of SentencePiece's ModelProto that a tokenizer needs.
#include "llm/convert/sentence_piece_model.h"

#include <bit>
#include <cstring>
#include <functional>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::llm {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::kCorruptFile,
              fmt::format("tokenizer.model: {}; is it a file of SentencePiece?", what));
}

// A field of a message: a number, or the bytes of a text or message.
struct Field {
  uint64_t number = 0;
  uint64_t value = 0;      // of integers and floats
  std::string_view bytes;  // of texts and messages
};

uint64_t take_varint(std::string_view& from) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (from.empty()) fail("a number ends early");
    const auto byte = static_cast<unsigned char>(from[0]);
    from.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail("a number has more than 10 bytes");
}

std::string_view take_bytes(std::string_view& from, uint64_t count) {
  if (count > from.size()) fail(fmt::format("a field of {} bytes ends early", count));
  const std::string_view result = from.substr(0, count);
  from.remove_prefix(count);
  return result;
}

void for_each_field(std::string_view message, const std::function<void(const Field&)>& use) {
  while (!message.empty()) {
    const uint64_t tag = take_varint(message);
    Field field{.number = tag >> 3, .value = 0, .bytes = {}};
    const auto fixed = [&](uint64_t bytes) {
      const std::string_view from = take_bytes(message, bytes);
      for (size_t i = 0; i < from.size(); ++i)
        field.value |= static_cast<uint64_t>(static_cast<unsigned char>(from[i])) << (8 * i);
    };
    switch (tag & 7) {
      case 0:
        field.value = take_varint(message);
        break;
      case 1:
        fixed(8);
        break;
      case 2:
        field.bytes = take_bytes(message, take_varint(message));
        break;
      case 5:
        fixed(4);
        break;
      default:
        fail(fmt::format("a field has the unknown kind {}", tag & 7));
    }
    use(field);
  }
}

SentencePieceModel::Piece read_piece(std::string_view message) {
  SentencePieceModel::Piece piece;
  for_each_field(message, [&](const Field& field) {
    if (field.number == 1) piece.text = field.bytes;
    if (field.number == 2) piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
    if (field.number == 3) {
      if (field.value < 1 || field.value > 6) fail(fmt::format("a piece has type {}", field.value));
      piece.type = static_cast<TokenType>(field.value);  // the numbers are the same
    }
  });
  return piece;
}

}  // namespace

SentencePieceModel read_sentence_piece_model(std::string_view bytes) {
  SentencePieceModel model;
  uint64_t kind = 1;
  for_each_field(bytes, [&](const Field& part) {
    if (part.number == 1) model.pieces.push_back(read_piece(part.bytes));
    if (part.number == 2)  // how it was trained
      for_each_field(part.bytes, [&](const Field& field) {
        const auto id = static_cast<int64_t>(static_cast<int32_t>(field.value));
        if (field.number == 3) kind = field.value;
        if (field.number == 40) model.unknown = id;
        if (field.number == 41) model.bos = id;
        if (field.number == 42) model.eos = id;
        if (field.number == 43) model.padding = id;
      });
    if (part.number == 3)  // how texts are normalised
      for_each_field(part.bytes, [&](const Field& field) {
        if (field.number == 2) model.character_map = field.bytes;
        if (field.number == 3) model.add_space_prefix = field.value != 0;
        if (field.number == 4) model.remove_extra_spaces = field.value != 0;
      });
  });
  if (model.pieces.empty()) fail("there are no pieces");
  if (kind != 1 && kind != 2)
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format("tokenizer.model: its model type is {}; supported are 1 (unigram) and 2 "
                    "(BPE)",
                    kind));
  model.is_unigram = kind == 1;
  return model;
}

}  // namespace prism::llm
