// Fuzzes config.json of Hugging Face folders, and the settings of sentence-transformers: they are
// rejected, or the metadata made of them can be read again.
//
// The input is three files with zero bytes between them: config.json, modules.json and
// sentence_bert_config.json.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "llm/convert/hf_architectures.h"
#include "llm/convert/hf_folder.h"
#include "llm/convert/hf_rope.h"
#include "llm/convert/sentence_settings.h"
#include "prism/error.h"
#include "prism/llm/gguf.h"

using namespace prism;
using namespace prism::llm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  std::map<std::string, std::string> files;
  for (const char* name : {"config.json", "modules.json", "sentence_bert_config.json"})
    if (std::string content; std::getline(in, content, '\0')) files[name] = content;
  files["1_Pooling/config.json"] = R"({"pooling_mode_mean_tokens": true})";
  GgufWriter writer;
  try {
    const HfFolder opened = HfFolder::of(files);
    const JsonView config(opened.config());
    const HfArchitecture& architecture = hf_architecture(config);
    writer.set("general.architecture", architecture.gguf);
    write_hyperparameters(architecture, config, writer);
    for (const ComputedTensor& tensor : rope_tensors(config, 64))
      if (tensor.values.size() > 64) std::abort();
    sentence_settings(opened);
  } catch (const Error&) {
    return 0;
  }
  const std::string header = writer.header();
  (void)GgufFile::parse(std::as_bytes(std::span(header)));
  return 0;
}
