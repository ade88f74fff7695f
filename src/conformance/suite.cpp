// Runs a sample of conformance cases, or all of them, and collects the results of each op.
#include "conformance/suite.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/suggest.h"
#include "conformance/gradient_check.h"
#include "conformance/suite_sample.h"
#include "prism/error.h"
#include "runtime/compiled_programs.h"

namespace prism {

namespace {

constexpr size_t kSampleCases = 3000;
constexpr size_t kMostDraws = 64;

void check_name(const std::string& op) {
  std::vector<std::string> names;
  for (const SuiteOp& each : suite_ops()) {
    if (op.empty() || each.op == op) return;
    names.push_back(each.op);
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("\"{}\" is no op of the suite{}", op, valid_names(op, names)));
}

// The state of one run.
class SuiteRun {
 public:
  SuiteRun(const Device& device, const SuiteOptions& options)
      : device_(device),
        options_(options),
        limit_(options.cases.value_or(device.info().is_cpu ? 0 : kSampleCases)),
        budget_(limit_ == 0 ? 0 : options.programs),
        programs_before_(compiled_programs(device)) {
    result_.device = device.id();
    result_.seed = options.seed;
    for (const SuiteOp& each : suite_ops()) {
      if (!options.op.empty() && each.op != options.op) continue;
      outcome_of_[each.op] = result_.ops.size();
      result_.ops.push_back({each.op, each.family, 0, 0, 0, 0, 0, {}, {}});
    }
  }

  SuiteResult run() {
    const auto start = std::chrono::steady_clock::now();
    for (size_t draw = 0; draw < kMostDraws && !done(); ++draw) {
      const size_t before = result_.drawn.size();
      run_draw(draw);
      if (draw == 0) result_.different = result_.drawn.size();
      if (limit_ == 0 || result_.drawn.size() == before) break;
    }
    result_.programs = programs();
    result_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  bool done() const { return limit_ != 0 && result_.drawn.size() >= limit_; }
  size_t programs() const { return compiled_programs(device_) - programs_before_; }

  void run_draw(size_t draw) {
    const std::vector<OpCase> cases = all_cases(options_.seed + draw, options_.op);
    const std::vector<SampleItem> order = sample_order(cases, options_.seed + draw);
    if (draw == 0) result_.available = order.size();
    for (const SampleItem& item : order) {
      if (done()) return;
      if (budget_.takes(item, programs())) run_item(item);
    }
  }

  void run_item(const SampleItem& item) {
    if (options_.progress)
      options_.progress(
          {item.test->op, result_.drawn.size(), limit_ == 0 ? result_.available : limit_});
    const CaseResult got =
        item.gradient ? run_gradient_case(*item.test, device_) : run_case(*item.test, device_);
    result_.drawn.push_back(got.op + " " + got.what);
    OpOutcome& outcome = result_.ops[outcome_of_.at(item.test->op)];
    ++outcome.ran;
    outcome.gradients += item.gradient;
    outcome.right += got.right;
    outcome.worst_nmse = std::max(outcome.worst_nmse, got.nmse);
    if (got.fell_back) ++outcome.fell_back, ++outcome.fallbacks[got.reason];
    if (std::ranges::find(outcome.types, item.types) == outcome.types.end())
      outcome.types.push_back(item.types);
    if (!got.right) result_.wrong.push_back(got);
  }

  const Device& device_;
  const SuiteOptions& options_;
  const size_t limit_;
  ProgramBudget budget_;
  const size_t programs_before_;
  std::map<std::string, size_t> outcome_of_;
  SuiteResult result_;
};

size_t total(const std::vector<OpOutcome>& ops, size_t OpOutcome::*member) {
  size_t sum = 0;
  for (const OpOutcome& each : ops) sum += each.*member;
  return sum;
}

}  // namespace

size_t SuiteResult::ran() const { return total(ops, &OpOutcome::ran); }
size_t SuiteResult::right() const { return total(ops, &OpOutcome::right); }
size_t SuiteResult::fell_back() const { return total(ops, &OpOutcome::fell_back); }

const std::vector<SuiteOp>& suite_ops() {
  static const std::vector<SuiteOp> ops = [] {
    std::vector<SuiteOp> found;
    for (const OpCase& test : all_cases(1)) {
      if (std::ranges::find(found, test.op, &SuiteOp::op) == found.end())
        found.push_back({test.op, test.family});
    }
    return found;
  }();
  return ops;
}

SuiteResult run_suite(const Device& device, const SuiteOptions& options) {
  check_name(options.op);
  return SuiteRun(device, options).run();
}

}  // namespace prism
