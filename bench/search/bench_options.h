// The command line of the benches of search: pairs of a name and a value.
#pragma once

#include <exception>
#include <iostream>
#include <map>
#include <string>

namespace prism {

class BenchOptions {
 public:
  // words[first] is the first name.
  BenchOptions(int count, char** words, int first = 1) {
    for (int i = first; i + 1 < count; i += 2) values_[words[i]] = words[i + 1];
  }
  bool has(const std::string& name) const { return values_.contains(name); }
  std::string get(const std::string& name, const std::string& otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }

 private:
  std::map<std::string, std::string> values_;
};

// Runs a bench; prints what it throws.
template <class Run>
int run_bench(const Run& run) {
  try {
    return run();
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}

}  // namespace prism
