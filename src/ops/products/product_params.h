// The params shared by tiled matrix products, in the order of the launches of ops::ProductShape.
#pragma once

#include "prism/kernel.h"

namespace prism::ops {

struct ProductParams {
  dsl::Value m = word("m"), n = word("n"), k = word("k");
  dsl::Value a_stride = word("a_stride"), b_stride = word("b_stride"), c_stride = word("c_stride");
  dsl::Value a_batch = word("a_batch"), b_batch = word("b_batch"), c_batch = word("c_batch");
  dsl::Value a_share = word("a_share"), b_share = word("b_share");

 private:
  static dsl::Value word(const char* name) { return dsl::param(name, DType::u32); }
};

}  // namespace prism::ops
