// The character properties that tokenizers need: category, lower case and accent removal.
#pragma once

#include <cstdint>
#include <vector>

namespace prism::llm {

bool is_punctuation(uint32_t code);       // categories P*
bool is_non_spacing_mark(uint32_t code);  // category Mn: accents
bool is_control(uint32_t code);           // control, format and private-use characters
bool is_white_space(uint32_t code);       // the property White_Space
bool is_chinese(uint32_t code);           // blocks of CJK ideographs

uint32_t lower_case(uint32_t code);  // simple mapping: one character to one
uint32_t upper_case(uint32_t code);

// Appends the canonical decomposition of a character without non-spacing marks.
void append_without_accents(uint32_t code, std::vector<uint32_t>* to);

}  // namespace prism::llm
