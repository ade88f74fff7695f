// Results that a plan makes again instead of keeping them.
#pragma once

namespace prism {

// An op that costs little more than reading its inputs and writing its only output, and gives the
// same again. A plan may run it twice. (Elementwise chains are such ops without this mark.)
class CheapToRepeat {
 public:
  virtual ~CheapToRepeat() = default;
};

}  // namespace prism
