// Tries every way to compute each bench product and stores the fastest.
#include "ops/bench/tune.h"

#include "ops/bench/op_bench.h"
#include "ops/products/matmul_op.h"
#include "runtime/measure/tuned.h"

namespace prism {

namespace {

constexpr double kScatter = 1.05;

}  // namespace

std::vector<TunedProduct> tune_products(const Device& device,
                                        const std::function<void(const std::string&)>& progress) {
  std::vector<TunedProduct> all;
  if (device.info().is_cpu) return all;
  for (const BenchCase& bench : bench_cases(device)) {
    if (!bench.is_product) continue;
    if (progress) progress(device.id() + ": " + bench.op + " " + bench.what);
    TunedProduct product;
    product.what = bench.op + " " + bench.what;
    std::vector<std::string> keys;
    // The usual way comes first. A way that this product cannot use falls back to a later one, so
    // it measures no slower.
    for (const std::string way : kProductWayNames) {
      const TrialChoice trial(way);
      const BenchResult result = run_bench(bench, device);
      if (!result.problem.empty() || trial.keys().empty()) continue;
      keys = trial.keys();
      if (product.before.empty()) {
        product.before = product.best = way;
        product.before_seconds = product.best_seconds = result.seconds;
      } else if (result.seconds * kScatter < product.best_seconds) {
        product.best = way;
        product.best_seconds = result.seconds;
      }
    }
    if (keys.empty()) continue;
    for (const std::string& key : keys) keep_tuned_choice(device.info(), key, product.best);
    all.push_back(product);
  }
  return all;
}

}  // namespace prism
