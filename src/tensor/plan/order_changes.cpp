// The order of emission: an op that changes memory in place follows the ops that read it before.
//
// Example: the update of a weight follows the product that needs the weight for the gradient of
// the layer below, although neither depends on the other.
#include <algorithm>
#include <unordered_set>

#include "tensor/plan/planner.h"

namespace prism {

namespace {

const Storage* memory_of(const Tensor& tensor) {
  return tensor.is_evaluated() ? tensor.node()->storage[tensor.output()].get() : nullptr;
}

}  // namespace

std::vector<Planner::Item*> Planner::emission_order() {
  std::unordered_map<const Storage*, size_t> readers;  // not yet emitted, of memory to be changed
  for (const Item& item : items_)
    for (size_t i = 0; !item.dropped && i < item.op->changed_inputs(); ++i)
      readers[memory_of(item.inputs[i])] = 0;
  const auto for_each_read = [&](const Item& item, const auto& act) {
    for (size_t i = item.op->changed_inputs(); !readers.empty() && i < item.inputs.size(); ++i) {
      const auto found = readers.find(memory_of(item.inputs[i]));
      // A change that reads its own target does so element by element.
      const bool own =
          item.op->changed_inputs() > 0 && memory_of(item.inputs[i]) == memory_of(item.inputs[0]);
      if (found != readers.end() && !own) act(found->second);
    }
  };
  for (const Item& item : items_)
    if (!item.dropped) for_each_read(item, [](size_t& count) { ++count; });

  std::vector<Item*> order, waiting;
  std::unordered_set<const Node*> unmade;  // results of waiting items
  const auto must_wait = [&](const Item& item) {
    for (size_t i = 0; i < item.op->changed_inputs(); ++i)
      if (readers.at(memory_of(item.inputs[i])) > 0) return true;
    return std::ranges::any_of(
        item.inputs, [&](const Tensor& input) { return unmade.contains(input.node().get()); });
  };
  const auto put_off = [&](Item& item) {
    waiting.push_back(&item);
    unmade.insert(item.node);
    unmade.insert(item.stands_for.begin(), item.stands_for.end());
  };
  // Returns whether the last read of some memory is now done.
  const auto take = [&](Item& item) {
    order.push_back(&item);
    bool done = false;
    for_each_read(item, [&](size_t& count) { done = --count == 0 || done; });
    return done;
  };
  const auto retry = [&] {
    for (bool again = true; again;) {
      again = false;
      unmade.clear();
      for (Item* item : std::exchange(waiting, {})) {
        if (must_wait(*item))
          put_off(*item);
        else
          again = take(*item) || again;
      }
    }
  };
  for (Item& item : items_) {
    if (item.dropped) continue;
    if (must_wait(item))
      put_off(item);
    else if (take(item))
      retry();
  }
  // What still waits reads a change and the memory before it, in one op or a cycle of them: then
  // the order of the graph decides, as no other is right.
  order.insert(order.end(), waiting.begin(), waiting.end());
  return order;
}

}  // namespace prism
