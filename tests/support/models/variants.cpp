// Writes variants of files.
#include "support/models/variants.h"

#include <span>

namespace prism::test {

llm::GgufFile Variants::open(const Variant& variant) {
  llm::GgufWriter to;
  const std::string own(file_.string("general.architecture"));
  const std::string other = variant.architecture.empty() ? own : variant.architecture;
  for (const auto& [key, value] : file_.metadata())
    to.set(key.starts_with(own + ".") ? other + std::string(key.substr(own.size())) : key, value);
  to.set("general.architecture", other);
  if (variant.change) variant.change(to);
  for (const llm::GgufTensor& each : file_.tensors()) {
    const auto found = variant.values.find(each.name);
    if (variant.without.contains(each.name)) continue;
    to.add_tensor(each, found == variant.values.end() ? file_.data(each)
                                                      : std::as_bytes(std::span(found->second)));
  }
  for (const auto& [name, added] : variant.added)
    to.add_tensor(name, added.first, DType::f32, std::as_bytes(std::span(added.second)));
  const std::string path = (folder_.path() / (std::to_string(count_++) + ".gguf")).string();
  to.write(path);
  return llm::GgufFile::open(path);
}

}  // namespace prism::test
