// Shared parts of the kernel benches: options, a line of results, and the read bandwidth kernel.
#pragma once

#include <string>

#include "prism/kernel.h"

namespace prism::bench {

struct Options {
  std::string device = "auto", only;
  bool json = false, tune = false, quick = false, chain = false;
};

struct Line {
  std::string what, note;
  double seconds = 0, bytes = 0, operations = 0;
};

// Reads everything once, 64 bytes per lane and iteration; the sum prevents dead-code elimination.
inline ir::Kernel read_all() {
  using namespace dsl;
  return kernel("read_all", 256, [] {
    const In x = weights("x", u32);
    const Array y = out("y", u32);
    const Value count = param("count", u32);  // words of 16 bytes
    Value sum = constant(u32, 0);
    for (uint32_t i = 0; i < 4; ++i) {
      const Value at = group_id() * 1024u + (i * 256) + local_id();
      const Value four = x.load_words_if(at < count, at * 4u, 4, 4);
      for (uint32_t j = 0; j < 4; ++j) sum = sum ^ four[j];
    }
    wait_previous();
    if_(sum == 0x12345678u, [&] { y[0] = sum; });
  });
}

}  // namespace prism::bench
