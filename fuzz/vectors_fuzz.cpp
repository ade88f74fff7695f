// Fuzzes the files of plain vectors and the descriptions of their rows: the first byte chooses the
// format. What is read has the size that it claims.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "prism/error.h"
#include "search/vector_file.h"

using namespace prism;
using namespace prism::search;

namespace {

VectorTable read(unsigned format, std::string_view text) {
  switch (format) {
    case 0:
      return parse_vecs("file", text, ".fvecs");
    case 1:
      return parse_vecs("file", text, ".bvecs");
    case 2:
      return parse_vecs("file", text, ".ivecs");
    case 3:
      return parse_fbin("file", text);
    default: {
      VectorTable table{2, 1, {1, 2}, {}, {}};
      parse_meta("file", text, table);
      if (table.ids.size() != 2 || (!table.fields.empty() && table.fields.size() != 2))
        __builtin_trap();
      return table;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    const VectorTable table =
        read(data[0] % 5, {reinterpret_cast<const char*>(data) + 1, size - 1});
    if (table.values.size() != table.rows * table.width) __builtin_trap();
  } catch (const Error&) {
  }
  return 0;
}
