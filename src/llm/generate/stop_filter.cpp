// Searches streamed text for stop strings.
#include "llm/generate/stop_filter.h"

#include <algorithm>

namespace prism::llm {

StopFilter::StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, "");
}

std::string StopFilter::put(std::string_view text) {
  if (stopped()) return "";
  held_ += text;
  size_t first = held_.npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    // If two start at the same place, the first in the list wins; the text before is the same.
    if (at < first) first = at, found_ = stop;
  }
  if (first != held_.npos) {
    std::string shown = held_.substr(0, first);
    held_.clear();
    return shown;
  }
  // Hold back the longest suffix of the text that is a prefix of a stop string.
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n) {
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, n))) {
        keep = n;
        break;
      }
    }
  }
  std::string shown = held_.substr(0, held_.size() - keep);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopFilter::finish() {
  std::string rest;
  std::swap(rest, held_);
  return rest;
}

}  // namespace prism::llm
