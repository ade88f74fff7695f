// Implements drafting: the draft model's cache follows each text, and its decode loop runs ahead.
#include "llm/generate/draft_model_proposer.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/printable.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

// Tokens of prompts that a call computes at most, so that a long one does not hold back all texts.
constexpr int64_t kMostCatchUp = 128;

int64_t shared_tokens(const Tokenizer& a, const Tokenizer& b) {
  return static_cast<int64_t>(std::min(a.size(), b.size()));
}

}  // namespace

void check_same_vocabulary(const Tokenizer& model, const Tokenizer& draft) {
  for (int32_t id = 0; id < shared_tokens(model, draft); ++id) {
    if (model.text(id) == draft.text(id)) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("speculate: token {} is \"{}\" in the draft model and \"{}\" in the "
                            "model (vocabularies of {} and {}); use a draft model of the same "
                            "family, or --speculate ngram",
                            id, printable(draft.text(id)), printable(model.text(id)), draft.size(),
                            model.size()));
  }
}

// Before the weights are loaded.
static GgufFile checked(GgufFile file, const Tokenizer& model) {
  check_same_vocabulary(model, Tokenizer::from(file));
  return file;
}

DraftModelProposer::DraftModelProposer(GgufFile file, const LoadOptions& options,
                                       const Tokenizer& model)
    : file_(checked(std::move(file), model)), placed_(file_, options, std::nullopt) {
  if (placed_.model().config().has_decoder())
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format("speculate: the draft model ({}) has an encoder, and tokens are proposed "
                    "by decoders alone; use another draft model, or --speculate ngram",
                    placed_.model().config().architecture));
  if (placed_.model().config().has_states())
    throw Error(ErrorCode::kNotSupported,
                fmt::format("speculate: the recurrent layers of the draft model ({}) cannot take "
                            "back rejected tokens; use another draft model, or --speculate ngram",
                            placed_.model().config().architecture));
  vocabulary_ =
      std::min<int64_t>(placed_.model().config().vocabulary, static_cast<int64_t>(model.size()));
  is_free_slot_.assign(static_cast<size_t>(placed_.model().slots()), true);
}

DraftModelProposer::Text* DraftModelProposer::find_or_place(int64_t text) {
  if (const auto found = texts_.find(text); found != texts_.end()) return &found->second;
  const auto free = std::ranges::find(is_free_slot_, true);
  if (free == is_free_slot_.end()) return nullptr;
  *free = false;
  const auto slot = static_cast<int32_t>(free - is_free_slot_.begin());
  return &texts_.emplace(text, Text{slot, {}}).first->second;
}

DraftModelProposer::Text* DraftModelProposer::caught_up(const ProposalRequest& request,
                                                        int64_t& left) {
  Model& model = placed_.model();
  const std::span<const int32_t> tokens = request.tokens;
  Text* const text = find_or_place(request.text);
  if (!text || std::ssize(tokens) + request.count > model.context()) return nullptr;
  const auto before = tokens.first(tokens.size() - 1);
  auto known = std::ranges::mismatch(text->cached, before).in1 - text->cached.begin();
  // Windowed layers may have forgotten what the next token sees.
  if (!model.cache().holds(text->slot, known)) known = 0;
  model.cache().truncate(text->slot, known);
  text->cached.resize(static_cast<size_t>(known));
  const auto is_unknown = [&](int32_t token) { return token >= vocabulary_; };
  if (std::ranges::any_of(tokens.subspan(static_cast<size_t>(known)), is_unknown)) return nullptr;
  while (known < std::ssize(before) && left > 0) {
    const int64_t count = std::min({std::ssize(before) - known, left, model.batch_rows()});
    const SequencePart part{text->slot, static_cast<int32_t>(known),
                            before.subspan(static_cast<size_t>(known), static_cast<size_t>(count)),
                            Wanted::none};
    model.forward(std::span(&part, 1));
    text->cached.insert(text->cached.end(), part.tokens.begin(), part.tokens.end());
    known += count;
    left -= count;
  }
  return known == std::ssize(before) ? text : nullptr;
}

std::vector<Proposal> DraftModelProposer::propose(std::span<const ProposalRequest> requests) {
  std::vector<Proposal> proposals(requests.size());
  std::vector<DecodeLoop::Sequence> sequences;
  std::vector<std::pair<size_t, Text*>> drafted;  // request, text
  int64_t steps = 0, left = kMostCatchUp;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].count <= 0) continue;
    Text* const text = caught_up(requests[i], left);
    if (!text) continue;
    drafted.emplace_back(i, text);
    sequences.push_back({text->slot, static_cast<int32_t>(text->cached.size()),
                         requests[i].tokens.back(), requests[i].sampling});
    steps = std::max(steps, requests[i].count);
  }
  if (sequences.empty()) return proposals;
  if (!loop_) loop_ = std::make_unique<DecodeLoop>(placed_.model());
  loop_->start(sequences);
  const auto begun = std::chrono::steady_clock::now();
  int64_t queued = 0;
  while (queued < steps && loop_->steps_left() > 0) {
    loop_->queue_step();
    ++queued;
  }
  std::vector<bool> is_over(drafted.size(), false);
  for (int64_t step = 0; step < queued; ++step) {
    const std::vector<int32_t> tokens = loop_->read(step);
    for (size_t i = 0; i < drafted.size(); ++i) {
      const auto& [request, text] = drafted[i];
      std::vector<int32_t>& own = proposals[request].tokens;
      if (!is_over[i])
        text->cached.push_back(step == 0 ? requests[request].tokens.back() : own.back());
      is_over[i] = is_over[i] || step >= requests[request].count || tokens[i] < 0 ||
                   tokens[i] >= vocabulary_;
      if (!is_over[i]) own.push_back(tokens[i]);
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  if (queued > 0) {
    const double each = took.count() / static_cast<double>(queued);
    seconds_per_token_ += (seconds_per_token_ == 0 ? 1 : 0.2) * (each - seconds_per_token_);
  }
  return proposals;
}

void DraftModelProposer::forget(int64_t text) {
  const auto found = texts_.find(text);
  if (found == texts_.end()) return;
  placed_.model().cache().truncate(found->second.slot, 0);
  is_free_slot_[static_cast<size_t>(found->second.slot)] = true;
  texts_.erase(found);
}

}  // namespace prism::llm
