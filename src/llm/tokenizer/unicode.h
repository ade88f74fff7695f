// What tokenizers need to know of characters: kind, lower case, and the letter without its accents.
#pragma once

#include <cstdint>
#include <vector>

namespace prism::llm {

bool is_punctuation(uint32_t code);       // categories P*
bool is_non_spacing_mark(uint32_t code);  // category Mn: accents
bool is_control(uint32_t code);           // controls, formats, private use
bool is_white_space(uint32_t code);       // the property White_Space
bool is_chinese(uint32_t code);           // blocks of CJK ideographs

uint32_t lower_case(uint32_t code);  // one character for one
uint32_t upper_case(uint32_t code);

// Appends what canonical decomposition makes of a character, less the non-spacing marks.
void append_without_accents(uint32_t code, std::vector<uint32_t>* to);

}  // namespace prism::llm
