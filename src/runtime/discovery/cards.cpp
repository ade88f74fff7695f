// Merges devices into cards by address, then by name.
#include "runtime/discovery/cards.h"
#include "runtime/driver.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace prism {
namespace {

using DevicePointer = std::shared_ptr<DeviceDriver>;

bool is_host(const DeviceInfo& info) { return info.is_cpu || info.software; }

// A device that does not know its card's address uses its own id as the card.
std::string address_of(const DeviceInfo& info) { return info.card == info.id ? "" : info.card; }

// Lower-case letters and digits outside brackets: backends add suffixes such as "(RADV NAVI21)" and
// "(TM)".
std::string plain_name(const std::string& name) {
  std::string plain;
  int depth = 0;
  for (const char c : name) {
    depth += (c == '(') - (c == ')');
    if (depth == 0 && std::isalnum(static_cast<unsigned char>(c)))
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

bool is_uuid(const std::string& address) { return address.starts_with("uuid:"); }

// Whether two addresses may belong to one card: one is empty, or they are of different kinds.
bool may_be_one(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() || is_uuid(a) != is_uuid(b);
}

// A backend lists a card only once, unless it reports the address each time.
bool share_backend(const Card& a, const Card& b) {
  return std::ranges::any_of(a.ways, [&](const auto& one) {
    return std::ranges::any_of(
        b.ways, [&](const auto& other) { return one->info().backend == other->info().backend; });
  });
}

// The number of devices with this name in this backend, over all cards.
size_t count_alike(const std::vector<Card>& cards, const DeviceInfo& info) {
  size_t count = 0;
  for (const Card& card : cards)
    count += static_cast<size_t>(std::ranges::count_if(card.ways, [&](const auto& way) {
      return way->info().backend == info.backend &&
             plain_name(way->info().name) == plain_name(info.name);
    }));
  return count;
}

// Merging changes the order; restore the order of preference.
void put_in_order(std::vector<Card>& cards, const std::vector<BackendReport>& reports) {
  std::map<const DeviceDriver*, size_t> place;
  for (const BackendReport& report : reports)
    for (const DevicePointer& device : report.devices) place.emplace(device.get(), place.size());
  const auto by_place = [&](const DevicePointer& way) { return place.at(way.get()); };
  for (Card& card : cards) {
    std::ranges::sort(card.ways, {}, by_place);
    card.name = card.ways.front()->info().name;
  }
  std::ranges::sort(cards, {}, [&](const Card& card) { return by_place(card.ways.front()); });
}

// The only card that this one can be merged into by name, or end() if there is none or the match is
// ambiguous.
std::vector<Card>::iterator only_namesake(std::vector<Card>& cards, const Card& card) {
  const DeviceInfo& info = card.ways.front()->info();
  auto found = cards.end();
  if (count_alike(cards, info) != 1) return found;
  for (auto other = cards.begin(); other != cards.end(); ++other) {
    if (&*other == &card || plain_name(other->name) != plain_name(card.name)) continue;
    if (found != cards.end()) return cards.end();  // ambiguous: several cards match
    found = other;
  }
  if (found == cards.end() || !may_be_one(found->address, card.address) ||
      share_backend(*found, card))
    return cards.end();
  return found;
}

}  // namespace

std::vector<Card> group_by_card(const std::vector<BackendReport>& reports) {
  std::vector<Card> cards;
  Card host;
  host.is_processor = true;
  for (const BackendReport& report : reports)
    for (const DevicePointer& device : report.devices) {
      const DeviceInfo& info = device->info();
      if (is_host(info)) {
        // Prefer the processor's own name over the name of an emulated GPU.
        if (host.ways.empty() || info.is_cpu) host.name = info.name;
        host.ways.push_back(device);
        continue;
      }
      const std::string address = address_of(info);
      const auto known =
          address.empty() ? cards.end() : std::ranges::find(cards, address, &Card::address);
      if (known != cards.end())
        known->ways.push_back(device);
      else
        cards.push_back({info.name, address, false, {device}});
    }
  // Cards without an address first: one of them may match a card with a UUID.
  for (const bool with_uuid : {false, true}) {
    for (size_t i = 0; i < cards.size();) {
      const Card& card = cards[i];
      const bool is_this_turn = with_uuid ? is_uuid(card.address) : card.address.empty();
      const auto home = is_this_turn ? only_namesake(cards, card) : cards.end();
      if (home == cards.end()) {
        ++i;
        continue;
      }
      if (home->address.empty()) home->address = card.address;
      home->ways.insert(home->ways.end(), card.ways.begin(), card.ways.end());
      cards.erase(cards.begin() + static_cast<ptrdiff_t>(i));
      i = 0;  // ambiguous names may have become unique
    }
  }
  put_in_order(cards, reports);
  if (!host.ways.empty()) cards.push_back(std::move(host));
  return cards;
}

}  // namespace prism
