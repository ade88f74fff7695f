// The tokenizer of a Hugging Face folder: from tokenizer.json, tokenizer_config.json, vocab.txt and
// SentencePiece's tokenizer.model to the keys of a GGUF file.
#pragma once

#include <cstdint>

#include "llm/convert/hf_folder.h"
#include "llm/gguf/gguf_writer.h"

namespace prism::llm {

// vocabulary: the rows of the token embedding, which the file gets as many tokens as. Knows
// WordPiece, byte-level BPE (the pre-tokenizer is recognised by its expressions), BPE with byte
// fallback and Unigram, as SentencePiece has them. Throws kNotSupported naming the part that GGUF
// or Prism cannot express, kCorruptFile for tables that contradict each other, kNotFound without a
// tokenizer.
void write_tokenizer(const HfFolder& folder, int64_t vocabulary, GgufWriter& to);

}  // namespace prism::llm
