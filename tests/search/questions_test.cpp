// Asks questions whose right files are known about Prism's own sources: how many find one of them
// among the first five files. Words need no model; vectors are tested by bench/search/questions.py.
#include <algorithm>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "prism/file_search.h"
#include "search/files/file_walk.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism::test {
namespace {

TEST(Questions, WordsFindMostFiles) {
  const TemporaryFolder folder;
  const std::string root = search::whole_path(source_dir().string());
  search::FileIndex index = search::FileIndex::open_or_create(folder / "an.index");
  std::vector<std::string> paths;
  for (const char* each : {"docs", "src", "include", "scripts", "CONTRIBUTING.md", "README.md"})
    paths.push_back(root + "/" + each);
  const search::UpdateResult done = index.update(paths);
  EXPECT_GT(done.files, 1000u);
  std::ifstream questions(source_dir() / "tests/search/questions.tsv");
  int asked = 0, right = 0;
  for (std::string line; std::getline(questions, line); ++asked) {
    const size_t tab = line.find('\t');
    std::istringstream rights(line.substr(tab + 1));
    const std::vector<std::string> prefixes{std::istream_iterator<std::string>(rights), {}};
    std::vector<std::string> found;
    for (const search::FoundPassage& each : index.search(line.substr(0, tab)).passages)
      if (std::ranges::find(found, each.path) == found.end() && found.size() < 5)
        found.push_back(each.path);
    right += std::ranges::any_of(found, [&](const std::string& path) {
      return std::ranges::any_of(prefixes, [&](const std::string& prefix) {
        return path.starts_with(root + "/" + prefix);
      });
    });
  }
  EXPECT_EQ(asked, 25);
  EXPECT_GE(right, 15) << "of " << asked;
  std::cout << "words: " << right << " of " << asked << " among the first five\n";
}

}  // namespace
}  // namespace prism::test
