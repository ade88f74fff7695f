// Unigram tokenizers of Hugging Face folders, from tokenizer.json or a file of SentencePiece.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "llm/convert/hf_vocabulary.h"
#include "llm/convert/sentence_piece_model.h"
#include "llm/gguf/gguf_writer.h"

namespace prism::llm {

// Adds the pieces of tokenizer.json's model.vocab, [["the", -3.5], ...], and writes their scores
// and how texts are normalised. Throws kNotSupported for normalizers and pre_tokenizers that are
// none of SentencePiece's, kCorruptFile for a vocabulary of another form.
void write_unigram(const JsonView& tokenizer, HfVocabulary& vocabulary, GgufWriter& to);
// The same from a file of SentencePiece, unigram or BPE.
void write_sentence_piece_model(const SentencePieceModel& model, HfVocabulary& vocabulary,
                                GgufWriter& to);

}  // namespace prism::llm
