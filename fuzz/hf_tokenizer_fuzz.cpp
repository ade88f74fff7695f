// Fuzzes tokenizer.json and tokenizer_config.json of Hugging Face folders, and the lists of tokens
// of PLaMo and RWKV: they are rejected, or the metadata made of them can be read again, and encodes
// text if a tokenizer accepts it.
//
// The input is two files with a zero byte between them. The first is PLaMo's list if it begins with
// '[', to which the tokens of all bytes are added, and RWKV's if it begins with a digit.
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "llm/convert/hf_folder.h"
#include "llm/convert/hf_plamo_vocabulary.h"
#include "llm/convert/hf_rwkv_vocabulary.h"
#include "llm/convert/hf_tokenizer.h"
#include "prism/error.h"
#include "prism/llm/gguf.h"
#include "prism/llm/tokenizer.h"

using namespace prism;
using namespace prism::llm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kVocabulary = 300;
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  std::map<std::string, std::string> files = {{"config.json", "{}"}};
  std::string content;
  if (std::getline(in, content, '\0')) {
    const bool is_plamo = content.starts_with('['),
               is_rwkv = !content.empty() && std::isdigit(static_cast<unsigned char>(content[0]));
    for (int byte = 0; is_plamo && byte < 256; ++byte)
      content += fmt::format("\n[\"<0x{:02X}>\", 0, \"BYTE\"]", byte);
    files[is_plamo ? kPlamoVocabulary : is_rwkv ? kRwkvVocabulary : "tokenizer.json"] = content;
  }
  if (std::getline(in, content, '\0')) files["tokenizer_config.json"] = content;
  GgufWriter writer;
  try {
    writer.set("general.architecture", "llama");
    write_tokenizer(HfFolder::of(files), kVocabulary, writer);
  } catch (const Error&) {
    return 0;
  }
  const std::string header = writer.header();
  const GgufFile file = GgufFile::parse(std::as_bytes(std::span(header)));
  try {
    const Tokenizer tokenizer = Tokenizer::from(file);
    for (const int32_t id : tokenizer.encode("It's 10 past 9,  said <s>Ann\xc3\xa9</s>\n"))
      if (id < 0 || id >= kVocabulary) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
