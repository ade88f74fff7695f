// Tests the requests for texts and contexts that no placement can serve.
#include "llm/model/placed_model.h"

#include <gtest/gtest.h>

#include "prism/error.h"
#include "support/models/tiny_models.h"

namespace prism::llm {
namespace {

TEST(PlacedModel, AbsurdContextsAndTextsAreErrors) {
  const auto tiny = test::tiny_model("llama");
  const GgufFile file = tiny->open();
  const auto place = [&](int64_t context, int64_t slots) {
    LoadOptions options;
    options.fit.device = "cpu";
    options.fit.context = context;
    options.slots = slots;
    return PlacedModel(file, options, std::nullopt).model().context();
  };
  EXPECT_EQ(place(16, 2), 16);
  EXPECT_EQ(place(16, 0), 16);  // as many texts as have room
  for (const int64_t slots : {int64_t{0}, int64_t{-1}, int64_t{3}, INT64_MAX}) {
    SCOPED_TRACE(slots);
    EXPECT_THROW(place(INT64_MAX, slots), Error);
    if (slots < 0 || slots == INT64_MAX) {
      EXPECT_THROW(place(16, slots), Error);
    }
  }
}

}  // namespace
}  // namespace prism::llm
