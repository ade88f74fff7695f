// Fuzzes a part of the catalogue of an index of files: it is refused with an error, or can be read.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "prism/error.h"
#include "search/files/catalogue_part.h"

using namespace prism;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto copy = std::make_shared<const std::vector<uint8_t>>(data, data + size);
  const std::shared_ptr<const std::byte> bytes(copy,
                                               reinterpret_cast<const std::byte*>(copy->data()));
  try {
    const search::CataloguePart part({bytes, size}, "fuzzed");
    for (uint32_t i = 0; i < part.files() && i < 64; ++i) part.file(i);
    for (uint32_t i = 0; i < part.passages() && i < 64; ++i) {
      const search::PassageRecord passage = part.passage(i);
      part.file(part.file_of(i));
      part.each_with_vector(passage.vector_id, [](uint32_t) {});
    }
    for (const char* word : {"some", "word", "zebra"})
      part.each_with_word(word, [&](uint32_t passage, uint32_t) { part.words_of(passage); });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptFile) std::abort();
  }
  return 0;
}
