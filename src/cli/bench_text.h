// What the benches say about figures: shares of limits, and advice that follows from them.
#pragma once

#include <string>

#include "ops/bench/op_bench.h"

namespace prism::cli {

std::string peaks_text(const DevicePeaks& peaks);

// "62% of bandwidth"; "in cache" for what the memory's bandwidth does not limit.
std::string share_text(const BenchResult& result);

// Tokens a second beside the limit: "62% of 110 by bandwidth". Above the limit of the memory the
// weights come from caches; above that of products the limit was measured too low.
std::string token_share_text(double rate, double limit, BenchLimit limited_by);

// What to do about a model that the CPU decodes at that share of what its memory allows.
std::string cpu_decode_advice(double share);

}  // namespace prism::cli
