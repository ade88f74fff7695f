// The planner: turns a graph into a plan by collecting, fusing and emitting nodes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tensor/plan/plan.h"

namespace prism {

class Planner {
 public:
  Planner(Plan& plan, std::span<const Tensor> outputs, std::span<const Tensor> inputs,
          const PlanOptions& options);
  void make();

 private:
  struct Item {  // an op to emit; a fused item keeps the node of its last op
    Node* node = nullptr;
    std::shared_ptr<const Op> op;
    std::vector<Tensor> inputs;
    bool dropped = false;
    bool prepares = false;                  // a separate step made by share()
    bool unkept = false;                    // does not store the output of its first part
    std::shared_ptr<Item> alone = nullptr;  // this item before it was merged with a preparation
    std::vector<Item> apart = {};           // the items it was joined from, for a fallback
    std::vector<Node*> stands_for = {};     // the nodes whose only output each of its outputs is
  };

  static constexpr uint32_t kAlwaysUsed = 1u << 20;  // used outside the plan

  void collect();
  void count_uses();
  // --- results made again instead of kept (remake.cpp)
  class Remaking;
  void remake();
  // --- elementwise fusion (fuse.cpp)
  void fuse();
  static bool lies_as_made(const Tensor& input);
  Item* sole_maker(const Tensor& input, uint32_t users = 1);
  Item* sole_producer(const Tensor& input, const Shape& shape);
  bool join_chains(Item& item);
  bool join_epilogue(Item& item);
  bool join_prologue(Item& item);
  // --- preprocessing of an input shared by several ops (share.cpp)
  void share();
  std::shared_ptr<Node> made_prepared(const Tensor& input, const Op& prepare, uint32_t users);
  // --- producers that also preprocess their output (join_prepared.cpp)
  void join_prepared();
  void hold_unkept();
  void emit_unkept(const Item& item);
  // --- norms folded into neighbouring products (fold_norms.cpp)
  void fold_norms();
  static bool surely_runs(const Item& item);
  // --- several ops merged into one step (join_alike.cpp)
  void join_alike();
  void join_maker(Item& item);
  void join_siblings();
  void join_joint(Item& item);
  // --- changes in place (order_changes.cpp)
  std::vector<Item*> emission_order();
  // --- emitting
  void emit(Item& item);
  void emit_on(const Device& device, const Item& item, const std::string& reason);
  std::optional<uint32_t> dying_input(const Item& item, const PlanStep& step);
  void emit_transfer(const Item& item);
  void emit_alias(const Item& item);
  void wait_for_made_weights();
  uint32_t new_slot(const Device& device, uint64_t bytes);
  uint32_t output_slot(Node& node, uint32_t output, const Device& device);
  DeviceView view_of(const Tensor& tensor);
  DeviceView on_device(DeviceView view, const Device& device);  // copies if it is elsewhere
  DeviceView dense(const DeviceView& view);                     // copies if it is not row-major
  DeviceView copy_of(const DeviceView& view);                   // a row-major copy
  void push(PlanStep step);

  Plan& plan_;
  std::span<const Tensor> outputs_, inputs_;
  PlanOptions options_;
  std::vector<Item> items_;
  std::vector<std::shared_ptr<Node>> joint_nodes_;  // keeps nodes alive that no tensor holds
  std::unordered_map<const Node*, size_t> item_of_;
  std::unordered_map<const Node*, uint32_t> uses_;  // by ops not yet emitted and from outside
  std::map<std::pair<const Node*, uint32_t>, uint32_t> slot_of_;
  std::unordered_map<const Storage*, uint32_t> slot_of_storage_;
  std::map<std::pair<const Node*, uint32_t>, bool> wanted_;  // outputs of the plan
};

// The op behind Tensor::to: a copy from another device.
class ToDeviceOp : public Op {
 public:
  std::string_view name() const override { return "to"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  std::vector<Tensor> gradient(const GradientCall& call) const override;
  void run_cpu(const CpuCall& call) const override;
  void launch(DeviceCall& call) const override;
};

}  // namespace prism
