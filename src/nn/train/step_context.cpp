// The context of the step that a thread records.
#include "nn/train/step_context.h"

#include "prism/ops/assign.h"
#include "prism/ops/elementwise.h"

namespace prism::nn {

namespace {

thread_local StepContext* current = nullptr;

}  // namespace

StepContext* step_context() { return current; }

Tensor in_compute_type(const Tensor& x) {
  return current && current->compute != DType::f32 ? x.astype(current->compute) : x;
}

WithContext::WithContext(StepContext& context) : before_(current) { current = &context; }
WithContext::~WithContext() { current = before_; }

Tensor change(const Tensor& target, const Tensor& value) {
  if (!current || !current->go_on) return assign(target, value);
  return assign(target, where(current->go_on, value, target));
}

void change_with_step(const Tensor& target, const Tensor& value) {
  const Tensor changed = assign(target, value);
  if (current)
    current->changes.push_back(changed);
  else
    changed.eval();
}

}  // namespace prism::nn
