// Workarounds for interface limits: byte-granular copies where only words can be copied, and
// launches that read and write one buffer.
#include <algorithm>
#include <array>

#include "runtime/backend_kernels.h"
#include "runtime/device_state.h"

namespace prism {
namespace {

constexpr uint64_t kMostBytes = 1 << 30;  // per launch: offsets have 32 bits

// Splits a byte range into an unaligned head, whole words and a tail.
struct Parts {
  uint64_t head, words, tail;
  Parts(uint64_t offset, uint64_t bytes)
      : head(std::min(bytes, (4 - offset % 4) % 4)),
        words((bytes - head) / 4 * 4),
        tail(bytes - head - words) {}
};

}  // namespace

void Queue::write_bytes(const Buffer& to, std::span<const std::byte> from, uint64_t offset) {
  const Parts parts(offset, from.size());
  const auto write_few = [&](uint64_t at, std::span<const std::byte> few) {
    if (few.empty()) return;
    std::array<std::byte, 4> word = {};
    std::ranges::copy(few, word.begin());
    // The padding after the end of a buffer may be overwritten.
    if (at % 4 == 0 && at + few.size() == to.bytes())
      return state_->driver->write(to.driver(), at, word);
    const Buffer four = Device(state_->device.lock()->driver, "").allocate(word.size());
    write(four, word);
    copy_bytes(to, four, few.size(), at, 0);
  };
  write_few(offset, from.first(parts.head));
  if (parts.words > 0)
    state_->driver->write(to.driver(), offset + parts.head, from.subspan(parts.head, parts.words));
  write_few(offset + from.size() - parts.tail, from.last(parts.tail));
}

void Queue::read_bytes(const Buffer& from, std::span<std::byte> to, uint64_t offset) {
  const Parts parts(offset, to.size());
  const auto read_few = [&](uint64_t at, std::span<std::byte> few) {
    if (few.empty()) return;
    std::array<std::byte, 4> word;
    state_->driver->read(from.driver(), at / 4 * 4, word);
    std::copy_n(word.begin() + at % 4, few.size(), few.begin());
  };
  read_few(offset, to.first(parts.head));
  if (parts.words > 0)
    state_->driver->read(from.driver(), offset + parts.head, to.subspan(parts.head, parts.words));
  read_few(offset + to.size() - parts.tail, to.last(parts.tail));
}

void Queue::copy_bytes(const Buffer& to, const Buffer& from, uint64_t bytes, uint64_t to_offset,
                       uint64_t from_offset) {
  const Program program = Device(state_->device.lock()->driver, "").compile(move_bytes());
  for (uint64_t done = 0; done < bytes; done += kMostBytes) {
    const auto now = static_cast<uint32_t>(std::min(bytes - done, kMostBytes));
    const auto from_byte = static_cast<uint32_t>((from_offset + done) % kRangeAlignment);
    const auto to_byte = static_cast<uint32_t>((to_offset + done) % kRangeAlignment);
    const uint32_t words = (to_byte + now + 3) / 4;
    launch(program, (words + kMoveLanes - 1) / kMoveLanes,
           {BufferRange(from, from_offset + done - from_byte, from_byte + now),
            BufferRange(to, to_offset + done - to_byte, to_byte + now)},
           {from_byte, to_byte, now});
  }
}

uint32_t Queue::bind_apart(const ir::Kernel& kernel, std::span<const uint64_t> sizes,
                           std::vector<BufferRange>& ranges) {
  const std::vector<uint32_t> buffers = kernel.buffers();
  const auto is_written = [&](size_t i) {
    return kernel.memories[buffers[i]].atomic ||
           kernel.memories[buffers[i]].access != ir::Access::read;
  };
  uint32_t writable = 0;
  std::vector<bool> mixed(ranges.size(), false);  // read while another range is written
  for (size_t i = 0; i < ranges.size(); ++i)
    for (size_t j = 0; j < ranges.size() && !is_written(i); ++j)
      if (is_written(j) && ranges[i].buffer.memory_ == ranges[j].buffer.memory_) mixed[i] = true;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!mixed[i]) continue;
    bool overlaps = false;
    for (size_t j = 0; j < i; ++j)
      overlaps |= mixed[j] && ranges[i].buffer.memory_ == ranges[j].buffer.memory_ &&
                  ranges[i].offset < ranges[j].offset + sizes[j] &&
                  ranges[j].offset < ranges[i].offset + sizes[i];
    if (!overlaps) {
      writable |= 1u << i;
      continue;
    }
    const Buffer copied = Device(state_->device.lock()->driver, "").allocate(sizes[i]);
    add_copy(copied, ranges[i].buffer, sizes[i], 0, ranges[i].offset);
    ranges[i] = BufferRange(copied);
  }
  return writable;
}

}  // namespace prism
