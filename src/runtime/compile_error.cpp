// Names, dumps and error messages for kernel source texts.
#include "runtime/compile_error.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/cache_folder.h"
#include "print/printer.h"

namespace prism {
namespace {

// A text of up to kWholeLines lines is shown whole. For a longer one, kLinesAround lines are shown
// around each line that the log names.
constexpr size_t kWholeLines = 60;
constexpr size_t kLinesAround = 3;
constexpr size_t kLongestLog = 8000;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

// Compilers write "file:12:3: error" or "file(12): error". Every number after ':' or '(' that is a
// valid line number is therefore treated as one. A false hit only shows a few extra lines.
std::set<size_t> lines_named(const std::string& log, size_t line_count) {
  std::set<size_t> named;
  for (size_t i = 0; i + 1 < log.size(); ++i) {
    if ((log[i] != ':' && log[i] != '(') || !std::isdigit(static_cast<unsigned char>(log[i + 1])))
      continue;
    size_t number = 0, end = i + 1;
    while (end < log.size() && std::isdigit(static_cast<unsigned char>(log[end])) &&
           number < 1000000)
      number = number * 10 + static_cast<size_t>(log[end++] - '0');
    if (number >= 1 && number <= line_count) named.insert(number);
    // In "12:3" the second number is a column.
    while (end < log.size() &&
           (log[end] == ':' || std::isdigit(static_cast<unsigned char>(log[end]))))
      ++end;
    i = end - 1;
  }
  return named;
}

std::string file_name_of(const std::string& text) {
  std::string name;
  for (char c : text) name += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '-';
  return name;
}

// A failed text is always kept: in the dump folder if one is set, else in the cache folder.
std::filesystem::path keep_failed_text(const KernelText& kernel) {
  if (auto path = dump_file(kernel.file, std::string_view(kernel.text)); !path.empty()) return path;
  const auto folder = cache_subfolder("failed");
  if (folder.empty()) return {};
  const auto path = folder / kernel.file;
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  std::ofstream out(path, std::ios::binary);
  out << kernel.text;
  out.close();
  return out.good() ? path : std::filesystem::path();
}

}  // namespace

KernelText kernel_text(const DeviceInfo& device, const ir::Kernel& lowered,
                       const std::string& printed, const std::string& extension) {
  KernelText kernel;
  const std::string ir_text = ir::to_text(lowered);
  kernel.name = fmt::format("{}.{}.{}", file_name_of(device.id), file_name_of(lowered.name),
                            hash_text(ir_text).substr(0, 8));
  kernel.file = kernel.name + "." + extension;
  kernel.text = printed;
  if (dump_folder().empty()) return kernel;
  dump_file(kernel.name + ".ir", std::string_view(ir_text));
  dump_file(kernel.file, std::string_view(printed));
  if (auto replacement = replaced_text(kernel.file)) kernel.text = *replacement;
  return kernel;
}

void dump_log(const KernelText& kernel, const std::string& log) {
  if (!log.empty()) dump_file(kernel.name + ".log", std::string_view(log));
}

std::string numbered_source(const std::string& text, const std::string& log) {
  const std::vector<std::string> lines = lines_of(text);
  const std::set<size_t> named = lines_named(log, lines.size());
  const bool whole = lines.size() <= kWholeLines || named.empty();
  std::string numbered;
  bool gap = false;
  for (size_t number = 1; number <= lines.size(); ++number) {
    const auto near = named.lower_bound(number > kLinesAround ? number - kLinesAround : 1);
    if (!whole && (near == named.end() || *near > number + kLinesAround)) {
      gap = true;
      continue;
    }
    if (gap) numbered += "      ...\n";
    gap = false;
    numbered +=
        fmt::format("{} {:4} | {}\n", named.count(number) ? '>' : ' ', number, lines[number - 1]);
  }
  return numbered;
}

Error compile_error(const DeviceInfo& device, const ir::Kernel& lowered, const KernelText& kernel,
                    const std::string& log) {
  const auto path = keep_failed_text(kernel);
  const std::string shown =
      log.size() <= kLongestLog ? log : log.substr(0, kLongestLog) + "\n... (log truncated)\n";
  std::string message = fmt::format(
      "compiling kernel {} for {} ({}): its compiler rejected the text\n{}\n", lowered.name,
      device.id, device.name, shown.empty() ? "(the compiler gave no log)" : shown);
  message += numbered_source(kernel.text, log);
  if (!path.empty()) message += fmt::format("the whole text is in {}\n", path.string());
  message += fmt::format(
      "driver: {}; unless the rejected text is your own, please report this with `prism "
      "report`",
      device.driver.empty() ? "unknown" : device.driver);
  return Error(ErrorCode::kCompile, message);
}

void compile_text(
    const DeviceInfo& device, const ir::Kernel& lowered, const std::string& extension,
    const std::function<std::string(const KernelText& text, const std::string& entry)>& compile) {
  const PrintedKernel printed = print(lowered, device.capabilities);
  const KernelText text = kernel_text(device, lowered, printed.text, extension);
  const std::string log = compile(text, printed.entry);
  dump_log(text, log);
  if (!log.empty()) throw compile_error(device, lowered, text, log);
}

}  // namespace prism
