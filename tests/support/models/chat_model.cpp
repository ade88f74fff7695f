#include "support/models/chat_model.h"

#include <functional>

#include "llm/gguf/gguf_writer.h"
#include "prism/llm/gguf.h"

namespace prism::test {

namespace {

std::string copy_with(const std::string& path, const std::filesystem::path& to,
                      const std::function<void(llm::GgufWriter&)>& change) {
  const llm::GgufFile file = llm::GgufFile::open(path);
  llm::GgufWriter writer;
  for (const auto& [key, value] : file.metadata()) writer.set(key, value);
  change(writer);
  for (const llm::GgufTensor& tensor : file.tensors())
    writer.add_tensor(tensor.name, tensor.shape, tensor.type, file.data(tensor));
  writer.write(to.string());
  return to.string();
}

}  // namespace

std::string with_template(const std::string& path, const std::filesystem::path& folder,
                          const std::vector<std::pair<std::string, std::string>>& values) {
  return copy_with(path, folder / "chat.gguf", [&](llm::GgufWriter& writer) {
    for (const auto& [key, value] : values) writer.set(key, value);
    writer.set("tokenizer.chat_template",
               "{% for m in messages %}{{ m.content }}{% if m.role == 'system' %}: {% endif %}"
               "{% endfor %}");
  });
}

std::string with_fill_tokens(const std::string& path, const std::filesystem::path& folder,
                             const std::array<uint32_t, 3>& tokens) {
  return copy_with(path, folder / "fill.gguf", [&](llm::GgufWriter& writer) {
    writer.set("tokenizer.ggml.fim_pre_token_id", tokens[0]);
    writer.set("tokenizer.ggml.fim_suf_token_id", tokens[1]);
    writer.set("tokenizer.ggml.fim_mid_token_id", tokens[2]);
  });
}

}  // namespace prism::test
