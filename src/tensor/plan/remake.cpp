// Makes cheap results again for a late use instead of keeping them where memory is needed most.
//
// Example: while a model is trained, the gradient of its last layer needs most memory: the values
// of all layers are kept for it. A norm's result is made again there from the norm's input, which
// is kept in any case, and so is silu(gate) * up.
#include <algorithm>
#include <memory>
#include <unordered_set>

#include "tensor/alias.h"
#include "tensor/chain/chain_op.h"
#include "tensor/plan/planner.h"
#include "tensor/plan/remade.h"

namespace prism {

namespace {

constexpr size_t kMostCopies = 8;  // of items for one result
constexpr double kSlow = 2;        // times the traffic of a copy, for norms and gelu

bool is_chain(const Op& op) { return dynamic_cast<const ChainOp*>(&op) != nullptr; }

bool is_slow(const Op& op) {
  const auto* chain = dynamic_cast<const ChainOp*>(&op);
  return !chain || std::ranges::any_of(chain->chain().steps, [](const Chain::Step& step) {
    return step.kind == Chain::Kind::apply && step.op == ScalarOp::gelu;
  });
}

uint64_t bytes_of(const Node& node) {
  uint64_t bytes = 0;
  for (const Spec& each : node.outputs) bytes += storage_bytes(each.shape, each.type, node.device);
  return bytes;
}

}  // namespace

class Planner::Remaking {
 public:
  explicit Remaking(Planner& planner) : planner_(planner) { find_peak(); }

  uint64_t peak_bytes() const { return peak_bytes_; }

  void run() {
    const std::vector<size_t> last = last_;
    std::vector<Candidate> candidates = choose(nullptr);
    std::ranges::stable_sort(candidates, {}, [](const Candidate& each) {
      return each.traffic / static_cast<double>(each.saved);
    });
    double left = planner_.options_.remake_traffic * operations();
    std::unordered_set<size_t> affordable;
    for (const Candidate& each : candidates) {
      if (each.traffic > left) continue;
      left -= each.traffic;
      affordable.insert(each.item);
    }
    last_ = last;
    remade_.clear();
    remade_from_kept_.clear();
    choose(&affordable);
    before_.resize(planner_.items_.size());
    for (size_t i = 0; i <= peak_; ++i)
      if (is_remade(i)) replace(i);
    insert_copies();
  }

 private:
  struct Candidate {
    size_t item;
    double traffic;  // bytes read and written to make it again
    uint64_t saved;  // bytes
  };

  // The results that are made again, of the given ones only.
  std::vector<Candidate> choose(const std::unordered_set<size_t>* of) {
    const PlanOptions& options = planner_.options_;
    std::vector<Candidate> chosen;
    for (size_t i = 0; i <= peak_; ++i) {
      const Item& item = planner_.items_[i];
      const uint64_t bytes = bytes_of(*item.node);
      if (!is_late(i) || !is_cheap(item) || bytes < options.remake_above / 256 ||
          first_late_use(i) < i + options.remake_distance || (of && !of->contains(i)))
        continue;
      Needs needs;
      add_needs(i, needs);
      // What is kept instead must be half as large at most. Such results are not made from one
      // another: that would add up all layers of a model.
      if (2 * needs.bytes > bytes || needs.copies > kMostCopies ||
          (needs.from_kept && !needs.kept.empty()))
        continue;
      (needs.kept.empty() ? remade_ : remade_from_kept_).insert(i);
      for (const size_t each : needs.kept) last_[each] = std::max(last_[each], last_[i]);
      chosen.push_back({i, traffic_of(i, needs), bytes - needs.bytes});
    }
    return chosen;
  }

  // Operations of all products.
  double operations() const {
    double total = 0;
    const auto view = [](const Shape& shape, ElementType type) {
      return DeviceView{0, type, Layout::dense(shape)};
    };
    for (const Item& item : planner_.items_) {
      std::vector<DeviceView> inputs, outputs;
      for (const Tensor& each : item.inputs) inputs.push_back(view(each.shape(), each.type()));
      for (const Spec& each : item.node->outputs) outputs.push_back(view(each.shape, each.type));
      total += item.op->operations(inputs, outputs);
    }
    return total;
  }

  // The number of the item that makes a tensor; items_.size() for one that has its values.
  size_t maker(const Tensor& tensor) const {
    const auto found = planner_.item_of_.find(tensor.node().get());
    return found == planner_.item_of_.end() ? planner_.items_.size() : found->second;
  }

  // The item at which the results in memory are largest, before any fusion.
  void find_peak() {
    const size_t count = planner_.items_.size();
    last_.resize(count);
    users_.resize(count);
    std::vector<int64_t> change(count + 1);
    for (size_t i = count; i-- > 0;) {
      const Item& item = planner_.items_[i];
      const bool is_alias = dynamic_cast<const AliasOp*>(item.op.get()) != nullptr;
      for (uint32_t k = 0; k < item.node->outputs.size(); ++k)
        if (planner_.wanted_.contains({item.node, k})) last_[i] = count;
      for (const Tensor& input : item.inputs) {
        const size_t from = maker(input);
        if (from == count) continue;
        last_[from] = std::max({last_[from], i, is_alias ? last_[i] : i});
        if (users_[from].empty() || users_[from].back() != i) users_[from].push_back(i);
      }
      if (is_alias) continue;
      const auto bytes = static_cast<int64_t>(bytes_of(*item.node));
      change[i] += bytes;
      change[std::min(last_[i] + 1, count)] -= bytes;
    }
    int64_t now = 0;
    for (size_t i = 0; i < count; ++i) {
      now += change[i];
      if (now <= static_cast<int64_t>(peak_bytes_)) continue;
      peak_bytes_ = static_cast<uint64_t>(now);
      peak_ = i;
    }
  }

  bool is_late(size_t i) const { return i <= peak_ && last_[i] > peak_; }

  size_t first_late_use(size_t i) const {
    size_t first = planner_.items_.size();
    for (const size_t user : users_[i])
      if (user > peak_) first = std::min(first, user);
    return first;
  }

  bool is_cheap(const Item& item) const {
    return item.node->outputs.size() == 1 && !planner_.wanted_.contains({item.node, 0}) &&
           item.op->changed_inputs() == 0 &&
           (is_chain(*item.op) || dynamic_cast<const CheapToRepeat*>(item.op.get()));
  }

  bool is_remade(size_t i) const { return remade_.contains(i) || remade_from_kept_.contains(i); }
  bool is_there(size_t i) const {
    return i == planner_.items_.size() || (is_late(i) && !is_remade(i));
  }

  // What it takes to make a result again.
  struct Needs {
    uint64_t bytes = 0;        // to be kept in addition
    uint64_t read = 0;         // by the copies
    std::vector<size_t> kept;  // the items that make them
    size_t copies = 0;         // of items
    bool from_kept = false;    // of items that are made again from something kept for them
  };

  void add_needs(size_t i, Needs& needs) const {
    ++needs.copies;
    needs.from_kept = needs.from_kept || remade_from_kept_.contains(i);
    for (const Tensor& input : planner_.items_[i].inputs) {
      const size_t from = maker(input);
      if (is_there(from) || std::ranges::count(needs.kept, from)) {
        needs.read += bytes_of(*input.node());
        continue;
      }
      const Item& item = planner_.items_[from];
      const uint64_t bytes = bytes_of(*item.node);
      Needs copied = needs;
      if (is_cheap(item) && needs.copies <= kMostCopies) add_needs(from, copied);
      if (copied.copies > needs.copies && copied.bytes < needs.bytes + bytes) {
        needs = std::move(copied);
      } else {
        needs.bytes += bytes;
        needs.read += bytes;
        needs.kept.push_back(from);
      }
    }
  }

  double traffic_of(size_t i, const Needs& needs) const {
    const Item& item = planner_.items_[i];
    const auto bytes = static_cast<double>(bytes_of(*item.node)),
               read = static_cast<double>(needs.read);
    const bool fuses = is_chain(*item.op) && std::ranges::all_of(users_[i], [&](size_t user) {
                         return user <= peak_ || is_chain(*planner_.items_[user].op);
                       });
    // Its users read the inputs in place of the result, or it is a step of its own. What is kept
    // for it is stored, and a step that made both at once becomes two.
    const double kept = 2 * static_cast<double>(needs.bytes);
    return kept +
           (fuses ? std::max(0.0, read - bytes) : (is_slow(*item.op) ? kSlow : 1) * (read + bytes));
  }

  // Gives the uses of item i after the peak copies of it. A chain gets one copy for each chain that
  // uses it, which is fused into its user; all others share one.
  void replace(size_t i) {
    std::vector<size_t> users = users_[i];
    std::ranges::sort(users);
    std::shared_ptr<Node> shared;
    for (const size_t u : users) {
      if (u <= peak_) continue;
      Item& user = planner_.items_[u];
      const bool fuses = is_chain(*planner_.items_[i].op) && is_chain(*user.op);
      if (!shared || fuses) {
        const std::shared_ptr<Node> made = copy(i, u);
        if (!fuses) shared = made;
        for (Tensor& input : user.inputs)
          if (maker(input) == i) input = Tensor(made, input.output(), input.layout());
        continue;
      }
      for (Tensor& input : user.inputs)
        if (maker(input) == i) input = Tensor(shared, input.output(), input.layout());
    }
  }

  std::shared_ptr<Node> copy(size_t i, size_t before) {
    const Item& item = planner_.items_[i];
    auto node = std::make_shared<Node>();
    node->op = item.op;
    node->outputs = item.node->outputs;
    node->device = item.node->device;
    for (const Tensor& input : item.inputs) {
      const size_t from = maker(input);
      node->inputs.push_back(
          is_there(from) ? input : Tensor(copy(from, before), input.output(), input.layout()));
    }
    before_[before].push_back(node);
    return node;
  }

  void insert_copies() {
    std::vector<Item> items;
    planner_.item_of_.clear();
    const auto add = [&](Item item) {
      planner_.item_of_[item.node] = items.size();
      items.push_back(std::move(item));
    };
    for (size_t i = 0; i < planner_.items_.size(); ++i) {
      for (const std::shared_ptr<Node>& node : before_[i]) {
        add({node.get(), node->op, node->inputs});
        planner_.joint_nodes_.push_back(node);
      }
      add(std::move(planner_.items_[i]));
    }
    planner_.items_ = std::move(items);
  }

  Planner& planner_;
  size_t peak_ = 0;
  uint64_t peak_bytes_ = 0;
  std::vector<size_t> last_;                // the last use of each item
  std::vector<std::vector<size_t>> users_;  // of each item
  std::unordered_set<size_t> remade_;       // from what is kept in any case
  std::unordered_set<size_t> remade_from_kept_;
  std::vector<std::vector<std::shared_ptr<Node>>> before_;  // copies made before each item
};

void Planner::remake() {
  Remaking remaking(*this);
  if (remaking.peak_bytes() < options_.remake_above) return;
  remaking.run();
}

}  // namespace prism
