// `prism index`: makes files searchable.
#include <filesystem>
#include <iostream>
#include <map>

#include <fmt/format.h>

#include "base/system/folder_watch.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_text.h"
#include "cli/terminal.h"
#include "prism/error.h"
#include "prism/file_search.h"
#include "prism/warning.h"
#include "search/files/default_embedder.h"
#include "search/files/file_walk.h"

namespace prism::cli {
namespace {

namespace fs = std::filesystem;
using search::FileIndex;
using search::PassageEmbedder;
using search::UpdateProgress;
using search::UpdateResult;

struct Options {
  std::vector<std::string> paths;
  std::string index;
  bool watch = false;
};

// The paths of each index file: the one named, else that of a folder around the path, else a new
// one.
std::map<std::string, std::vector<std::string>> paths_by_index(const Options& o) {
  std::vector<std::string> paths = o.paths;
  if (paths.empty()) paths.emplace_back(".");
  std::map<std::string, std::vector<std::string>> by_index;
  for (const std::string& path : paths) {
    if (!fs::exists(path))
      throw Error(ErrorCode::kNotFound,
                  fmt::format("index: there is no file or folder {}; is the path right?", path));
    std::string index = o.index;
    if (index.empty()) index = search::nearest_file_index(path).value_or("");
    if (index.empty()) index = search::file_index_path(path);
    by_index[index].push_back(path);
  }
  return by_index;
}

void show_progress(const UpdateProgress& now) {
  if (now.files == 0) {
    progress("looking for files");
  } else if (now.passages == 0) {
    progress(fmt::format("{} of {} files read", exact_count_text(now.files_done),
                         exact_count_text(now.files)));
  } else {
    const double rate = now.seconds > 0 ? static_cast<double>(now.embedded) / now.seconds : 0;
    const double share = static_cast<double>(now.embedded) / static_cast<double>(now.passages);
    const std::string bar(static_cast<size_t>(share * 20), '#');
    progress(fmt::format(
        "{} files [{:.<20}] {} of {} passages{}", exact_count_text(now.files), bar,
        exact_count_text(now.embedded), exact_count_text(now.passages),
        rate > 0
            ? fmt::format(", {}/s, {} left", number_text(rate),
                          duration_text(static_cast<double>(now.passages - now.embedded) / rate))
            : ""));
  }
}

std::string counted(uint64_t count, const char* what) {
  return fmt::format("{} {}{}", exact_count_text(count), what, count == 1 ? "" : "s");
}

void print_result(const UpdateResult& done, const std::string& index) {
  std::string text = fmt::format("{}, {}: {} changed, {} removed", counted(done.files, "file"),
                                 counted(done.passages, "passage"), counted(done.changed, "file"),
                                 exact_count_text(done.removed));
  if (done.embedded > 0)
    text += fmt::format(", {} embedded ({}/s)", counted(done.embedded, "passage"),
                        number_text(static_cast<double>(done.embedded) / done.seconds));
  text += done.seconds < 10 ? fmt::format("; {:.1f} s\n", done.seconds)
                            : fmt::format("; {}\n", duration_text(done.seconds));
  std::string left_out;
  const auto add = [&](uint64_t count, const char* why) {
    if (count > 0)
      left_out +=
          fmt::format("{}{} {}", left_out.empty() ? "" : ", ", exact_count_text(count), why);
  };
  add(done.binary, "binary");
  add(done.large, "large");
  add(done.minified, "minified");
  if (!left_out.empty())
    text += fmt::format("left out: {} file{}\n", left_out,
                        done.binary + done.large + done.minified == 1 ? "" : "s");
  std::cout << text << "index: " << index << "\n" << std::flush;
  constexpr size_t kShown = 10;
  for (size_t i = 0; i < std::min(done.unreadable.size(), kShown); ++i)
    warn("not readable: " + done.unreadable[i]);
  if (done.unreadable.size() > kShown)
    warn(
        fmt::format("{} more files and folders are not readable", done.unreadable.size() - kShown));
}

class IndexRun {
 public:
  explicit IndexRun(const Options& o) : by_index_(paths_by_index(o)) {}

  int update_all() {
    for (const auto& [path, paths] : by_index_) {
      const fs::path folder = fs::path(path).parent_path();
      if (!folder.empty()) fs::create_directories(folder);
      FileIndex index = FileIndex::open_or_create(path);
      if (!embedder_ && !tried_) embedder_ = search::default_embedder_if_possible();
      tried_ = true;
      const UpdateResult done =
          index.update(paths, {.embedder = embedder_.get(), .progress = [&](const auto& now) {
                                 show_progress(now);
                                 return !guard_.interrupted();
                               }});
      end_progress();
      if (!watches_ || done.changed + done.removed > 0 || !done.is_complete)
        print_result(done, path);
      if (done.is_complete) continue;
      std::cerr << "interrupted: what was done is kept; the same command goes on\n";
      return guard_.status();
    }
    return kRight;
  }

  int watch() {
    watches_ = true;
    std::cerr << "watching for changes; Ctrl-C ends\n";
    while (!guard_.interrupted()) {
      std::vector<std::string> folders;
      for (const auto& each : by_index_)
        for (const std::string& path : each.second)
          for (std::string& folder : search::walk_files(path).folders)
            folders.push_back(std::move(folder));
      FolderWatch watch(folders);
      // What changed before the watch began.
      if (const int status = update_all(); status != kRight) return status;
      if (!watch.wait([&] { return !guard_.interrupted(); })) break;
    }
    return kRight;
  }

 private:
  std::map<std::string, std::vector<std::string>> by_index_;
  std::shared_ptr<const PassageEmbedder> embedder_;
  bool tried_ = false, watches_ = false;
  InterruptGuard guard_;
};

int index_files(const Options& o) {
  IndexRun run(o);
  const int status = run.update_all();
  return status == kRight && o.watch ? run.watch() : status;
}

}  // namespace

void add_index_command(const Command& program) {
  const Command command = program.subcommand("index", "make files searchable");
  auto options = std::make_shared<Options>();
  command.option("path", options->paths, "folders and files; without any, the current folder");
  command.option("--index", options->index,
                 "the index file; without it, one in the cache folder for each folder");
  command.flag("--watch", options->watch, "go on, and follow changes until Ctrl-C");
  command.footer(
      "Reads text and code; leaves out what .gitignore and .ignore name, hidden and binary files, "
      "and files over 4 MiB. Only what changed since the last time is read and embedded. Ctrl-C "
      "keeps what was done.\nExamples:\n  prism index\n  prism index ~/notes ~/src/project\n  "
      "prism "
      "index --watch ~/notes");
  command.run([options] { return index_files(*options); });
}

}  // namespace prism::cli
