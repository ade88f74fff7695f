// The trace requested by PRISM_TRACE=file.json: every launch, host kernel and copy of every plan in
// Chrome trace format (chrome://tracing, Perfetto).
#pragma once

#include <cstdint>
#include <string>

namespace prism {

// Whether a trace is requested. Steps then run one at a time, each waited for, so that each time is
// the step's own; the whole run is slower.
bool tracing();

// Microseconds since the trace began.
double trace_now();

// Writes one finished step to its device's line. details: "f32[2, 3] -> f32[2]".
void trace_step(const std::string& device, const std::string& name, double start_us,
                double duration_us, uint64_t bytes, const std::string& details);

}  // namespace prism
