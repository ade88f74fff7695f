// The tokenizer of a Hugging Face folder: from tokenizer.json, tokenizer_config.json and vocab.txt
// to the keys of a GGUF file.
#pragma once

#include <cstdint>

#include "llm/convert/hf_folder.h"
#include "llm/gguf/gguf_writer.h"

namespace prism::llm {

// vocabulary: the rows of the token embedding, which the file gets as many tokens as. Knows
// WordPiece, byte-level BPE (the pre-tokenizer is recognised by its expressions) and BPE with byte
// fallback, as SentencePiece has it. Throws kNotSupported naming the part that GGUF or Prism cannot
// express, kCorruptFile for tables that contradict each other, kNotFound without a tokenizer.
void write_tokenizer(const HfFolder& folder, int64_t vocabulary, GgufWriter& to);

}  // namespace prism::llm
