// `prism model info FILE`: describes a model and the memory that it needs on each device.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "base/json.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/device_json.h"
#include "cli/model_text.h"
#include "cli/terminal.h"
#include "llm/architectures/architecture.h"
#include "prism/device.h"
#include "prism/error.h"
#include "prism/llm/gguf.h"
#include "prism/llm/memory.h"
#include "prism/llm/model_store.h"

namespace prism::cli {
namespace {

using llm::GgufFile;
using llm::GgufTensor;

struct Options {
  std::string file, kv_type = "f16";
  int64_t context = 0;
  bool tensors = false, metadata = false, json = false;
};

struct TypeCount {
  uint64_t tensors = 0, bytes = 0;
};

struct DeviceNeed {
  Device device;
  llm::MemoryNeed need;
};

// Everything that is printed, collected once for text and JSON.
struct Facts {
  llm::ModelSizes sizes;  // layers is 0 if the file holds no model
  std::map<std::string, TypeCount> types;
  uint64_t tensor_bytes = 0;
  int64_t context = 0;
  std::vector<DeviceNeed> needs;
  std::string tokenizer;
  uint64_t tokens = 0;
  bool is_adapter = false;
  bool is_known = true;  // Prism has the architecture
};

Facts facts_of(const GgufFile& file, const Options& options) {
  Facts facts;
  for (const GgufTensor& tensor : file.tensors()) {
    TypeCount& count = facts.types[tensor.type_name()];
    ++count.tensors;
    count.bytes += tensor.bytes;
    facts.tensor_bytes += tensor.bytes;
  }
  facts.tokenizer = file.string_or("tokenizer.ggml.model", "");
  if (const std::string_view pre = file.string_or("tokenizer.ggml.pre", ""); !pre.empty())
    facts.tokenizer += fmt::format(" ({})", pre);
  if (const llm::GgufValue* const tokens = file.find("tokenizer.ggml.tokens"))
    facts.tokens = tokens->count();
  const std::string architecture(file.string_or("general.architecture", ""));
  facts.is_adapter = file.string_or("general.type", "") == "adapter";
  facts.is_known = llm::is_known_architecture(architecture);
  if (file.tensors().empty() || !file.has(architecture + ".block_count")) {
    facts.sizes.architecture = architecture;
    facts.sizes.name = file.string_or("general.name", "");
    for (const GgufTensor& tensor : file.tensors())
      facts.sizes.parameters += static_cast<uint64_t>(tensor.shape.elements());
    return facts;
  }
  facts.sizes = llm::model_sizes(file);
  const auto kv_type = ElementType::from_name(options.kv_type);
  if (!kv_type)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--kv-type {}: the cache can be f16, f32 or q8_0", options.kv_type));
  facts.context =
      options.context > 0 ? options.context : std::min(facts.sizes.context, llm::kDefaultContext);
  for (const BackendReport& report : discover_backends())
    for (const auto& driver : report.devices) {
      const Device device(driver, "");
      facts.needs.push_back(
          {device, llm::memory_need(file, facts.sizes, *kv_type, facts.context, device)});
    }
  return facts;
}

Json tensor_json(const GgufTensor& tensor) {
  return {{"name", tensor.name},
          {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())},
          {"type", tensor.type_name()},
          {"bytes", tensor.bytes},
          {"part", tensor.part},
          {"offset", tensor.offset}};
}

void print_json(const GgufFile& file, const Facts& facts, const Options& options) {
  const llm::ModelSizes& sizes = facts.sizes;
  Json types = Json::object();
  for (const auto& [name, count] : facts.types)
    types[name] = {{"tensors", count.tensors}, {"bytes", count.bytes}};
  Json devices = Json::array();
  for (const DeviceNeed& one : facts.needs)
    devices.push_back({{"device", one.device.id()},
                       {"weight_bytes", one.need.weight_bytes()},
                       {"kv_cache_bytes", one.need.kv_bytes()},
                       {"activation_bytes", one.need.activation_bytes},
                       {"total_bytes", one.need.total_bytes()},
                       {"free_bytes", bytes_json(one.device.free_bytes())}});
  Json all = {{"file", file.path()},
              {"parts", file.parts().size()},
              {"version", file.version()},
              {"file_bytes", file.file_bytes()},
              {"architecture", sizes.architecture},
              {"is_known", facts.is_known},
              {"is_adapter", facts.is_adapter},
              {"name", sizes.name},
              {"parameters", sizes.parameters},
              {"layers", sizes.layers},
              {"decoder_layers", sizes.decoder_layers},
              {"hidden", sizes.hidden},
              {"feed_forward", sizes.feed_forward},
              {"heads", sizes.heads},
              {"kv_heads", sizes.kv_heads.empty() ? 0 : sizes.kv_heads.front()},
              {"experts", sizes.experts},
              {"trained_context", sizes.context},
              {"tokenizer", facts.tokenizer},
              {"tokens", facts.tokens},
              {"types", types},
              {"context", facts.context},
              {"memory", devices}};
  if (options.metadata) {
    Json values = Json::object();
    for (const auto& [key, value] : file.metadata())
      values[std::string(key)] = {{"type", value.type_text()}, {"value", value.text()}};
    all["metadata"] = values;
  }
  if (options.tensors) {
    all["tensors"] = Json::array();
    for (const GgufTensor& tensor : file.tensors()) all["tensors"].push_back(tensor_json(tensor));
  }
  std::cout << all.dump(2) << "\n";
}

void print_sizes(const llm::ModelSizes& sizes) {
  const std::string of_decoder =
      sizes.decoder_layers > 0 ? fmt::format(" (the last {} are a decoder)", sizes.decoder_layers)
                               : "";
  std::cout << fmt::format(
      "{} layers{}, {} wide, {} heads ({} for keys and values), feed-forward {}", sizes.layers,
      of_decoder, sizes.hidden, sizes.heads, sizes.kv_heads.front(), sizes.feed_forward);
  if (sizes.experts > 0)
    std::cout << fmt::format(", {} experts ({} at a time)", sizes.experts, sizes.experts_used);
  std::cout << fmt::format("\ntrained for a context of {}\n", sizes.context);
}

// The matrices that an adapter changes, each by two factors.
void print_adapter(const GgufFile& file) {
  const std::string_view first = ".lora_a";
  int64_t matrices = 0, rank = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    if (!tensor.name.ends_with(first)) continue;
    ++matrices;
    if (tensor.shape.rank() > 1) rank = std::max(rank, tensor.shape[tensor.shape.rank() - 2]);
  }
  std::cout << fmt::format(
      "an adapter of rank {} for {} matrices, alpha {:g}; "
      "`prism run MODEL --lora FILE` uses it\n",
      rank, matrices, file.number_or("adapter.lora.alpha", 0));
}

void print_text(const GgufFile& file, const Facts& facts, const Options& options) {
  const llm::ModelSizes& sizes = facts.sizes;
  const llm::GgufValue* const title = file.find("general.name");
  std::cout << paint(Colour::bold, printable(title ? title->text() : file.path())) << "\n";
  std::cout << fmt::format(
      "{}, {} parameters, {} (GGUF version {}{})\n",
      sizes.architecture.empty() ? "no architecture" : printable(sizes.architecture),
      count_text(sizes.parameters), size_text(file.file_bytes()), file.version(),
      file.parts().size() > 1 ? fmt::format(", {} parts", file.parts().size()) : "");
  if (facts.is_adapter) print_adapter(file);
  if (file.string_or("general.type", "") == "imatrix")
    std::cout << "an importance matrix; `prism model quantize --imatrix FILE` uses it\n";
  if (sizes.layers > 0) print_sizes(sizes);
  const std::string_view kind = llm::other_kind(sizes.architecture);
  if (!kind.empty())
    std::cout << fmt::format("This is {}.\n", kind);
  else if (!facts.is_adapter && !sizes.architecture.empty() && !facts.is_known)
    std::cout << fmt::format(
        "Prism does not know the architecture {}, so it cannot run this model. It knows {} others: "
        "docs/models.md lists them and says how to ask for one.\n",
        printable(sizes.architecture), llm::known_architectures().size());
  if (!facts.tokenizer.empty())
    std::cout << fmt::format("tokenizer {}, {} tokens\n", printable(facts.tokenizer), facts.tokens);
  if (!facts.types.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& [name, count] : facts.types)
      rows.push_back({name, std::to_string(count.tensors), size_text(count.bytes)});
    std::cout << "\n" << table({"type", "tensors", "size"}, rows);
  }
  if (!facts.needs.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const DeviceNeed& one : facts.needs) {
      const uint64_t free = one.device.free_bytes(), total = one.need.total_bytes();
      rows.push_back({one.device.id(), size_text(one.need.weight_bytes()),
                      size_text(one.need.kv_bytes()), size_text(one.need.activation_bytes),
                      size_text(total), size_text(free), total <= free ? "yes" : "no"});
    }
    std::cout << fmt::format("\nmemory for a context of {}, {} cache:\n", facts.context,
                             options.kv_type)
              << table({"device", "weights", "cache", "work", "total", "free", "fits"}, rows);
  }
  if (options.metadata) {
    std::cout << "\n";
    for (const auto& [key, value] : file.metadata())
      std::cout << fmt::format("{} ({}): {}\n", printable(key), value.type_text(),
                               printable(value.text()));
  }
  if (options.tensors) {
    std::vector<std::vector<std::string>> rows;
    for (const GgufTensor& tensor : file.tensors())
      rows.push_back(
          {tensor.name, tensor.type_name(), tensor.shape.text(), size_text(tensor.bytes)});
    std::cout << "\n" << table({"tensor", "type", "shape", "size"}, rows);
  }
}

}  // namespace

void add_model_info_command(const Command& model) {
  const Command command = model.subcommand("info", "describe a model and the memory that it needs");
  auto options = std::make_shared<Options>();
  command
      .option(
          "file", options->file,
          "a GGUF file (any part of a split one) or the name of a model; if the model is not on "
          "this machine, only its header is read")
      .required();
  command.flag("--tensors", options->tensors, "list every tensor");
  command.flag("--metadata", options->metadata, "list every metadata value");
  command.option("-c,--context", options->context, "the context that the memory is computed for");
  command.option("--kv-type", options->kv_type, "the element type of the cache: f16, f32 or q8_0");
  command.flag("--json", options->json, "print JSON");
  command.footer(
      "Examples:\n  prism model info model.gguf\n  prism model info hf:user/repo:file.gguf "
      "--tensors\n  prism "
      "model info model.gguf --json | jq .memory");
  command.run([options] {
    const llm::ModelHeader header = llm::ModelHeader::open(options->file);
    const GgufFile& file = header.file();
    const Facts facts = facts_of(file, *options);
    if (options->json)
      print_json(file, facts, *options);
    else
      print_text(file, facts, *options);
    return kRight;
  });
}

}  // namespace prism::cli
