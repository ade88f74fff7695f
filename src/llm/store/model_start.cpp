// Parses the header of a model that is not complete yet.
#include "llm/store/model_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "prism/error.h"
#include "prism/llm/gguf.h"

namespace prism::llm {

std::optional<uint64_t> model_bytes_by_start(const std::string& name,
                                             std::span<const std::byte> start,
                                             std::optional<uint64_t> file_bytes) {
  constexpr uint64_t kAnySize = uint64_t{1} << 50;
  const std::string_view magic = kModelMagic;
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (text.substr(0, magic.size()) != magic.substr(0, text.size()))
    throw Error(ErrorCode::kCorruptFile,
                fmt::format("{}: the content does not begin with \"{}\", so it is not a model "
                            "file{}; is this the address of the file itself?",
                            name, magic, text.starts_with('<') ? " but a web page" : ""));
  try {
    const GgufFile file = GgufFile::parse(start, file_bytes.value_or(kAnySize), name);
    uint64_t end = 0;
    for (const GgufTensor& tensor : file.tensors())
      end = std::max(end, tensor.offset + tensor.bytes);
    return end;
  } catch (const GgufIncomplete&) {
    return std::nullopt;
  }
}

}  // namespace prism::llm
