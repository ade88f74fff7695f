// Checks which layer a tensor belongs to by its name.
#include "llm/gguf/layer_names.h"

#include <gtest/gtest.h>

namespace prism::llm {
namespace {

TEST(LayerNames, TensorsOfEncodersAndDecoders) {
  EXPECT_EQ(layer_of_tensor("blk.31.attn_q.weight"), 31);
  EXPECT_EQ(layer_of_tensor("enc.blk.3.attn_q.weight", 8), 3);
  EXPECT_EQ(layer_of_tensor("dec.blk.3.cross_attn_q.weight", 8), 11);
  EXPECT_EQ(layer_of_tensor("dec.blk.3.cross_attn_q.weight"), 3);
  for (const char* name : {"token_embd.weight", "enc.output_norm.weight", "dec.output_norm.weight",
                           "blk.x.weight", "blk.", "dec.", ""})
    EXPECT_EQ(layer_of_tensor(name, 8), -1) << name;
}

}  // namespace
}  // namespace prism::llm
