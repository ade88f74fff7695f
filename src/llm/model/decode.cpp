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

// The host chooses for a sequence on_host, whatever the device does.
Sampling device_sampling(const DecodeLoop::Sequence& sequence) {
  return sequence.on_host ? Sampling() : sequence.sampling;
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
  Key now_key;
  // Each position is that at step 0; for a later replacement, counted back from its first step.
  std::vector<Sequence> sequences;
  std::vector<bool> wants_token;  // of each sequence on_host: a step has run since set_token()
  int64_t queued = 0;
  int64_t context_left = 0, blocks_left = 0;  // steps until one of them ends
  std::deque<Event> done;  // completion of the last steps, on asynchronous devices
  std::unique_ptr<Queue> reader;

  explicit State(Model::State& of) : model(of) {}
  int64_t next_position(const Sequence& sequence) const { return sequence.position + queued; }
  // What the next step computes; only the tokens that start() or replace() got are known.
  std::vector<SequencePart> next_parts(std::span<const Sequence> of) const;
  Key key_for(std::span<const Sequence> of) const;
  // The words of the next step, up to the end of the sampling settings.
  std::vector<int32_t> pack(std::span<const SequencePart> parts) const;
  // Reserves blocks for the next steps: one block's worth, or as many as there are. Each sequence
  // has a block for its next position already.
  void reserve_first();
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
  ++model.plans_made;
  return entries.emplace(key, std::move(made)).first->second;
}

std::vector<SequencePart> DecodeLoop::State::next_parts(std::span<const Sequence> of) const {
  std::vector<SequencePart> parts;
  for (const Sequence& each : of)
    parts.push_back({each.slot, static_cast<int32_t>(next_position(each)),
                     std::span(&each.token, 1), Wanted::last});
  return parts;
}

DecodeLoop::State::Key DecodeLoop::State::key_for(std::span<const Sequence> of) const {
  std::vector<Sampling> sampling;
  for (const Sequence& each : of) sampling.push_back(device_sampling(each));
  return {.rows = model.shape_for(next_parts(of)).rows,
          .candidates = candidates_for(sampling, model.config.vocabulary),
          .keeps_logits = std::ranges::any_of(of, &Sequence::on_host)};
}

std::vector<int32_t> DecodeLoop::State::pack(std::span<const SequencePart> parts) const {
  std::vector<int32_t> words = now->plan.layout.pack(parts, model.cache);
  words.resize(static_cast<size_t>(now->sampling + now_key.rows * kSamplingWords));
  for (size_t i = 0; i < sequences.size(); ++i)
    put_sampling(device_sampling(sequences[i]),
                 &words[static_cast<size_t>(now->sampling) + i * kSamplingWords]);
  return words;
}

void DecodeLoop::State::reserve_first() {
  context_left = model.cache.positions();
  for (const Sequence& each : sequences)
    context_left = std::min(context_left, model.cache.positions() - next_position(each));
  blocks_left = 1;
  reserve_ahead();
}

void DecodeLoop::State::reserve_ahead() {
  KvCache& cache = model.cache;
  int64_t least = context_left;
  for (const Sequence& each : sequences) {
    const int64_t first = next_position(each);
    int64_t room = blocks_left;
    for (const int64_t ahead : {cache.block() + 1, int64_t{2}}) {
      const int64_t end = std::min(first + ahead, cache.positions());
      if (!cache.reserve(each.slot, first, end)) continue;
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
  s.sequences.assign(sequences.begin(), sequences.end());
  s.queued = 0;
  const std::vector<SequencePart> parts = s.next_parts(s.sequences);
  s.model.check(parts);
  s.model.check_devices();
  const FallbackHeld held;  // the model moves as a whole, so single tensors must not
  s.model.reserve(parts);
  s.reserve_first();
  s.now_key = s.key_for(s.sequences);
  s.now = &s.entry(s.now_key);
  std::vector<int32_t> words = s.pack(parts);
  words.resize(static_cast<size_t>(s.now->words));
  s.now->plan.write(words);
  s.wants_token.assign(s.sequences.size(), false);
  s.done.clear();
}

bool DecodeLoop::replace(std::span<const Replacement> changes) {
  State& s = *state_;
  if (!s.now) fail("decode: replace() before start(); call start() first");
  std::vector<Sequence> after = s.sequences;
  for (const Replacement& each : changes) {
    if (each.row >= after.size())
      fail(fmt::format("decode: replace() of row {}; there are {}", each.row, after.size()));
    after[each.row] = each.sequence;
    after[each.row].position -= static_cast<int32_t>(s.queued);
  }
  const State::Key key = s.key_for(after);
  if (key.keeps_logits || s.now_key.keeps_logits || key.candidates > s.now_key.candidates)
    return false;
  if (steps_left() == 0) return false;  // a sequence that stays may have filled the context
  s.model.check(s.next_parts(after));
  for (const Replacement& each : changes) {
    const int64_t position = each.sequence.position;
    if (!s.model.cache.reserve(each.sequence.slot, position, position + 1)) return false;
  }
  s.sequences = std::move(after);
  s.reserve_first();
  const std::vector<int32_t> words = s.pack(s.next_parts(s.sequences));
  const auto write = [&](int64_t first, int64_t end) {
    s.now->plan.write(
        std::span(words).subspan(static_cast<size_t>(first), static_cast<size_t>(end - first)),
        first);
  };
  // The tokens of the other rows stay: only the device knows them. All words behind the tokens are
  // written as they will be after the steps that are queued already.
  const BatchLayout& layout = s.now->plan.layout;
  // Each write costs some microseconds between two steps, so adjacent rows share one.
  std::vector<size_t> rows;
  for (const Replacement& each : changes) rows.push_back(each.row);
  std::ranges::sort(rows);
  for (size_t i = 0, end = 0; i < rows.size(); i = end) {
    end = i + 1;
    while (end < rows.size() && rows[end] == rows[i] + (end - i)) ++end;
    const int64_t first = layout.tokens_at() + static_cast<int64_t>(rows[i]);
    write(first, first + static_cast<int64_t>(end - i));
  }
  write(layout.positions_at(), std::ssize(words));
  return true;
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
                            s.sequences.size()));
  for (const Sequence& each : s.sequences)
    s.model.cache.states().advance(each.slot, s.next_position(each) + 1);
  s.now->plan.plan->run();
  for (size_t i = 0; i < s.sequences.size(); ++i) s.wants_token[i] = s.sequences[i].on_host;
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
    if (s.blocks_left > 1)
      s.now->plan.write(layout.pack_tables(s.next_parts(s.sequences), s.model.cache),
                        layout.tables_at());
  }
  return s.blocks_left;
}

std::vector<int32_t> DecodeLoop::read(int64_t step) {
  State& s = *state_;
  if (step < 0 || step >= s.queued || step + kHistory < s.queued)
    fail(fmt::format("decode: step {} was requested, {} are queued and the last {} can be read",
                     step, s.queued, kHistory));
  std::vector<int32_t> tokens(s.sequences.size());
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
  if (i >= s.sequences.size() || !s.sequences[i].on_host || s.queued == 0)
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
  if (i >= s.sequences.size() || token < 0 || token >= s.model.config.vocabulary)
    fail(fmt::format("decode: token {} for sequence {} of {}; the vocabulary has {}", token, i,
                     s.sequences.size(), s.model.config.vocabulary));
  const uint64_t offset =
      (static_cast<uint64_t>(s.now->plan.layout.tokens_at()) + i) * sizeof(int32_t);
  for (const DeviceBatch& each : s.now->plan.batches)
    write_storage(*each.words.node()->storage[0], offset, std::as_bytes(std::span(&token, 1)));
  s.wants_token[i] = false;
}

}  // namespace prism::llm
