// Implements decode loops: plans that advance their own device data.
#include "llm/model/decode.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>

#include <fmt/format.h>

#include "llm/model/decode_ops.h"
#include "llm/model/model_state.h"
#include "ops/rows/finite_argmax.h"
#include "prism/error.h"
#include "prism/ops/sort.h"
#include "runtime/fallback.h"
#include "tensor/storage.h"

namespace prism::llm {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

// The number of candidates to sort for these settings: 0 if all are greedy, otherwise the smallest
// bucket that holds every top_k.
int64_t candidates_for(std::span<const Sampling> sampling, int64_t vocabulary) {
  int64_t most = 0;
  for (const Sampling& each : sampling) {
    if (each.temperature <= 0) continue;
    most = std::max<int64_t>(most, each.top_k > 0 ? each.top_k : vocabulary);
  }
  for (const int64_t size : {0, 64, 256, 1024})
    if (most <= size) return std::min(size, vocabulary);
  return vocabulary;
}

void put_sampling(const Sampling& sampling, int32_t* words) {
  words[0] = std::bit_cast<int32_t>(sampling.temperature);
  words[1] = std::max(sampling.top_k, 0);
  words[2] = std::bit_cast<int32_t>(sampling.top_p);
  words[3] = std::bit_cast<int32_t>(sampling.min_p);
  words[4] = static_cast<int32_t>(static_cast<uint32_t>(sampling.seed));
  words[5] = static_cast<int32_t>(static_cast<uint32_t>(sampling.seed >> 32));
}

Tensor chosen(const Tensor& logits, int64_t candidates, const Tensor& sampling,
              const Tensor& positions) {
  if (candidates == 0) return finite_argmax(logits);
  const Ordered best = top_k(logits, candidates);
  return choose_tokens(best.values, best.indices, sampling, positions);
}

}  // namespace

std::vector<int32_t> sample(const Tensor& logits, std::span<const Sampling> sampling,
                            std::span<const int32_t> positions) {
  const auto rows = static_cast<size_t>(logits.size(0));
  if (sampling.size() != rows || positions.size() != rows)
    fail(fmt::format("sample: {} rows of logits, {} settings and {} positions; they must be equal",
                     rows, sampling.size(), positions.size()));
  std::vector<int32_t> words(rows * kSamplingWords);
  for (size_t i = 0; i < rows; ++i) put_sampling(sampling[i], &words[i * kSamplingWords]);
  const int64_t candidates = candidates_for(sampling, logits.size(1));
  return chosen(logits, candidates,
                from_vector(words, {logits.size(0), kSamplingWords}, logits.device()),
                from_vector(std::vector<int32_t>(positions.begin(), positions.end()),
                            {logits.size(0)}, logits.device()))
      .to_vector<int32_t>();
}

struct DecodeLoop::State {
  // The plan for one number of rows and candidates. Its logits are an output if a host needs them.
  struct Key {
    int64_t rows = 1, candidates = 0;
    bool keeps_logits = false;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    Entry(const BatchShape& shape, const KvCache& cache) : plan(shape, cache) {}
    BatchPlan plan;
    AdvancePlaces places;
    int64_t sampling = 0, words = 0;
  };

  Model::State& model;
  std::map<Key, Entry> entries;
  Entry* now = nullptr;
  std::vector<int32_t> slots;
  std::vector<int64_t> positions;  // of the first step
  std::vector<bool> wants_token;   // of each sequence on_host: a step has run since set_token()
  std::vector<bool> on_host;
  int64_t queued = 0;
  int64_t context_left = 0, blocks_left = 0;  // steps until one of them ends
  std::deque<Event> done;  // completion of the last steps, on asynchronous devices
  std::unique_ptr<Queue> reader;

  explicit State(Model::State& of) : model(of) {}
  // Reserves blocks for the next steps: one block's worth, or as many as there are.
  void reserve_ahead();
  Entry& entry(const Key& key);
  const DeviceBatch& output_batch() const {
    return *std::ranges::find(now->plan.batches, model.options.placement.output,
                              &DeviceBatch::device);
  }
};

DecodeLoop::State::Entry& DecodeLoop::State::entry(const Key& key) {
  const int64_t rows = key.rows;
  if (const auto known = entries.find(key); known != entries.end()) return known->second;
  Entry made(BatchShape{rows, rows, rows, true}, model.cache);
  const BatchLayout& layout = made.plan.layout;
  constexpr int64_t kStep = kRangeAlignment / sizeof(int32_t);
  const auto aligned = [](int64_t words) { return (words + kStep - 1) / kStep * kStep; };
  made.sampling = layout.words();
  AdvancePlaces& places = made.places;
  places.rows = rows;
  places.tokens = layout.tokens_at();
  places.positions = layout.positions_at();
  places.spans = layout.spans_at();
  for (size_t group = 0; group < model.cache.groups(); ++group) {
    places.places.push_back(layout.places_at(group));
    places.tables.push_back(layout.table_at(group));
  }
  places.table_entries = layout.table_entries();
  places.block = model.cache.block();
  places.step = aligned(made.sampling + rows * kSamplingWords);
  places.history = places.step + kStep;
  places.history_steps = kHistory;
  made.words = places.history + kHistory * rows;
  made.plan.batches = model.make_batches(made.words);

  Blocks blocks(model.config, model.weights, model.cache, model.ropes, layout, made.plan.batches);
  const Device& output = model.options.placement.output;
  const Tensor x = model.through_layers(blocks).to(output);
  const Tensor logits = model.architecture->logits(blocks, model.architecture->hidden(blocks, x));
  const Tensor& words = std::ranges::find(made.plan.batches, output, &DeviceBatch::device)->words;
  const Tensor sampling = words.slice(0, made.sampling, made.sampling + rows * kSamplingWords)
                              .reshape({rows, kSamplingWords});
  const Tensor tokens = chosen(logits, key.candidates, sampling, layout.positions(words));
  std::vector<Tensor> outputs;
  for (const DeviceBatch& each : made.plan.batches)
    outputs.push_back(advance(each.words, tokens.to(each.device), places));
  if (key.keeps_logits) outputs.push_back(logits);
  PlanOptions options;
  options.arenas = model.arenas;
  made.plan.plan = std::make_unique<Plan>(outputs, std::span<const Tensor>(), options);
  return entries.emplace(key, std::move(made)).first->second;
}

void DecodeLoop::State::reserve_ahead() {
  KvCache& cache = model.cache;
  int64_t least = context_left;
  for (size_t i = 0; i < slots.size(); ++i) {
    const int64_t first = positions[i] + queued;
    int64_t room = blocks_left;
    for (const int64_t ahead : {cache.block() + 1, int64_t{2}}) {
      const int64_t end = std::min(first + ahead, cache.positions());
      if (!cache.reserve(slots[i], first, end)) continue;
      room = end - first;
      break;
    }
    least = std::min(least, room);
  }
  blocks_left = least;
}

DecodeLoop::DecodeLoop(Model& model) : state_(std::make_unique<State>(model.state())) {}
DecodeLoop::~DecodeLoop() {
  if (!state_ || state_->done.empty()) return;
  // Steps that nobody read may still run, with the plans and events that are released next.
  try {
    state_->done.back().wait();
  } catch (const std::exception&) {  // a destructor cannot report it
  }
}
DecodeLoop::DecodeLoop(DecodeLoop&&) noexcept = default;

void DecodeLoop::start(std::span<const Sequence> sequences) {
  State& s = *state_;
  if (sequences.empty()) fail("decode: start() got no sequences; give it at least one");
  std::vector<SequencePart> parts;
  std::vector<Sampling> sampling;
  s.context_left = s.model.cache.positions();
  s.slots.clear();
  s.positions.clear();
  s.on_host.clear();
  for (const Sequence& each : sequences) {
    s.on_host.push_back(each.on_host);
    parts.push_back({each.slot, each.position, std::span(&each.token, 1), Wanted::last});
    sampling.push_back(each.on_host ? Sampling() : each.sampling);
    s.slots.push_back(each.slot);
    s.positions.push_back(each.position);
    s.context_left = std::min<int64_t>(s.context_left, s.model.cache.positions() - each.position);
  }
  s.queued = 0;
  s.model.check(parts);
  s.model.check_devices();
  const FallbackHeld held;  // the model moves as a whole, so single tensors must not
  s.model.reserve(parts);
  s.blocks_left = 1;
  s.reserve_ahead();
  State::Entry& entry = s.entry({.rows = s.model.shape_for(parts).rows,
                                 .candidates = candidates_for(sampling, s.model.config.vocabulary),
                                 .keeps_logits = std::ranges::count(s.on_host, true) > 0});
  std::vector<int32_t> words = entry.plan.layout.pack(parts, s.model.cache);
  words.resize(static_cast<size_t>(entry.words));
  for (size_t i = 0; i < sampling.size(); ++i)
    put_sampling(sampling[i], &words[static_cast<size_t>(entry.sampling) + i * kSamplingWords]);
  entry.plan.write(words);
  s.now = &entry;
  s.wants_token.assign(s.slots.size(), false);
  s.done.clear();
}

int64_t DecodeLoop::queue_step() {
  State& s = *state_;
  if (!s.now) fail("decode: queue_step() before start(); call start() first");
  if (s.context_left <= 0)
    fail(fmt::format(
        "decode: the context of {} tokens is full; load the model with a longer context, "
        "or drop the first part of the text",
        s.model.cache.positions()));
  if (std::ranges::count(s.wants_token, true) > 0)
    fail("decode: queue_step() before set_token() for a sequence whose tokens the caller chooses");
  if (steps_left() == 0)
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("decode: the KV cache has no free block for the next position of {} "
                            "texts; finish other texts, or load the model with a larger cache",
                            s.slots.size()));
  for (size_t i = 0; i < s.slots.size(); ++i)
    s.model.cache.states().advance(s.slots[i], s.positions[i] + s.queued + 1);
  s.now->plan.plan->run();
  s.wants_token = s.on_host;
  const Device& output = s.model.options.placement.output;
  if (!output.info().is_cpu) {
    s.done.push_back(watching(output, [&] { return output.queue().record_event(); }));
    if (static_cast<int64_t>(s.done.size()) > kHistory) s.done.pop_front();
  }
  --s.context_left;
  --s.blocks_left;
  return s.queued++;
}

int64_t DecodeLoop::queued() const { return state_->queued; }

int64_t DecodeLoop::steps_left() {
  State& s = *state_;
  // Each step finds the cache row of the next one, so the block of the next must be there before
  // the last step that has one is queued.
  if (s.blocks_left == 1 && s.context_left > 1) {
    s.reserve_ahead();
    const BatchLayout& layout = s.now->plan.layout;
    if (s.blocks_left > 1) {
      const int32_t any = 0;
      std::vector<SequencePart> parts;
      for (const int32_t slot : s.slots) parts.push_back({slot, 0, std::span(&any, 1)});
      s.now->plan.write(layout.pack_tables(parts, s.model.cache), layout.tables_at());
    }
  }
  return s.blocks_left;
}

std::vector<int32_t> DecodeLoop::read(int64_t step) {
  State& s = *state_;
  if (step < 0 || step >= s.queued || step + kHistory < s.queued)
    fail(fmt::format("decode: step {} was requested, {} are queued and the last {} can be read",
                     step, s.queued, kHistory));
  std::vector<int32_t> tokens(s.slots.size());
  const AdvancePlaces& places = s.now->places;
  const auto offset =
      static_cast<uint64_t>(places.history + step % kHistory * places.rows) * sizeof(int32_t);
  const Storage& storage = *s.output_batch().words.node()->storage[0];
  const auto bytes = std::as_writable_bytes(std::span(tokens));
  if (storage.is_host()) {
    read_storage(storage, offset, bytes);
    return tokens;
  }
  // Uses a separate queue so that the read does not wait for later steps.
  watching(storage.device, [&] {
    s.done[s.done.size() - static_cast<size_t>(s.queued - step)].wait();
    if (!s.reader) s.reader = std::make_unique<Queue>(storage.device.make_queue());
    s.reader->read(storage.buffer, bytes, offset);
  });
  return tokens;
}

std::vector<float> DecodeLoop::logits(size_t i) {
  State& s = *state_;
  if (i >= s.slots.size() || !s.on_host[i] || s.queued == 0)
    fail(
        fmt::format("decode: logits of sequence {} were requested, which is not on_host or has "
                    "made no step",
                    i));
  std::vector<float> row(static_cast<size_t>(s.model.config.vocabulary));
  const Storage& storage = *s.now->plan.plan->output(s.now->plan.batches.size());
  const auto bytes = std::as_writable_bytes(std::span(row));
  read_storage(storage, i * bytes.size(), bytes);
  return row;
}

void DecodeLoop::set_token(size_t i, int32_t token) {
  State& s = *state_;
  if (i >= s.slots.size() || token < 0 || token >= s.model.config.vocabulary)
    fail(fmt::format("decode: token {} for sequence {} of {}; the vocabulary has {}", token, i,
                     s.slots.size(), s.model.config.vocabulary));
  const uint64_t offset =
      (static_cast<uint64_t>(s.now->plan.layout.tokens_at()) + i) * sizeof(int32_t);
  for (const DeviceBatch& each : s.now->plan.batches)
    write_storage(*each.words.node()->storage[0], offset, std::as_bytes(std::span(&token, 1)));
  s.wants_token[i] = false;
}

}  // namespace prism::llm
