// Names and sizes of tensor element types.
#include "prism/element_type.h"

#include <array>

namespace prism {

namespace {

constexpr std::array<BlockInfo, kBlockTypeCount> kBlocks = {{
    {"q4_0", 32, 18, 2},      {"q4_1", 32, 20, 3},     {"q5_0", 32, 22, 6},
    {"q5_1", 32, 24, 7},      {"q8_0", 32, 34, 8},     {"q2_k", 256, 84, 10},
    {"q3_k", 256, 110, 11},   {"q4_k", 256, 144, 12},  {"q5_k", 256, 176, 13},
    {"q6_k", 256, 210, 14},   {"iq4_nl", 32, 18, 20},  {"iq4_xs", 256, 136, 23},
    {"mxfp4", 32, 17, 39},    {"iq1_s", 256, 50, 19},  {"iq1_m", 256, 56, 29},
    {"iq2_xxs", 256, 66, 16}, {"iq2_xs", 256, 74, 17}, {"iq2_s", 256, 82, 22},
    {"iq3_xxs", 256, 98, 18}, {"iq3_s", 256, 110, 21}, {"tq1_0", 256, 54, 34},
    {"tq2_0", 256, 66, 35},   {"nvfp4", 64, 36, 40},
}};

}  // namespace

const BlockInfo& block_info(BlockType type) { return kBlocks[static_cast<size_t>(type)]; }

const char* ElementType::name() const {
  if (is_block()) return block_info(block()).name;
  return plain() == DType::b1 ? "bool" : dtype_name(plain());
}

std::optional<ElementType> ElementType::from_name(std::string_view name) {
  if (name == "bool") return ElementType(DType::b1);
  for (int i = 0; i < kBlockTypeCount; ++i)
    if (kBlocks[static_cast<size_t>(i)].name == name) return static_cast<BlockType>(i);
  if (const auto plain = dtype_from_name(name)) return ElementType(*plain);
  return std::nullopt;
}

uint32_t ElementType::block_bytes() const {
  if (is_block()) return block_info(block()).bytes;
  return plain() == DType::b1 ? 1 : static_cast<uint32_t>(dtype_bytes(plain()));
}

}  // namespace prism
