// The table of GGUF tensor types.
#include "llm/gguf/gguf_types.h"

#include <array>

#include "llm/gguf/expanded_types.h"

namespace prism::llm {

namespace {

using B = BlockType;

constexpr std::array kTypes = {
    GgufTensorType{0, "f32", 1, 4, DType::f32},
    GgufTensorType{1, "f16", 1, 2, DType::f16},
    GgufTensorType{2, "q4_0", 32, 18, B::q4_0},
    GgufTensorType{3, "q4_1", 32, 20, B::q4_1},
    GgufTensorType{6, "q5_0", 32, 22, B::q5_0},
    GgufTensorType{7, "q5_1", 32, 24, B::q5_1},
    GgufTensorType{8, "q8_0", 32, 34, B::q8_0},
    GgufTensorType{9, "q8_1", 32, 36, std::nullopt},
    GgufTensorType{10, "q2_k", 256, 84, B::q2_k},
    GgufTensorType{11, "q3_k", 256, 110, B::q3_k},
    GgufTensorType{12, "q4_k", 256, 144, B::q4_k},
    GgufTensorType{13, "q5_k", 256, 176, B::q5_k},
    GgufTensorType{14, "q6_k", 256, 210, B::q6_k},
    GgufTensorType{15, "q8_k", 256, 292, std::nullopt},
    GgufTensorType{16, "iq2_xxs", 256, 66, B::iq2_xxs},
    GgufTensorType{17, "iq2_xs", 256, 74, B::iq2_xs},
    GgufTensorType{18, "iq3_xxs", 256, 98, B::iq3_xxs},
    GgufTensorType{19, "iq1_s", 256, 50, B::iq1_s},
    GgufTensorType{20, "iq4_nl", 32, 18, B::iq4_nl},
    GgufTensorType{21, "iq3_s", 256, 110, B::iq3_s},
    GgufTensorType{22, "iq2_s", 256, 82, B::iq2_s},
    GgufTensorType{23, "iq4_xs", 256, 136, B::iq4_xs},
    GgufTensorType{24, "i8", 1, 1, DType::i8},
    GgufTensorType{25, "i16", 1, 2, DType::i16},
    GgufTensorType{26, "i32", 1, 4, DType::i32},
    GgufTensorType{27, "i64", 1, 8, DType::i64},
    GgufTensorType{28, "f64", 1, 8, DType::f64},
    GgufTensorType{29, "iq1_m", 256, 56, B::iq1_m},
    GgufTensorType{30, "bf16", 1, 2, DType::bf16},
    GgufTensorType{34, "tq1_0", 256, 54, B::tq1_0},
    GgufTensorType{35, "tq2_0", 256, 66, B::tq2_0},
    GgufTensorType{39, "mxfp4", 32, 17, B::mxfp4},
    GgufTensorType{40, "nvfp4", 64, 36, B::nvfp4},
    GgufTensorType{41, "q1_0", 128, 18, std::nullopt},
    GgufTensorType{42, "q2_0", 64, 18, std::nullopt},
};

}  // namespace

const GgufTensorType* gguf_tensor_type(uint32_t number) {
  for (const GgufTensorType& type : kTypes)
    if (type.number == number) return &type;
  return nullptr;
}

std::optional<uint32_t> gguf_number(ElementType type) {
  for (const GgufTensorType& known : kTypes)
    if (known.element_type == type) return known.number;
  return std::nullopt;
}

ElementType loaded_type(ElementType type) {
  if (type.is_block() || type == DType::f16 || type == DType::bf16) return type;
  return DType::f32;
}

std::optional<ElementType> loaded_type(const GgufTensor& tensor) {
  if (const auto type = expanded_type(tensor.gguf_type)) return type;
  if (!tensor.is_supported()) return std::nullopt;
  return loaded_type(tensor.type);
}

}  // namespace prism::llm
