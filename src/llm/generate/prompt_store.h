// The folder of a prompt cache: one file for each block of tokens, which several processes may
// share.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "llm/generate/prompt_file.h"

namespace prism::llm {

// Files are written by a thread of its own, each whole or not at all, and readable by this user
// only. If the folder exceeds its limit, the files that were not used for longest are removed.
// Everything but the constructor may be called while the files of other processes come and go.
class PromptStore {
 public:
  // model and layout: 32 and 64 hexadecimal digits (PromptFile::layout). Makes the folder. Throws
  // kIo if that fails, or if other users could write its files. Warns if the folder has files of
  // the model with another layout, which are not used.
  PromptStore(const std::string& folder, uint64_t most_bytes, const std::string& model,
              std::string layout);
  ~PromptStore();  // writes what is left to write
  PromptStore(const PromptStore&) = delete;
  PromptStore& operator=(const PromptStore&) = delete;

  const std::string& layout() const { return layout_; }
  bool has(const std::string& key) const;

  // A file and the bytes that its layers refer to.
  struct Block {
    std::string bytes;
    PromptFile file;
  };
  // Returns nothing for a missing file, and for one that is damaged or is not what its name says:
  // it is removed, with a warning the first time. depth: blocks before this one; those of a longer
  // prefix are removed first.
  std::optional<Block> read(const std::string& key, uint64_t depth, uint64_t most_bytes);
  // Queues a file. Drops it if too much is queued, or if a file could not be written.
  void write(const std::string& key, uint64_t depth, std::vector<std::byte> bytes);
  bool is_full() const;  // whether write() would drop it
  void wait();           // until all queued files are written

 private:
  struct Job {
    std::string path;
    uint64_t depth = 0;
    std::vector<std::byte> bytes;
  };
  std::string path_of(const std::string& key) const;
  void run();
  void remove_oldest() const;
  void warn_once(const std::string& text);

  std::filesystem::path folder_;
  uint64_t most_bytes_;
  std::string start_, layout_;  // start_: of the names of this model's files
  bool has_warned_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  uint64_t queued_bytes_ = 0;
  bool is_writing_ = false, is_ending_ = false, has_failed_ = false;
  std::thread thread_;
};

}  // namespace prism::llm
