// Implements the index of token sequences of each text.
#include "llm/generate/ngram_proposer.h"

#include <algorithm>

namespace prism::llm {
namespace {

uint64_t hash(std::span<const int32_t> tokens) {
  uint64_t value = 0xcbf29ce484222325;  // FNV-1a over whole tokens
  for (const int32_t token : tokens) value = (value ^ static_cast<uint32_t>(token)) * 0x100000001b3;
  return value;
}

}  // namespace

void NgramProposer::Index::add(std::span<const int32_t> tokens) {
  // Tokens were dropped from a full context, so positions have changed.
  if (tokens.size() < indexed) *this = {};
  // A sequence at the end of the text has no successor yet.
  for (; indexed + 1 < tokens.size(); ++indexed) {
    const size_t end = indexed + 1;
    for (size_t grade = 0; grade < kGrades; ++grade)
      if (const size_t length = kLengths[grade]; length <= end)
        ends[grade][hash(tokens.subspan(end - length, length))] = end;
  }
}

Proposal NgramProposer::Index::find(std::span<const int32_t> tokens, size_t count) const {
  for (size_t grade = 0; grade < kGrades; ++grade) {
    const size_t length = kLengths[grade];
    if (length >= tokens.size()) continue;
    const std::span<const int32_t> last = tokens.last(length);
    const auto found = ends[grade].find(hash(last));
    // Comparing excludes equal hashes, and positions from before a shift of the context.
    if (found == ends[grade].end() || found->second >= tokens.size() ||
        !std::ranges::equal(tokens.subspan(found->second - length, length), last))
      continue;
    Proposal proposal{{}, grade};
    const size_t period = tokens.size() - found->second;  // a copy may run on into itself
    for (size_t i = 0; i < count; ++i)
      proposal.tokens.push_back(i < period ? tokens[found->second + i]
                                           : proposal.tokens[i - period]);
    return proposal;
  }
  return {};
}

std::vector<Proposal> NgramProposer::propose(std::span<const ProposalRequest> requests) {
  std::vector<Proposal> proposals;
  for (const ProposalRequest& each : requests) {
    Index& index = texts_[each.text];
    index.add(each.tokens);
    proposals.push_back(
        index.find(each.tokens, static_cast<size_t>(std::max<int64_t>(each.count, 0))));
  }
  return proposals;
}

}  // namespace prism::llm
