// The measured time of decoding steps by their number of rows.
#pragma once

#include <cstdint>
#include <map>

namespace prism::llm {

class StepTimes {
 public:
  void learn(int64_t rows, double seconds);
  // Whether steps with exactly this many rows were measured lately.
  bool knows(int64_t rows) const { return times_.contains(rows); }
  // An estimate for any number of rows, once one number is known.
  double seconds(int64_t rows) const;

 private:
  struct Time {
    double seconds = 0;
    uint64_t learned = 0;  // when
  };
  std::map<int64_t, Time> times_;  // by rows
  uint64_t now_ = 0;
};

}  // namespace prism::llm
