// The texts of the benches about figures: shares of limits, and the advice based on them.
#pragma once

#include <string>

#include "ops/bench/op_bench.h"

namespace prism::cli {

std::string peaks_text(const DevicePeaks& peaks);

// "62% of bandwidth"; "in cache" if memory bandwidth is not the limit.
std::string share_text(const BenchResult& result);

// Tokens per second relative to the limit: "62% of 110 by bandwidth". Above the memory limit, the
// weights come from caches; above the product limit, the limit was measured too low.
std::string token_share_text(double rate, double limit, BenchLimit limited_by);

// Returns the advice for a model that the CPU decodes at that share of its memory limit.
std::string cpu_decode_advice(double share);

}  // namespace prism::cli
