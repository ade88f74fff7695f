#include "support/models/chat_model.h"

#include "llm/gguf/gguf_writer.h"
#include "prism/llm/gguf.h"

namespace prism::test {

std::string with_template(const std::string& path, const std::filesystem::path& folder,
                          const std::vector<std::pair<std::string, std::string>>& values) {
  const llm::GgufFile file = llm::GgufFile::open(path);
  llm::GgufWriter writer;
  for (const auto& [key, value] : file.metadata()) writer.set(key, value);
  for (const auto& [key, value] : values) writer.set(key, value);
  writer.set("tokenizer.chat_template",
             "{% for m in messages %}{{ m.content }}{% if m.role == 'system' %}: {% endif %}"
             "{% endfor %}");
  for (const llm::GgufTensor& tensor : file.tensors())
    writer.add_tensor(tensor.name, tensor.shape, tensor.type, file.data(tensor));
  const std::string to = (folder / "chat.gguf").string();
  writer.write(to);
  return to;
}

}  // namespace prism::test
