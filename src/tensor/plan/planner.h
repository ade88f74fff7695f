// From a graph to a plan: which nodes there are, which of them become one launch, what runs where.
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
  struct Item {  // an op to be done; fused ones keep the node of the last
    Node* node = nullptr;
    std::shared_ptr<const Op> op;
    std::vector<Tensor> inputs;
    bool dropped = false;
    bool prepares = false;                  // a step of its own that share() made
    bool unkept = false;                    // does not keep what its first part alone would make
    std::shared_ptr<Item> alone = nullptr;  // as it was before it shared something with others
    std::vector<Item> apart = {};           // what it was joined of, where it was
    std::vector<Node*> stands_for = {};     // whose only output each of its outputs is
  };

  static constexpr uint32_t kAlwaysUsed = 1u << 20;  // wanted by someone outside the plan

  void collect();
  void count_uses();
  // --- fusing (fuse.cpp)
  void fuse();
  static bool lies_as_made(const Tensor& input);
  Item* sole_maker(const Tensor& input, uint32_t users = 1);
  Item* sole_producer(const Tensor& input, const Shape& shape);
  bool join_chains(Item& item);
  bool join_epilogue(Item& item);
  bool join_prologue(Item& item);
  // --- what several ops make of one input (share.cpp)
  void share();
  std::shared_ptr<Node> made_prepared(const Tensor& input, const Op& prepare, uint32_t users);
  // --- an input and what is prepared of it in one step (join_prepared.cpp)
  void join_prepared();
  void hold_unkept();
  void emit_unkept(const Item& item);
  // --- norms between products (fold_norms.cpp)
  void fold_norms();
  static bool surely_runs(const Item& item);
  // --- one step for several ops (join_alike.cpp)
  void join_alike();
  void join_maker(Item& item);
  void join_siblings();
  void join_joint(Item& item);
  // --- emitting
  void emit(Item& item);
  void emit_on(const Device& device, const Item& item, const std::string& reason);
  std::optional<uint32_t> dying_input(const Item& item, const PlanStep& step);
  void emit_transfer(const Item& item);
  void wait_for_made_weights();
  uint32_t new_slot(const Device& device, uint64_t bytes);
  uint32_t output_slot(Node& node, uint32_t output, const Device& device);
  DeviceView view_of(const Tensor& tensor);
  DeviceView on_device(DeviceView view, const Device& device);  // a copy where it is elsewhere
  DeviceView dense(const DeviceView& view);    // a copy where it does not lie row by row
  DeviceView copy_of(const DeviceView& view);  // lying row by row from the start of its memory
  void push(PlanStep step);

  Plan& plan_;
  std::span<const Tensor> outputs_, inputs_;
  PlanOptions options_;
  std::vector<Item> items_;
  std::vector<std::shared_ptr<Node>> joint_nodes_;  // kept: of items that no tensor holds
  std::unordered_map<const Node*, size_t> item_of_;
  std::unordered_map<const Node*, uint32_t> uses_;  // by ops yet to be emitted, and from outside
  std::map<std::pair<const Node*, uint32_t>, uint32_t> slot_of_;
  std::unordered_map<const Storage*, uint32_t> slot_of_storage_;
  std::map<std::pair<const Node*, uint32_t>, bool> wanted_;  // outputs of the plan
};

// The op behind Tensor::to: the one whose input is on another device.
class ToDeviceOp : public Op {
 public:
  std::string_view name() const override { return "to"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  std::vector<Tensor> gradient(const GradientCall& call) const override;
  void run_cpu(const CpuCall& call) const override;
  void launch(DeviceCall& call) const override;
};

}  // namespace prism
