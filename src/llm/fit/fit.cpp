// Assigns layers to devices, fastest first; the CPU takes the rest.
#include "prism/llm/fit.h"
#include "base/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "llm/fit/expected_speed.h"
#include "llm/fit/fit_devices.h"
#include "prism/error.h"
#include "runtime/counted_device.h"

namespace prism::llm {

namespace {

constexpr int64_t kLeastContext = 2048;  // the default context is not reduced below this

// One assignment of a model's parts: indices into the list of devices.
struct Arrangement {
  std::vector<size_t> layers, experts;
  size_t embedding = 0, output = 0;
};

class Fitter {
 public:
  Fitter(const GgufFile& file, const std::vector<FitDevice>& devices, const FitOptions& options)
      : file_(file), devices_(devices), options_(options), sizes_(model_sizes(file)) {
    if (devices.empty())
      throw Error(ErrorCode::kInvalidArgument,
                  "fit: the list of devices is empty; give at least one");
    for (const FitDevice& device : devices) {
      const uint64_t margin = options.margin_bytes.value_or(
          std::min<uint64_t>(uint64_t{1} << 30, device.total_bytes / 16));
      margins_.push_back(margin);
      const uint64_t budget = device.free_bytes > margin ? device.free_bytes - margin : 0;
      uint64_t& shared = budgets_[device.memory];
      shared = std::max(shared, budget);
    }
    last_gpu_ = devices.size();
    while (last_gpu_ > 0 && devices[last_gpu_ - 1].device.info().is_cpu) --last_gpu_;
    has_cpu_ = last_gpu_ < devices.size();
  }

  Fit run();

 private:
  size_t cpu() const { return has_cpu_ ? devices_.size() - 1 : 0; }
  size_t layers() const { return static_cast<size_t>(sizes_.layers); }

  // The memory each part needs on each device, for a KV cache of this size and type.
  std::vector<MemoryNeed> needs(int64_t context, ElementType kv_type) const {
    std::vector<MemoryNeed> all;
    for (const FitDevice& device : devices_)
      all.push_back(
          memory_need(file_, sizes_, kv_type, context, device.device, options_.batch_rows));
    return all;
  }

  std::vector<DeviceShare> shares(const Arrangement& at, const std::vector<MemoryNeed>& need) const;
  // Bytes beyond the budgets, summed over all memories; 0: it fits.
  uint64_t excess(const std::vector<DeviceShare>& shares) const;
  uint64_t excess(const Arrangement& at, const std::vector<MemoryNeed>& need) const {
    return excess(shares(at, need));
  }

  Arrangement all_on(size_t device) const {
    return {std::vector<size_t>(layers(), device), std::vector<size_t>(layers(), device), device,
            device};
  }
  // Puts the last layers on devices other than the CPU, as many as fit (or gpu_layers if given),
  // and the first layers on the CPU.
  Arrangement spread(const std::vector<MemoryNeed>& need, std::optional<int64_t> gpu_layers) const;
  // For a mixture whose layers all fit without experts: moves experts of the first layers to the
  // CPU.
  std::optional<Arrangement> spread_experts(const std::vector<MemoryNeed>& need) const;
  // The best arrangement for a KV cache, and whether it fits.
  std::pair<Arrangement, bool> arrange(int64_t context, ElementType kv_type) const;

  size_t layers_on_cpu(const Arrangement& at) const {
    size_t count = 0;
    for (size_t i = 0; i < layers(); ++i)
      count += (at.layers[i] == cpu()) + (at.experts[i] == cpu());
    return has_cpu_ && last_gpu_ > 0 ? count : 0;
  }
  int64_t largest_context(const Arrangement& at, int64_t context, ElementType kv_type) const;
  // The number of layers that could stay off the CPU if it took the rest; -1: even 0 does not fit.
  int64_t layers_that_fit(int64_t context, ElementType kv_type) const;
  [[noreturn]] void fail(int64_t context, ElementType kv_type) const;
  Fit result(const Arrangement& at, int64_t context, ElementType kv_type) const;

  const GgufFile& file_;
  const std::vector<FitDevice>& devices_;
  const FitOptions& options_;
  const ModelSizes sizes_;
  std::vector<uint64_t> margins_;
  std::map<std::string, uint64_t> budgets_;  // by memory name
  size_t last_gpu_ = 0;                      // one past the last device that is not the CPU
  bool has_cpu_ = false;
};

std::vector<DeviceShare> Fitter::shares(const Arrangement& at,
                                        const std::vector<MemoryNeed>& need) const {
  std::vector<DeviceShare> all(devices_.size());
  for (size_t d = 0; d < devices_.size(); ++d) {
    all[d].device = devices_[d].device;
    all[d].free_bytes = devices_[d].free_bytes;
    all[d].margin_bytes = margins_[d];
  }
  for (size_t i = 0; i < layers(); ++i) {
    DeviceShare& layer = all[at.layers[i]];
    const LayerMemory& there = need[at.layers[i]].layers[i];
    ++layer.layers;
    layer.weight_bytes += there.weight_bytes;
    layer.kv_bytes += there.kv_bytes;
    layer.state_bytes += there.state_bytes;
    const uint64_t experts = need[at.experts[i]].layers[i].expert_bytes;
    all[at.experts[i]].weight_bytes += experts;
    all[at.experts[i]].expert_layers += experts > 0;
  }
  all[at.embedding].weight_bytes += need[at.embedding].embedding_bytes;
  const bool is_shared = need[at.output].is_output_tied && at.output == at.embedding;
  if (!is_shared) all[at.output].weight_bytes += need[at.output].output_bytes;
  for (size_t d = 0; d < all.size(); ++d)
    if (all[d].layers > 0 || all[d].expert_layers > 0 || d == at.output)
      all[d].work_bytes = need[d].activation_bytes;
  return all;
}

uint64_t Fitter::excess(const std::vector<DeviceShare>& shares) const {
  std::map<std::string, uint64_t> used;
  for (size_t d = 0; d < shares.size(); ++d) used[devices_[d].memory] += shares[d].bytes();
  uint64_t over = 0;
  for (const auto& [memory, bytes] : used)
    if (bytes > budgets_.at(memory)) over += bytes - budgets_.at(memory);
  return over;
}

Arrangement Fitter::spread(const std::vector<MemoryNeed>& need,
                           std::optional<int64_t> gpu_layers) const {
  Arrangement at = all_on(cpu());
  if (last_gpu_ == 0) return at;
  const size_t wanted =
      gpu_layers ? std::min<size_t>(layers(), static_cast<size_t>(*gpu_layers)) : layers();
  size_t device = 0, placed = 0;
  if (wanted > 0) {
    at.output = 0;
    if (excess(at, need) > 0 && !gpu_layers) at.output = cpu();
  }
  // Start at the last layer, so that a token crosses from the CPU to the others once.
  for (size_t i = layers(); i-- > 0 && placed < wanted;) {
    Arrangement next = at;
    for (;; ++device) {
      if (device == last_gpu_) {
        if (!gpu_layers) return at;
        device = last_gpu_ - 1;  // requested by the caller, who gets an error if it does not fit
        next.layers[i] = next.experts[i] = device;
        break;
      }
      next.layers[i] = next.experts[i] = device;
      if (options_.cpu_experts && has_cpu_) next.experts[i] = cpu();
      if (excess(next, need) == 0) break;
      if (gpu_layers && device + 1 == last_gpu_) break;
    }
    at = next;
    ++placed;
  }
  if (placed < layers()) return at;
  Arrangement whole = at;  // only the token embedding is left on the CPU: try to move it too
  whole.embedding = at.layers.front();
  return excess(whole, need) == 0 || gpu_layers ? whole : at;
}

std::optional<Arrangement> Fitter::spread_experts(const std::vector<MemoryNeed>& need) const {
  if (sizes_.experts == 0 || last_gpu_ == 0 || !has_cpu_) return std::nullopt;
  std::vector<MemoryNeed> bare = need;
  for (MemoryNeed& one : bare)
    for (LayerMemory& layer : one.layers) layer.expert_bytes = 0;
  Arrangement at = spread(bare, std::nullopt);
  for (size_t i = 0; i < layers(); ++i) {
    if (at.layers[i] == cpu()) return std::nullopt;
    at.experts[i] = cpu();
  }
  if (!options_.cpu_experts)
    for (size_t i = layers(); i-- > 0;) {
      Arrangement next = at;
      next.experts[i] = next.layers[i];
      if (excess(next, need) == 0) at = next;
    }
  return excess(at, need) == 0 ? std::optional(at) : std::nullopt;
}

std::pair<Arrangement, bool> Fitter::arrange(int64_t context, ElementType kv_type) const {
  const std::vector<MemoryNeed> need = needs(context, kv_type);
  const bool is_split = options_.cpu_experts && sizes_.experts > 0 && has_cpu_ && last_gpu_ > 0;
  if (options_.gpu_layers && has_cpu_) {
    const Arrangement at = spread(need, options_.gpu_layers);
    return {at, excess(at, need) == 0};
  }
  if (!is_split)
    if (const Arrangement at = all_on(0); excess(at, need) == 0) return {at, true};
  if (last_gpu_ == 0 || !has_cpu_) return {all_on(0), false};
  const Arrangement at = spread(need, std::nullopt);
  if (layers_on_cpu(at) > 0 || is_split)
    if (const auto experts = spread_experts(need)) return {*experts, true};
  return {at, excess(at, need) == 0};
}

int64_t Fitter::largest_context(const Arrangement& at, int64_t context, ElementType kv_type) const {
  int64_t low = context, high = std::max(context, sizes_.context);
  constexpr int64_t kStep = 256;
  while (high - low >= kStep) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (excess(at, needs(middle, kv_type)) == 0)
      low = middle;
    else
      high = middle - 1;
  }
  return excess(at, needs(high, kv_type)) == 0 ? high : low;
}

int64_t Fitter::layers_that_fit(int64_t context, ElementType kv_type) const {
  if (last_gpu_ == 0) return -1;
  if (!has_cpu_) {
    std::vector<FitDevice> more = devices_;
    more.push_back(fit_device(Device::cpu()));
    return Fitter(file_, more, options_).layers_that_fit(context, kv_type);
  }
  const std::vector<MemoryNeed> need = needs(context, kv_type);
  const Arrangement at = spread(need, std::nullopt);
  if (excess(at, need) > 0) return -1;
  return std::ranges::count_if(at.layers, [&](size_t device) { return device != cpu(); });
}

void Fitter::fail(int64_t context, ElementType kv_type) const {
  const std::vector<MemoryNeed> need = needs(context, kv_type);
  const auto [at, fits] = arrange(context, kv_type);
  uint64_t wanted = 0;
  for (const DeviceShare& share : shares(at, need)) wanted += share.bytes();
  std::vector<std::string> there, would;
  for (size_t d = 0; d < devices_.size(); ++d)
    there.push_back(fmt::format("{} {}", devices_[d].device.id(),
                                devices_[d].free_bytes == kUnknownBytes ? "unknown"
                                : devices_[d].free_bytes > margins_[d]
                                    ? size_text(devices_[d].free_bytes - margins_[d])
                                    : size_text(0)));
  const auto fits_at = [&](int64_t tokens, ElementType type) {
    return arrange(tokens, type).second;
  };
  int64_t smaller = context / 2;
  while (smaller >= 256 && !fits_at(smaller, kv_type)) smaller /= 2;
  if (smaller >= 256) would.push_back(fmt::format("--context {}", smaller));
  const bool can_pack = sizes_.key_length % 32 == 0 && sizes_.value_length % 32 == 0;
  if (kv_type != BlockType::q8_0 && can_pack) {
    int64_t packed = context;
    while (packed >= 256 && packed > smaller && !fits_at(packed, BlockType::q8_0)) packed /= 2;
    if (packed >= 256 && packed > smaller)
      would.push_back(packed == context ? "--kv-type q8_0"
                                        : fmt::format("--kv-type q8_0 --context {}", packed));
  }
  if (const int64_t fewer = layers_that_fit(context, kv_type); fewer >= 0)
    would.push_back(fmt::format("--gpu-layers {}", fewer));
  FitOptions bare = options_;
  bare.margin_bytes = 0;
  if (Fitter(file_, devices_, bare).arrange(context, kv_type).second)
    would.push_back("a smaller --memory-margin");
  const std::string next =
      would.empty() ? "use a smaller model, or quantize it to fewer bits (prism model quantize)"
                    : fmt::format("what would fit: {}", fmt::join(would, ", or "));
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("{}: needs {} for a context of {} ({} cache), {} more than available "
                          "(free minus the margin: {}); {}",
                          file_.path(), size_text(wanted), context, kv_type.name(),
                          size_text(excess(at, need)), fmt::join(there, ", "), next));
}

Fit Fitter::result(const Arrangement& at, int64_t context, ElementType kv_type) const {
  Fit fit;
  Placement& placement = fit.placement;
  bool are_experts_apart = false;
  for (size_t i = 0; i < layers(); ++i) {
    placement.layers.push_back(devices_[at.layers[i]].device);
    placement.experts.push_back(devices_[at.experts[i]].device);
    are_experts_apart |= at.layers[i] != at.experts[i];
  }
  if (!are_experts_apart) placement.experts.clear();
  placement.embedding = devices_[at.embedding].device;
  placement.output = devices_[at.output].device;
  placement.context = context;
  placement.kv_type = kv_type;
  std::vector<SpeedPart> parts;
  const std::vector<MemoryNeed> need = needs(context, kv_type);
  const std::vector<DeviceShare> all = shares(at, need);
  std::vector<std::string> words;
  for (size_t d = 0; d < all.size(); ++d) {
    if (all[d].bytes() == 0) continue;
    fit.shares.push_back(all[d]);
    uint64_t experts = 0;
    for (size_t i = 0; i < layers(); ++i)
      if (at.experts[i] == d) experts += need[d].layers[i].expert_bytes;
    // A token looks up one row of the embedding and reads the whole output matrix.
    const bool is_table_read = need[d].is_output_tied && at.output == d && at.embedding == d;
    const uint64_t unread =
        at.embedding == d && !is_table_read ? need[d].embedding_bytes : uint64_t{0};
    parts.push_back({&devices_[d], all[d].weight_bytes - experts - unread, experts});
    if (all[d].layers > 0)
      words.push_back(
          fmt::format("{} of {} layers on {}", all[d].layers, layers(), all[d].device.id()));
    else if (all[d].expert_layers > 0)
      words.push_back(
          fmt::format("experts of {} layers on {}", all[d].expert_layers, all[d].device.id()));
  }
  fit.why =
      fmt::format("{}; a context of {} in {}", fmt::join(words, ", "), context, kv_type.name());
  fit.largest_context = largest_context(at, context, kv_type);
  const ExpectedSpeed speed = expected_speed(parts, sizes_);
  fit.tokens_per_second = speed.tokens_per_second;
  fit.prompt_tokens_per_second = speed.prompt_tokens_per_second;
  return fit;
}

Fit Fitter::run() {
  const ElementType kv_type = options_.kv_type.value_or(DType::f16);
  const int64_t least =
      std::min(sizes_.context, options_.min_context > 0 ? options_.min_context : kLeastContext);
  if (options_.context) {
    const auto [at, fits] = arrange(*options_.context, kv_type);
    if (!fits) fail(*options_.context, kv_type);
    return result(at, *options_.context, kv_type);
  }
  // Prefer a shorter context to layers on the CPU, but not below the minimum.
  const int64_t wanted = std::max(least, std::min(sizes_.context, kDefaultContext));
  std::optional<std::pair<Arrangement, int64_t>> best;
  for (int64_t context = wanted;; context = std::max(least, context / 2)) {
    const auto [at, fits] = arrange(context, kv_type);
    if (fits && (!best || layers_on_cpu(at) < layers_on_cpu(best->first))) best = {at, context};
    if (best && layers_on_cpu(best->first) == 0) break;
    if (context == least) break;
  }
  if (!best) fail(least, kv_type);
  return result(best->first, best->second, kv_type);
}

}  // namespace

Fit fit_model(const GgufFile& file, const std::vector<FitDevice>& devices,
              const FitOptions& options) {
  if (options.gpu_layers && *options.gpu_layers < 0)
    throw Error(ErrorCode::kInvalidArgument, "fit: --gpu-layers must be 0 or more");
  if (options.context && *options.context < 1)
    throw Error(ErrorCode::kInvalidArgument, "fit: --context must be 1 or more");
  return Fitter(file, devices, options).run();
}

Fit fit_model(const GgufFile& file, const FitOptions& options) {
  // If the model fits on the fastest device, the others need not be examined.
  if (!options.gpu_layers && !options.cpu_experts) {
    FitOptions alone = options;
    if (!alone.context) alone.min_context = std::max(alone.min_context, kDefaultContext);
    try {
      return fit_model(file, fit_devices(options, true), alone);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kOutOfMemory) throw;
    }
  }
  return fit_model(file, fit_devices(options), options);
}

}  // namespace prism::llm
