// Walks folders by their ignore files.
#include "search/files/file_walk.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "base/system/input_file.h"
#include "prism/error.h"
#include "search/files/ignore_rules.h"

namespace prism::search {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaximumIgnoreBytes = 4 << 20;

int64_t nanoseconds(fs::file_time_type time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

// The ignore files that apply to a folder: its own, then those of the folders around it.
struct RuleChain {
  std::shared_ptr<const RuleChain> outer;
  fs::path folder;
  std::vector<IgnoreRules> rules;  // a later one decides first

  bool ignores(const fs::path& path, bool is_folder) const {
    for (const RuleChain* chain = this; chain; chain = chain->outer.get()) {
      const std::string inside =
          path.generic_string().substr(chain->folder.generic_string().size() +
                                       (chain->folder.generic_string().ends_with('/') ? 0 : 1));
      for (auto each = chain->rules.rbegin(); each != chain->rules.rend(); ++each) {
        const IgnoreRules::Verdict verdict = each->verdict(inside, is_folder);
        if (verdict != IgnoreRules::Verdict::none) return verdict == IgnoreRules::Verdict::ignored;
      }
    }
    return false;
  }
};
using Chain = std::shared_ptr<const RuleChain>;

class Walker {
 public:
  Walker(Walk& walk, const std::function<bool()>& keep_going)
      : walk_(walk), keep_going_(keep_going) {}

  Chain with_rules_of(const fs::path& folder, Chain outer) {
    auto chain = std::make_shared<RuleChain>(RuleChain{std::move(outer), folder, {}});
    for (const char* name : {".git/info/exclude", ".gitignore", ".ignore"}) {
      const fs::path file = folder / name;
      std::error_code failed;
      if (!fs::is_regular_file(file, failed)) continue;
      try {
        IgnoreRules rules(read_input_file(file.string(), kMaximumIgnoreBytes));
        if (!rules.empty()) chain->rules.push_back(std::move(rules));
      } catch (const Error& error) {
        walk_.unreadable.push_back({file.string(), error.what()});
      }
    }
    return chain->rules.empty() ? chain->outer : chain;
  }

  void enter(const fs::path& folder, const Chain& outer) {
    if (keep_going_ && !keep_going_()) return;
    std::error_code failed;
    std::vector<fs::directory_entry> entries;
    fs::directory_iterator each(folder, failed);
    for (; !failed && each != fs::directory_iterator(); each.increment(failed))
      entries.push_back(*each);
    if (failed) walk_.unreadable.push_back({folder.string(), failed.message()});
    walk_.folders.push_back(folder.string());
    const Chain chain = with_rules_of(folder, outer);
    for (const fs::directory_entry& entry : entries) {
      if (entry.path().filename().string().starts_with('.')) continue;
      const fs::file_status status = entry.symlink_status(failed);
      const bool is_folder = fs::is_directory(status);
      if (failed || (!is_folder && !fs::is_regular_file(status)) ||
          (chain && chain->ignores(entry.path(), is_folder)))
        continue;
      if (is_folder)
        enter(entry.path(), chain);
      else
        add(entry);
    }
  }

  void add(const fs::directory_entry& entry) {
    std::error_code failed;
    const uint64_t bytes = entry.file_size(failed);
    if (failed) return;  // deleted meanwhile
    const fs::file_time_type time = entry.last_write_time(failed);
    if (!failed) walk_.files.push_back({entry.path().string(), bytes, nanoseconds(time)});
  }

 private:
  Walk& walk_;
  const std::function<bool()>& keep_going_;
};

// The folders around `root` up to that of the repository it belongs to, outermost first; none
// outside of a repository.
std::vector<fs::path> repository_folders(const fs::path& root) {
  std::vector<fs::path> folders;
  std::error_code failed;
  for (fs::path each = root; !fs::exists(each / ".git", failed);) {
    if (each == each.parent_path()) return {};
    each = each.parent_path();
    folders.insert(folders.begin(), each);
  }
  return folders;
}

}  // namespace

std::string whole_path(const std::string& path) {
  std::error_code failed;
  fs::path whole = fs::weakly_canonical(path, failed);
  if (failed) whole = fs::absolute(path, failed).lexically_normal();
  std::string text = whole.generic_string();
  if (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

bool is_under(std::string_view path, std::string_view folder) {
  if (!path.starts_with(folder)) return false;
  return path.size() == folder.size() || folder.ends_with('/') || path[folder.size()] == '/';
}

Walk walk_files(const std::string& given, const std::function<bool()>& keep_going) {
  const fs::path root = whole_path(given);
  std::error_code failed;
  if (!fs::exists(root, failed))
    throw Error(failed ? ErrorCode::kIo : ErrorCode::kNotFound,
                given + ": " + (failed ? failed.message() : "there is no such file or folder"));
  Walk walk;
  Walker walker(walk, keep_going);
  if (fs::is_directory(root, failed)) {
    Chain outer;
    for (const fs::path& folder : repository_folders(root))
      outer = walker.with_rules_of(folder, outer);
    walker.enter(root, outer);
  } else if (fs::is_regular_file(root, failed)) {
    walker.add(fs::directory_entry(root));
  }
  std::ranges::sort(walk.files, {}, &WalkedFile::path);
  return walk;
}

}  // namespace prism::search
