// PRISM_TRACE=file.json: every launch, host kernel and copy of every plan as a Chrome trace
// (chrome://tracing, Perfetto).
#pragma once

#include <cstdint>
#include <string>

namespace prism {

// Whether a trace is asked for. Steps then run one by one, each waited for, so that times are their
// own; the whole takes longer than without.
bool tracing();

// Microseconds since the trace began.
double trace_now();

// One finished step on a line of its device. details: "f32[2, 3] -> f32[2]".
void trace_step(const std::string& device, const std::string& name, double start_us,
                double duration_us, uint64_t bytes, const std::string& details);

}  // namespace prism
