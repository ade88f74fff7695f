// Adds the options for models and devices to a command and reads their values.
#include "cli/fit_options.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdlib>

#include "prism/error.h"

namespace prism::cli {

uint64_t parse_size(const std::string& text, const std::string& option) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  std::string unit(end);
  for (char& c : unit) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (unit.ends_with("IB"))
    unit.resize(unit.size() - 2);
  else if (unit.ends_with("B"))
    unit.pop_back();
  const double factor = unit.empty()  ? 1
                        : unit == "K" ? 1 << 10
                        : unit == "M" ? 1 << 20
                        : unit == "G" ? 1 << 30
                                      : 0;
  if (end == text.c_str() || factor == 0 || !(number >= 0) || number * factor > 1e18)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} {}: a size is written like 512M, 1.5G or 100000", option, text));
  return static_cast<uint64_t>(number * factor);
}

llm::FitOptions FitChoice::options() const {
  llm::FitOptions out;
  out.device = device;
  if (gpu_layers >= 0) out.gpu_layers = gpu_layers;
  if (context > 0) out.context = context;
  out.min_context = min_context;
  out.cpu_experts = cpu_experts;
  if (!memory_margin.empty()) out.margin_bytes = parse_size(memory_margin, "--memory-margin");
  if (!kv_type.empty()) {
    out.kv_type = ElementType::from_name(kv_type);
    if (!out.kv_type)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("--kv-type {}: the cache can be f16, f32 or q8_0", kv_type));
  }
  if (threads > 0) {
#ifdef _WIN32
    _putenv_s("PRISM_THREADS", std::to_string(threads).c_str());
#else
    setenv("PRISM_THREADS", std::to_string(threads).c_str(), 1);
#endif
  }
  return out;
}

void add_fit_options(const Command& command, FitChoice& choice, bool takes_model) {
  command.option(takes_model ? "-m,--model,model" : "-m,--model", choice.model,
                 fmt::format("a GGUF file, a Hugging Face folder, hf:user/repo:file.gguf or an "
                             "address (default: {})",
                             choice.default_title));
  command.option("-d,--device,--backend", choice.device,
                 "cpu, gpu, cuda, vulkan:0 and so on (default: the fastest; several if one is too "
                 "small)");
  command
      .option("--gpu-layers,--n-gpu-layers", choice.gpu_layers,
              "the number of layers outside the CPU; 99 means all (also -ngl)")
      .not_negative();
  command.option("-t,--threads", choice.threads, "threads of the CPU's kernels").between(1, 4096);
  command
      .option("-c,--context,--ctx-size", choice.context,
              "the number of tokens that the cache holds (default: what fits, at most 8192)")
      .positive();
  command
      .option("--min-context", choice.min_context,
              "move layers to the CPU rather than go below this context")
      .positive();
  command.option("--memory-margin", choice.memory_margin,
                 "memory to leave free on each device: 512M, 1.5G");
  command.option("--kv-type", choice.kv_type, "the element type of the cache: f16, f32 or q8_0");
  command.flag("--cpu-experts", choice.cpu_experts, "keep the experts of a mixture on the CPU");
}

}  // namespace prism::cli
