// `prism kernel show`: prints a kernel as IR or in one of the device languages.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <random>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/suggest.h"
#include "base/system/output_file.h"
#include "base/system/process.h"
#include "base/units.h"
#include "cli/choices.h"
#include "cli/commands.h"
#include "lower/lower.h"
#include "print/printer.h"
#include "prism/error.h"

namespace prism::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kNoLimit = 1u << 30;

struct Options {
  std::string name;
  std::string language = "ir";
  std::string device;
  std::string output;
};

std::string_view bytes_of(const std::vector<uint32_t>& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint32_t)};
}

// Returns the listing of SPIR-V's disassembler, or an empty text if it is not installed.
std::string disassemble(const std::vector<uint32_t>& words) {
  if (find_program("spirv-dis").empty()) return "";
  std::random_device random;
  const fs::path binary =
      fs::temp_directory_path() / fmt::format("prism_{:08x}{:08x}.spv", random(), random());
  write_whole_file(binary.string(), bytes_of(words), FileKind::owner_only);
  std::string text;
  const int status = read_process(
      {"spirv-dis", "--no-color", binary.string()}, [&](std::span<const std::byte> bytes) {
        text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return true;
      });
  std::error_code ignored;
  fs::remove(binary, ignored);
  return status == 0 ? text : "";
}

std::string hexadecimal(const std::vector<uint32_t>& words) {
  std::string text =
      "; spirv-dis is not installed (Debian: apt install spirv-tools): words in hexadecimal\n";
  for (size_t i = 0; i < words.size(); ++i)
    text += fmt::format("{:08x}{}", words[i], i % 8 == 7 || i + 1 == words.size() ? '\n' : ' ');
  return text;
}

ir::Capabilities capabilities_for(const Options& options) {
  if (options.device.empty()) return typical_capabilities(options.language);
  const DeviceInfo& info = Device::named(options.device).info();
  if (info.capabilities.dialect == options.language) return info.capabilities;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} speaks {}, not {}; leave out --device, or use --lang {}", info.id,
                          info.capabilities.dialect, options.language, info.capabilities.dialect));
}

// Without a device the text is only for reading, so the limits of a typical device do not apply.
PrintedKernel print_for(const Options& options, const ir::Kernel& kernel) {
  ir::Capabilities capabilities = capabilities_for(options);
  const uint64_t typical_bytes = capabilities.shared_bytes;
  const uint32_t typical_lanes = capabilities.max_group_size;
  if (options.device.empty()) {
    capabilities.shared_bytes = kNoLimit;
    capabilities.max_group_size = kNoLimit;
  }
  const ir::Kernel lowered = lower(kernel, capabilities);
  if (lowered.shared_bytes() > typical_bytes)
    std::cerr << fmt::format("note: {} needs {} of shared memory; a typical {} device has {}\n",
                             options.name, size_text(lowered.shared_bytes()), options.language,
                             size_text(typical_bytes));
  if (lowered.group_size > typical_lanes)
    std::cerr << fmt::format("note: {} has groups of {} lanes; a typical {} device allows {}\n",
                             options.name, lowered.group_size, options.language, typical_lanes);
  return print(lowered, capabilities);
}

int show_kernel(const Options& options) {
  std::vector<std::string> languages = dialects();
  languages.push_back("ir");
  if (std::ranges::find(languages, options.language) == languages.end()) {
    throw Error(ErrorCode::kNotFound, fmt::format("\"{}\" is no language{}", options.language,
                                                  valid_names(options.language, languages)));
  }
  const ir::Kernel kernel = kernel_named(options.name).make();
  std::string text;
  std::vector<uint32_t> words;
  if (options.language == "ir") {
    text = ir::to_text(options.device.empty()
                           ? kernel
                           : lower(kernel, Device::named(options.device).info().capabilities));
  } else {
    PrintedKernel printed = print_for(options, kernel);
    text = std::move(printed.text);
    words = std::move(printed.words);
  }
  if (!options.output.empty()) {
    write_whole_file(options.output, words.empty() ? std::string_view(text) : bytes_of(words));
    return kRight;
  }
  if (!words.empty()) {
    text = disassemble(words);
    if (text.empty()) text = hexadecimal(words);
  }
  std::cout << text;
  if (!text.empty() && text.back() != '\n') std::cout << "\n";
  return kRight;
}

}  // namespace

void add_kernel_show_command(const Command& kernel) {
  const Command command = kernel.subcommand("show", "print a kernel in one language");
  auto options = std::make_shared<Options>();
  command.option("name", options->name, "the kernel (`prism kernel list`)").required();
  command
      .option("--lang,-l", options->language, "cuda, hip, opencl, metal, sycl, wgsl, spirv or ir")
      .shows_default();
  command.option("--device,-d", options->device,
                 "print for what this device can do, not for a typical one");
  command.option("--output,-o", options->output, "write to this file (SPIR-V as binary)");
  command.footer(
      "Examples:\n  prism kernel show vector_add --lang metal\n  prism kernel show sum_rows --lang "
      "spirv --output sum_rows.spv\n"
      "  prism kernel show sum_rows --lang ir --device vulkan:0      as lowered for that device");
  command.run([options] { return show_kernel(*options); });
}

}  // namespace prism::cli
