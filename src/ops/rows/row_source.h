// The input elements of row ops: those of one tensor, or of a chain over several tensors that the
// planner fused into the op.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/cpu_types.h"
#include "prism/kernel.h"
#include "tensor/chain/chain.h"
#include "tensor/chain/chain_pieces.h"
#include "tensor/op.h"
#include "tensor/plan/device_call.h"

namespace prism {

// A shape as three axes; the op works along the middle one.
struct Rows {
  int64_t outer = 1, length = 1, inner = 1;
  int64_t count() const { return outer * inner; }
};

class RowSource {
 public:
  // The elements of a tensor along the axes [first, last), merged into one.
  RowSource(DType stored, const Shape& shape, int first, int last);

  // The same with the elements computed by a chain; nullopt if a kernel with other_buffers and
  // other_params more would not fit.
  std::optional<RowSource> after(const Chain& chain, size_t other_buffers,
                                 size_t other_params) const;
  // Whether a kernel over these elements has room for this many more buffers and parameters.
  bool fits(size_t other_buffers, size_t other_params) const;

  const Rows& rows() const { return rows_; }
  const Shape& shape() const { return shape_; }
  const Chain& chain() const { return chain_; }
  size_t inputs() const { return chain_.inputs.size(); }
  DType stored() const { return chain_.output; }
  DType type() const { return register_type(chain_.output); }  // of the elements in registers

  bool takes_layout(const Tensor& tensor, const DeviceInfo& device) const;
  std::optional<std::string> cannot_run(const DeviceInfo& device) const;

  // The strides of an input on the three axes; nullopt if one axis has no single stride.
  struct Lie {
    int64_t outer = 0, along = 0, inner = 0, offset = 0;  // strides, in elements
  };
  std::optional<Lie> lie_of(const Layout& layout) const;

 private:
  bool plain_ = true;
  Shape shape_;
  int first_, last_;
  Rows rows_;
  Chain chain_;
};

// --- on devices with kernels

// How a kernel addresses an input. full: like the row itself; row: one element for each row; apart:
// a row's elements are adjacent, rows start at a stride (0: one row for all); strided: by strides
// that are parameters.
enum class RowAccess : char { full = 'f', row = 'r', apart = 'a', strided = 's' };

struct RowBinding {
  Chain chain;
  std::vector<RowAccess> access;
  std::vector<DeviceView> buffers;
  std::vector<ParamValue> params;
  bool by_four = false;  // rows may be loaded four elements at a time

  std::string key() const;
};

// Binds the inputs of call from first_input on. Computes the chain into scratch memory first if its
// inputs have no regular strides.
RowBinding bind_rows(DeviceCall& call, const RowSource& source, size_t first_input = 0);
// Binds dense rows without a chain.
RowBinding bind_plain(const DeviceView& view, const Rows& rows);

// Used inside a kernel. The constructor declares the buffers; params() declares the parameters in
// RowBinding's order.
class RowCode {
 public:
  explicit RowCode(const RowBinding& binding);
  void declare_params(dsl::Value length, dsl::Value inner);
  dsl::Value at(dsl::Value outer, dsl::Value along, dsl::Value inner) const;
  // For rows with inner 1.
  dsl::Value at(dsl::Value row, dsl::Value along) const;
  std::array<dsl::Value, 4> four_at(dsl::Value row, dsl::Value along) const;

 private:
  dsl::Value chained(std::vector<dsl::Value> loaded) const;

  Chain chain_;
  std::vector<RowAccess> access_;
  std::vector<dsl::In> buffers_;
  std::vector<std::array<std::optional<dsl::Value>, 4>> strides_;
  std::vector<dsl::Value> constants_;
  std::optional<dsl::Value> length_, inner_;
};

// --- on the CPU

// Reads elements into registers of source.type(): f32, f64, i32 or i64. For one thread.
class RowReader {
 public:
  RowReader(const RowSource& source, const CpuCall& call, size_t first_input = 0);
  // n elements of one row, starting at `along`; with across, n of neighbouring rows (along inner).
  // The result is the tensor's memory or this reader's buffer, valid until the next call.
  template <class T>
  const T* read(int64_t outer, int64_t along, int64_t inner, int64_t n, bool across = false) {
    return static_cast<const T*>(read_bytes(outer, along, inner, n, across));
  }

 private:
  const void* read_bytes(int64_t outer, int64_t along, int64_t inner, int64_t n, bool across);

  const RowSource& source_;
  Chain chain_;
  ThreadPool& pool_;
  std::vector<RowSource::Lie> lies_;
  std::vector<HostView> even_;                   // the inputs as three axes
  std::vector<std::shared_ptr<std::byte>> own_;  // copies of inputs without regular strides
  std::vector<double> buffer_;
  std::optional<ChainPieces> pieces_;
  std::vector<ChainPieces::Input> operands_;
};

// Rows per work item of a thread: about 16,000 elements.
uint64_t rows_a_chunk(int64_t length);

}  // namespace prism
