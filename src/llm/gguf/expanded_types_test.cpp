#include "llm/gguf/expanded_types.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "llm/gguf/gguf_types.h"
#include "llm/gguf/gguf_writer.h"
#include "llm/gguf/tensor_floats.h"
#include "prism/ops/quantise.h"
#include "prism/tensor.h"
#include "support/run_program.h"
#include "tensor/cpu_pool.h"

namespace prism::llm {
namespace {

// Element e of blocks of a type, by the published layout.
double element(uint32_t type, const std::vector<uint8_t>& bytes, size_t e) {
  const size_t each = type == 41 ? 128 : 64, in_block = e % each;
  const uint8_t* const block = &bytes[e / each * 18];
  EXPECT_EQ(block[1] & 0x7c, 0x38);  // the scales here are those of the exponent -1
  const double size = (1 + (block[0] + 256 * (block[1] & 3)) / 1024.0) / 2;
  const double scale = (block[1] & 0x80) != 0 ? -size : size;
  if (type == 41) return (block[2 + in_block / 8] >> in_block % 8 & 1) != 0 ? scale : -scale;
  return scale * ((block[2 + in_block / 4] >> in_block % 4 * 2 & 3) - 1);
}

TEST(ExpandedTypes, KeepTheirValues) {
  std::mt19937 random(7);
  const test::TemporaryFolder folder;
  for (const uint32_t type : {41u, 42u}) {
    const int64_t rows = 5, columns = 384;
    const size_t elements = 5 * 384;
    std::vector<uint8_t> bytes(elements / gguf_tensor_type(type)->elements * 18);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    for (size_t at = 1; at < bytes.size(); at += 18) bytes[at] = (bytes[at] & 0x83) | 0x38;
    GgufWriter writer;
    writer.set("general.architecture", "llama");
    GgufTensor like;
    like.name = "t", like.shape = {rows, columns}, like.gguf_type = type;
    writer.add_tensor(like, std::as_bytes(std::span(bytes)));
    const std::string path = (folder.path() / "file.gguf").string();
    writer.write(path);
    const GgufFile file = GgufFile::open(path);
    const GgufTensor& tensor = file.tensors().front();
    EXPECT_EQ(tensor.bytes, bytes.size());
    EXPECT_EQ(loaded_type(tensor), ElementType(BlockType::q4_0));

    const std::vector<float> found = dequantise(file.tensor(tensor)).to_vector<float>();
    ASSERT_EQ(found.size(), elements);
    for (size_t i = 0; i < elements; ++i) ASSERT_EQ(found[i], element(type, bytes, i)) << i;
    std::vector<float> pieces;
    for_each_piece(file, tensor, cpu_pool(),
                   [&](uint64_t, uint64_t, std::span<const float> values) {
                     pieces.insert(pieces.end(), values.begin(), values.end());
                   });
    EXPECT_EQ(pieces, found);
  }
}

}  // namespace
}  // namespace prism::llm
