// `prism bench MODEL`: measures prompt and decode speed of a model on each device and compares it
// with the device's limits.
#include <algorithm>
#include <ctime>
#include <iostream>
#include <optional>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/json.h"
#include "base/system/output_file.h"
#include "cli/bench_chart.h"
#include "cli/bench_text.h"
#include "cli/choices.h"
#include "cli/commands.h"
#include "cli/model_arguments.h"
#include "cli/terminal.h"
#include "cli/texts_chart.h"
#include "llm/fit/expected_speed.h"
#include "llm/generate/speed.h"
#include "llm/generate/texts_speed.h"

namespace prism::cli {
namespace {

struct Options {
  ModelArguments model;
  std::vector<std::string> devices;
  std::vector<int64_t> prompts = {512}, depths = {0};
  std::vector<std::string> texts;  // as given; if any, only texts are timed
  int64_t tokens = 64;
  int repeats = 3;
  std::string svg;
  bool json = false, no_cpu = false;
};

struct Row {
  std::string device, device_name, task;  // task: "prompt 512", "decode 64 at 0", "16 texts"
  double rate = 0, limit = 0;             // tokens per second
  BenchLimit limited_by = BenchLimit::bandwidth;
  double over_cpu = 0;  // 0: unknown
  bool is_decode = false, is_cpu = false;
  int64_t texts = 0;  // at once; 0: another task
};

std::vector<std::string> chosen_devices(const Options& o) {
  std::vector<std::string> names;
  const auto add = [&](const Device& device) {
    if (std::ranges::find(names, device.id()) == names.end()) names.push_back(device.id());
  };
  for (const std::string& each : o.devices)
    for (const Device& device : devices_named(each)) add(device);
  if (o.devices.empty()) add(Device::named("auto"));
  if (!o.no_cpu) add(Device::cpu());
  return names;
}

// Measures the native kernels on the CPU, because its calibration describes the interpreter.
DevicePeaks peaks_of(const Device& device) {
  if (device.backend() != "cpu") return measured_peaks(device, progress);
  const llm::HostSpeed speed = llm::measure_host_speed(device);
  return {speed.bandwidth, speed.f16_rate, speed.f16_rate, speed.quantised_rate};
}

// Returns the product rate that limits a prompt, and the kind of product.
std::pair<double, BenchLimit> product_limit(const DevicePeaks& peaks, const llm::TokenCost& cost) {
  const bool is_quantised =
      cost.weight_bytes <
      1.5 * cost.operations / 2;  // each weight costs one multiplication and one addition
  if (is_quantised && peaks.quantised_rate > 0)
    return {peaks.quantised_rate, BenchLimit::quantised};
  if (peaks.f16_rate > peaks.f32_rate) return {peaks.f16_rate, BenchLimit::f16};
  return {peaks.f32_rate, BenchLimit::f32};
}

void time_device(const Options& o, const std::string& device, int64_t context,
                 const std::vector<int64_t>& texts, std::vector<Row>& rows) {
  ModelArguments arguments = o.model;
  arguments.choice.device = device;
  arguments.choice.context = context;
  llm::LanguageModel model =
      open_model(arguments, texts.empty() ? 1 : *std::ranges::max_element(texts));
  const DevicePeaks peaks = peaks_of(model.device());
  const llm::TokenCost cost =
      llm::token_cost(model.file(), model.config(), model.model().placement().kv_type);
  const std::pair<double, BenchLimit> products = product_limit(peaks, cost);
  const auto row = [&](const std::string& task, double tokens_a_second, double limit, BenchLimit by,
                       bool decode) {
    rows.push_back({device, model.device().name(), task, tokens_a_second, limit, by, 0, decode,
                    model.device().backend() == "cpu"});
  };
  const double by_products = products.first / cost.operations;
  for (const int64_t count : texts) {
    progress(fmt::format("{} texts on {}", count, device));
    const double seconds =
        llm::texts_seconds(model.model(), model.tokenizer(), count, o.tokens, o.repeats);
    const double together = static_cast<double>(count);
    const double before =
        static_cast<double>(llm::kTextsPrompt) + static_cast<double>(o.tokens) / 2;
    // The weights are read once for all texts, the cache once for each.
    const double by_memory = together * peaks.bandwidth /
                             (cost.weight_bytes + together * before * cost.cache_bytes_a_token);
    row(fmt::format("{} text{}", count, count == 1 ? "" : "s"),
        together * static_cast<double>(o.tokens) / seconds, std::min(by_products, by_memory),
        by_products < by_memory ? products.second : BenchLimit::bandwidth, false);
    rows.back().texts = count;
  }
  if (!texts.empty()) return end_progress();
  for (const int64_t prompt : o.prompts) {
    progress(fmt::format("prompt of {} on {}", prompt, device));
    const double seconds = llm::prompt_seconds(model.model(), prompt, o.repeats);
    const double count = static_cast<double>(prompt);
    // The weights are read once per batch. The limit is the slower of products and memory.
    const double by_memory =
        peaks.bandwidth / cost.weight_bytes * std::min(count, double(model.model().batch_rows()));
    row(fmt::format("prompt {}", prompt), count / seconds, std::min(by_products, by_memory),
        by_products < by_memory ? products.second : BenchLimit::bandwidth, false);
  }
  for (const int64_t depth : o.depths) {
    progress(fmt::format("decoding at depth {} on {}", depth, device));
    const double seconds = llm::decode_seconds(model.model(), depth, o.tokens, o.repeats);
    const double before = static_cast<double>(depth) + static_cast<double>(o.tokens) / 2;
    row(fmt::format("decode {} at {}", o.tokens, depth), static_cast<double>(o.tokens) / seconds,
        peaks.bandwidth / (cost.weight_bytes + before * cost.cache_bytes_a_token),
        BenchLimit::bandwidth, true);
  }
  end_progress();
}

// The first number of texts whose total is below that of fewer texts by more than noise, or 0.
int64_t falls_at(const std::vector<Row>& rows) {
  constexpr double kNoise = 0.01;
  for (size_t i = 1; i < rows.size(); ++i)
    if (rows[i].device == rows[i - 1].device && rows[i].texts > rows[i - 1].texts &&
        rows[i].rate < (1 - kNoise) * rows[i - 1].rate)
      return rows[i].texts;
  return 0;
}

std::string texts_advice(const std::vector<Row>& rows) {
  const auto best = std::ranges::max_element(rows, {}, &Row::rate);
  const int64_t falls = falls_at(rows);
  return fmt::format("advice: {} texts at once on --device {} write most{}", best->texts,
                     best->device, falls ? fmt::format("; the total falls at {}", falls) : "");
}

// One line for a person who has this machine and this model.
std::string advice(const std::vector<Row>& rows) {
  if (!rows.empty() && rows.front().texts > 0) return texts_advice(rows);
  const Row* best = nullptr;
  for (const Row& each : rows)
    if (each.is_decode && (!best || each.rate > best->rate)) best = &each;
  if (!best) return "";
  if (best->is_cpu && !rows.front().is_cpu)
    return "advice: the CPU writes fastest here; use --device cpu for this model";
  if (best->is_cpu) return cpu_decode_advice(best->rate / best->limit);
  if (best->over_cpu > 0)
    return fmt::format(
        "advice: --device {} writes {:.1f}x as fast as the CPU, at {:.0f}% of what "
        "its memory allows",
        best->device, best->over_cpu, 100 * best->rate / best->limit);
  return fmt::format("advice: --device {} writes fastest, at {:.0f}% of what its memory allows",
                     best->device, 100 * best->rate / best->limit);
}

void print_text(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> lines;
  for (const Row& each : rows)
    lines.push_back({each.device, each.task, fmt::format("{:.1f}", each.rate),
                     token_share_text(each.rate, each.limit, each.limited_by),
                     each.over_cpu > 0 ? fmt::format("{:.2f}x", each.over_cpu) : "-"});
  std::cout << table({"device", "task", "tokens/s", "of the limit", "over the CPU"}, lines)
            << advice(rows) << "\n";
}

void print_json(const std::string& model, const std::vector<Row>& rows) {
  Json results = Json::array();
  for (const Row& each : rows)
    results.push_back({{"device", each.device},
                       {"device_name", each.device_name},
                       {"task", each.task},
                       {"texts", each.texts > 0 ? Json(each.texts) : Json(nullptr)},
                       {"tokens_per_second", each.rate},
                       {"limit_tokens_per_second", each.limit},
                       {"limited_by", limit_name(each.limited_by)},
                       {"over_cpu", each.over_cpu > 0 ? Json(each.over_cpu) : Json(nullptr)}});
  std::cout << Json{{"model", model}, {"results", results}, {"advice", advice(rows)}}.dump(2)
            << "\n";
}

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::localtime(std::time(nullptr))); }

std::string rows_chart(const std::string& name, const std::vector<Row>& rows) {
  std::vector<ChartBar> bars;
  for (const Row& each : rows)
    bars.push_back({each.device, each.task, fmt::format("{:.1f} tokens/s", each.rate),
                    each.rate / each.limit, each.limited_by, false});
  return bar_chart(
      {name, today() + "; tokens a second beside what each device's measured memory and "
                       "products allow"},
      bars);
}

std::string curves_chart(const std::string& name, const std::vector<Row>& rows) {
  std::vector<TextsCurve> curves;
  for (const Row& each : rows) {
    if (curves.empty() || curves.back().device != each.device) curves.push_back({each.device, {}});
    curves.back().points.emplace_back(each.texts, each.rate);
  }
  return texts_chart({name, today() + "; tokens a second of all texts together"}, curves);
}

int bench_model(const Options& o) {
  const std::vector<int64_t> texts = text_counts(o.texts);
  int64_t context = llm::kTextsPrompt + o.tokens + 8;
  if (texts.empty()) {
    for (const int64_t each : o.prompts) context = std::max(context, each);
    for (const int64_t each : o.depths) context = std::max(context, each + o.tokens + 8);
  }
  std::vector<Row> rows;
  for (const std::string& device : chosen_devices(o)) time_device(o, device, context, texts, rows);
  for (Row& row : rows)
    for (const Row& other : rows)
      if (!row.is_cpu && other.is_cpu && other.task == row.task)
        row.over_cpu = row.rate / other.rate;
  const std::string name =
      o.model.choice.model.empty() ? "the default model" : o.model.choice.model;
  if (o.json)
    print_json(name, rows);
  else
    print_text(rows);
  if (o.svg.empty()) return kRight;
  write_whole_file(o.svg, texts.empty() ? rows_chart(name, rows) : curves_chart(name, rows));
  return kRight;
}

}  // namespace

void add_bench_model_command(const Command& bench) {
  auto options = std::make_shared<Options>();
  Options& o = *options;
  bench.option("-m,--model,model", o.model.choice.model,
               "the model to time: a GGUF file or a name (default: SmolLM2-135M-Instruct)");
  bench
      .option("-d,--device,--backend", o.devices,
              "devices to time, beside the CPU; all: every one (default: what auto chooses)")
      .separated_by(',');
  bench.option("--prompt-tokens", o.prompts, "tokens of the prompts")
      .separated_by(',')
      .positive()
      .shows_default();
  bench.option("--depth", o.depths, "tokens that stand before, when decoding")
      .separated_by(',')
      .not_negative()
      .shows_default();
  bench
      .option("--texts", o.texts,
              "time so many texts at once instead, through the scheduler: 1,2,4 or 1,2,4,...,64")
      .separated_by(',');
  bench.option("-n,--tokens", o.tokens, "tokens to decode").positive().shows_default();
  bench.option("-r,--repeats", o.repeats, "the best of so many counts").positive().shows_default();
  bench.option("--kv-type", o.model.choice.kv_type,
               "of keys and values: f32, f16, q8_0 (default: f16)");
  bench.option("--batch", o.model.batch, "tokens of a prompt that are worked on at once")
      .positive()
      .shows_default();
  bench.option("-t,--threads", o.model.choice.threads, "of the CPU (default: all cores)")
      .positive();
  bench.flag("--no-cpu", o.no_cpu, "leave the CPU out");
  bench.option("--svg", o.svg, "write a chart to this file");
  bench.flag("--json", o.json, "print JSON");
  bench.footer(
      "Limits: decoding reads every weight once a token, so the memory's bandwidth bounds it; a "
      "prompt is bounded by the rate of products. Several texts share the reading of the "
      "weights.\nExamples:\n  prism bench model.gguf\n  prism "
      "bench model.gguf --device cuda:0,vulkan:0 --prompt-tokens 512,2048 --depth 0,4096 --svg "
      "model.svg\n  "
      "prism bench model.gguf --texts 1,2,4,...,64 --no-cpu --svg texts.svg\n  "
      "prism "
      "bench ops --device cpu");
  bench.run([options] { return bench_model(*options); });
}

}  // namespace prism::cli
