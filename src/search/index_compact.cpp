// Joins the segments of an index into one without removed vectors, at once or by a thread.
#include <chrono>
#include <unordered_map>

#include "prism/error.h"
#include "search/index_state.h"

namespace prism::search {

// The joined segment takes the place of all but the segments `more`, which may be some of its own.
void Index::State::replace_all(Segment segment, std::span<const Segment> more) {
  ids.reset();
  if (!file) {
    std::vector<Segment> all;
    all.push_back(std::move(segment));
    for (const Segment& each : more) all.push_back(each);
    segments = std::move(all);
    return;
  }
  const std::string path = file->path;
  std::vector<const Segment*> all = {&segment};
  for (const Segment& each : more) all.push_back(&each);
  write_index(path, options, all, attachments, file->root.generation + 1);
  writing = std::make_unique<UpdatedFile>(path);
  open(path);
}

void Index::compact() {
  const std::unique_lock lock(state_->mutex);
  state_->check_writable();
  BuildOptions how = state_->built;
  how.method = state_->method();
  state_->replace_all(with_method(state_->joined(), state_->options, how));
}

void Index::State::run_compaction() {
  // Copies of segments in a file refer to its mapped bytes.
  std::vector<Segment> before;
  BuildOptions how;
  {
    const std::shared_lock lock(mutex);
    before = segments;
    how = built;
    how.method = method();
  }
  std::vector<Segment::Source> sources;
  for (const Segment& segment : before)
    for (const uint32_t row : segment.added_order())
      if (segment.is_alive(row)) sources.push_back({&segment, row});
  Segment joined = with_method(Segment::gathered(options, sources), options, how);

  const std::unique_lock lock(mutex);
  // Others may have replaced the segments, or committed the last one under another identity.
  std::unordered_map<uint64_t, const Segment*> now;
  for (const Segment& segment : segments) now[segment.identity()] = &segment;
  for (const Segment& segment : before)
    if (!now.contains(segment.identity())) return;
  const std::vector<uint32_t> rows = joined.added_order();
  for (size_t i = 0; i < sources.size(); ++i)
    if (!now[sources[i].segment->identity()]->is_alive(sources[i].row)) joined.remove(rows[i]);
  // What was added meanwhile: rows at the end of the last segment, and segments behind it.
  std::vector<Segment> more;
  std::vector<Segment::Source> added;
  for (size_t s = 0; s < segments.size(); ++s) {
    const uint64_t known = s < before.size() ? before[s].rows() : 0;
    for (uint64_t row = known; row < segments[s].rows(); ++row)
      if (segments[s].is_alive(row)) added.push_back({&segments[s], static_cast<uint32_t>(row)});
  }
  if (!added.empty()) more.push_back(Segment::gathered(options, added));
  replace_all(std::move(joined), more);
}

void Index::compact_in_background() {
  State* const state = state_.get();
  const std::unique_lock lock(state->mutex);
  state->check_writable();
  if (state->compaction.valid() &&
      state->compaction.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    return;
  state->compaction = std::async(std::launch::async, [state] { state->run_compaction(); });
}

void Index::wait_for_compaction() {
  std::future<void> running;
  {
    const std::unique_lock lock(state_->mutex);
    running = std::move(state_->compaction);
  }
  if (running.valid()) running.get();
}

}  // namespace prism::search
