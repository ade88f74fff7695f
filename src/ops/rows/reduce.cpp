// Reductions: axes, the op, and the CPU kernels.
#include "prism/ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "cpu/elementwise.h"
#include "cpu/rows.h"
#include "ops/rows/finite_argmax.h"
#include "ops/rows/reduce_kernels.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "tensor/chain/chain_op.h"

namespace prism {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

// Columns that a thread reduces at once: their f64 sums take 8 KiB. A thread takes fewer if others
// would be idle, but at least a few cache lines.
constexpr int64_t kColumns = 1024, kFewestColumns = 64;
// Several threads share a longer row.
constexpr int64_t kPart = 65536;

Shape reduced_shape(const Shape& shape, int first, int last, bool keep_dims) {
  Shape result;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis < first || axis >= last)
      result.append(shape[axis]);
    else if (keep_dims)
      result.append(1);
  }
  return result;
}

template <class T>
bool is_nan_value(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  return false;
}

// Whether x replaces the best element so far: NaN wins; among equals the first wins.
template <class T>
bool beats(T x, T best, bool largest) {
  if (is_nan_value(best)) return false;
  return is_nan_value(x) || (largest ? x > best : x < best);
}

template <class T>
size_t row_best(const T* x, size_t n, bool largest) {
  if constexpr (std::is_floating_point_v<T>)
    return largest ? cpu::row_argmax(x, n) : cpu::row_argmin(x, n);
  size_t best = 0;
  for (size_t i = 1; i < n; ++i)
    if (beats(x[i], x[best], largest)) best = i;
  return best;
}

template <class T>
T row_extreme(const T* x, size_t n, bool largest) {
  if constexpr (std::is_floating_point_v<T>)
    return largest ? cpu::row_max(x, n) : cpu::row_min(x, n);
  else
    return x[row_best(x, n, largest)];
}

template <class T>
auto row_total(const T* x, size_t n) {
  if constexpr (std::is_floating_point_v<T>) {
    return cpu::row_sum(x, n);
  } else {
    using Unsigned = std::make_unsigned_t<T>;  // wraps
    Unsigned total = 0;
    for (size_t i = 0; i < n; ++i) total += static_cast<Unsigned>(x[i]);
    return static_cast<T>(total);
  }
}

class ReductionOp : public Op {
 public:
  // Reduces the axes [first, last) of the source.
  ReductionOp(Reduction kind, RowSource source, int first, int last, bool keep_dims)
      : kind_(kind), source_(std::move(source)), first_(first), last_(last), keep_(keep_dims) {}

  std::string_view name() const override { return reduction_name(kind_); }
  std::string attributes() const override {
    std::string text = last_ - first_ == 1 ? fmt::format("axis {}", first_)
                                           : fmt::format("axes {} to {}", first_, last_ - 1);
    if (source_.chain().steps.size() > 1) text += " of " + source_.chain().text();
    return text;
  }

  std::vector<Spec> infer(std::span<const Tensor>) const override {
    return {{reduced_shape(source_.shape(), first_, last_, keep_), output_type()}};
  }

  DType output_type() const { return is_arg(kind_) ? DType::i32 : source_.stored(); }

  bool has_gradient() const override { return !is_arg(kind_); }

  std::vector<Tensor> gradient(const GradientCall& call) const override {
    if (is_arg(kind_)) return {Tensor()};
    const Tensor& x = call.inputs[0];
    const Shape kept = reduced_shape(x.shape(), first_, last_, true);
    const Tensor g = call.output_gradients[0].reshape(kept);
    if (kind_ == Reduction::sum) return {g.expand(x.shape())};
    if (kind_ == Reduction::mean)
      return {(g * (1.0 / static_cast<double>(source_.rows().length))).expand(x.shape())};
    // Equal extremes share the gradient.
    Axes axes;
    for (int axis = first_; axis < last_; ++axis) axes.push_back(axis);
    const Tensor hits = cast(equal(x, call.outputs[0].reshape(kept)), x.type());
    return {hits * (g / sum(hits, axes, true))};
  }

  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor>) const override {
    return source_.cannot_run(device);
  }
  bool takes_layout(size_t, const Tensor& tensor, const DeviceInfo& device) const override {
    return source_.takes_layout(tensor, device);
  }
  std::shared_ptr<const Op> with_prologue(size_t, const Chain& chain) const override {
    // Two more buffers (the output, and the indices of a second step) and seven parameters.
    auto source = source_.after(chain, 2, 7);
    if (!source) return nullptr;
    return std::make_shared<ReductionOp>(kind_, *std::move(source), first_, last_, keep_);
  }

  void launch(DeviceCall& call) const override {
    if (call.output().elements() == 0) return;
    launch_reduction(call, kind_, bind_rows(call, source_), source_.rows(), call.output());
  }

  void run_cpu(const CpuCall& call) const override {
    if (call.outputs[0].layout.shape.elements() == 0) return;
    with_register(source_.type(), [&](auto sample) {
      using T = decltype(sample);
      if (source_.rows().inner == 1)
        run_rows<T>(call);
      else
        run_columns<T>(call);
    });
  }

 private:
  bool largest() const { return takes_largest(kind_); }

  // Stores a result (f64 for sums of floats) in the output's type.
  template <class T>
  static void put(const HostView& output, int64_t place, T value) {
    const DType stored = output.type.plain();
    std::byte* to = output.data + (output.layout.offset + place) *
                                      static_cast<int64_t>(output.type.block_bytes());
    if constexpr (std::is_same_v<T, double>) {
      if (register_type(stored) == DType::f32) {
        const auto narrow = static_cast<float>(value);
        return cpu::store(DType::f32, &narrow, stored, to, 1);
      }
      cpu::store(DType::f64, &value, stored, to, 1);
    } else {
      cpu::store(dtype_of<T>(), &value, stored, to, 1);
    }
  }

  // The result of an arg reduction, given the best element and its index.
  template <class T>
  int32_t index_of(T best, int64_t place) const {
    if (kind_ == Reduction::finite_argmax && !std::isfinite(static_cast<double>(best))) return -1;
    return static_cast<int32_t>(place);
  }

  // Reduces a part of a row.
  template <class T>
  struct Part {
    std::conditional_t<std::is_same_v<T, float>, double, T> total = 0;
    T best = 0;
    int64_t place = 0;
  };

  template <class T>
  Part<T> part_of(const T* x, int64_t first, int64_t count) const {
    const auto n = static_cast<size_t>(count);
    Part<T> part;
    if (kind_ == Reduction::sum || kind_ == Reduction::mean) {
      part.total = row_total(x, n);
    } else if (is_arg(kind_)) {
      const size_t best = row_best(x, n, largest());
      part.best = x[best];
      part.place = first + static_cast<int64_t>(best);
    } else {
      part.best = row_extreme(x, n, largest());
    }
    return part;
  }

  template <class T>
  void put_row(const HostView& output, int64_t row, std::span<const Part<T>> parts) const {
    Part<T> whole = parts[0];
    for (const Part<T>& part : parts.subspan(1)) {
      whole.total = added(whole.total, part.total);
      if (!beats(part.best, whole.best, largest())) continue;
      whole.best = part.best;
      whole.place = part.place;
    }
    if (kind_ == Reduction::sum)
      put(output, row, whole.total);
    else if (kind_ == Reduction::mean)
      put(output, row,
          static_cast<double>(whole.total) / static_cast<double>(source_.rows().length));
    else if (is_arg(kind_))
      put(output, row, index_of(whole.best, whole.place));
    else
      put(output, row, whole.best);
  }

  template <class T>
  void run_rows(const CpuCall& call) const {
    const Rows& rows = source_.rows();
    if (rows.length <= kPart) {
      call.pool.parallel_for(
          static_cast<uint64_t>(rows.outer), rows_a_chunk(rows.length),
          [&](uint64_t begin, uint64_t end) {
            RowReader reader(source_, call);
            for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
              const Part<T> part = part_of(reader.read<T>(row, 0, 0, rows.length), 0, rows.length);
              put_row<T>(call.outputs[0], row, std::span(&part, 1));
            }
          });
      return;
    }
    const int64_t parts = (rows.length + kPart - 1) / kPart;
    std::vector<Part<T>> found(static_cast<size_t>(rows.outer * parts));
    call.pool.parallel_for(found.size(), 1, [&](uint64_t begin, uint64_t end) {
      RowReader reader(source_, call);
      for (uint64_t i = begin; i < end; ++i) {
        const int64_t row = static_cast<int64_t>(i) / parts,
                      first = static_cast<int64_t>(i) % parts * kPart;
        const int64_t n = std::min(kPart, rows.length - first);
        found[i] = part_of(reader.read<T>(row, first, 0, n), first, n);
      }
    });
    for (int64_t row = 0; row < rows.outer; ++row)
      put_row<T>(
          call.outputs[0], row,
          std::span(found).subspan(static_cast<size_t>(row * parts), static_cast<size_t>(parts)));
  }

  template <class T>
  void run_columns(const CpuCall& call) const {
    using Total = std::conditional_t<std::is_same_v<T, float>, double, T>;
    const Rows& rows = source_.rows();
    const int64_t wanted = 2 * static_cast<int64_t>(call.pool.threads()) / rows.outer + 1;
    const int64_t columns = std::clamp(rows.inner / wanted, kFewestColumns, kColumns);
    const int64_t blocks = (rows.inner + columns - 1) / columns;
    call.pool.parallel_for(
        static_cast<uint64_t>(rows.outer * blocks), 1, [&](uint64_t begin, uint64_t end) {
          RowReader reader(source_, call);
          std::vector<Total> totals;
          std::vector<T> best;
          std::vector<int32_t> places;
          for (auto block = static_cast<int64_t>(begin); block < static_cast<int64_t>(end);
               ++block) {
            const int64_t outer = block / blocks, first = block % blocks * columns;
            const int64_t n = std::min(columns, rows.inner - first);
            const auto count = static_cast<size_t>(n);
            totals.assign(count, 0);
            places.assign(count, 0);
            best.assign(count, T{});
            for (int64_t along = 0; along < rows.length; ++along) {
              const T* x = reader.read<T>(outer, along, first, n, true);
              if (kind_ == Reduction::sum || kind_ == Reduction::mean) {
                for (size_t i = 0; i < count; ++i) totals[i] = added(totals[i], x[i]);
              } else {
                for (size_t i = 0; i < count; ++i) {
                  if (along > 0 && !beats(x[i], best[i], largest())) continue;
                  best[i] = x[i];
                  places[i] = static_cast<int32_t>(along);
                }
              }
            }
            for (size_t i = 0; i < count; ++i) {
              const int64_t place = outer * rows.inner + first + static_cast<int64_t>(i);
              if (kind_ == Reduction::sum)
                put(call.outputs[0], place, totals[i]);
              else if (kind_ == Reduction::mean)
                put(call.outputs[0], place,
                    static_cast<double>(totals[i]) / static_cast<double>(rows.length));
              else if (is_arg(kind_))
                put(call.outputs[0], place, index_of(best[i], places[i]));
              else
                put(call.outputs[0], place, best[i]);
            }
          }
        });
  }

  template <class A, class B>
  static A added(A a, B b) {
    if constexpr (std::is_floating_point_v<A>)
      return a + static_cast<A>(b);
    else
      return static_cast<A>(static_cast<std::make_unsigned_t<A>>(a) +
                            static_cast<std::make_unsigned_t<A>>(b));
  }

  Reduction kind_;
  RowSource source_;
  int first_, last_;
  bool keep_;
};

Tensor checked(Reduction kind, const Tensor& x) {
  if (!x) fail(fmt::format("{}: an empty Tensor as an input", reduction_name(kind)));
  if (x.type().is_block())
    fail(fmt::format("{}: an input of type {}; dequantise() it first", reduction_name(kind),
                     x.type().name()));
  const DType type = x.type().plain();
  if (kind == Reduction::mean && !is_float(type))
    fail(
        fmt::format("mean: elements of type {}; cast them to a float type first", x.type().name()));
  if (type == DType::b1) return cast(x, DType::i32);
  if (kind == Reduction::sum && !is_float(type) && register_type(type) == DType::i32)
    return cast(x, DType::i32);
  return x;
}

// The axes in order, without duplicates.
Axes sorted_axes(const char* op, const Tensor& x, const Axes& axes) {
  Axes result;
  if (axes.empty())
    for (int axis = 0; axis < x.rank(); ++axis) result.push_back(axis);
  for (const int axis : axes) result.push_back(checked_axis(op, axis, x.rank()));
  std::ranges::sort(result);
  const auto twice = std::ranges::adjacent_find(result);
  if (twice != result.end())
    fail(fmt::format("{}: axis {} of {} named twice", op, *twice, x.shape().text()));
  return result;
}

Tensor reduce_run(Reduction kind, const Tensor& x, int first, int last, bool keep_dims) {
  RowSource source(x.type().plain(), x.shape(), first, last);
  if (kind != Reduction::sum && kind != Reduction::mean && source.rows().length == 0 &&
      source.rows().count() > 0)
    fail(fmt::format("{}: of {} along {} has no elements to choose from", reduction_name(kind),
                     x.shape().text(),
                     last - first == 1 ? fmt::format("axis {}", first) : "these axes"));
  if (source.rows().length > std::numeric_limits<int32_t>::max() && is_arg(kind))
    fail(fmt::format("{}: {} has more elements along the axis than i32 counts",
                     reduction_name(kind), x.shape().text()));
  return use_op(std::make_shared<ReductionOp>(kind, std::move(source), first, last, keep_dims),
                {x});
}

Tensor reduce(Reduction kind, const Tensor& input, const Axes& wanted, bool keep_dims) {
  const Tensor x = checked(kind, input);
  const Axes axes = sorted_axes(reduction_name(kind), x, wanted);
  if (axes.empty()) return is_arg(kind) ? zeros(x.shape(), DType::i32, x.device()) : x;
  const auto length = static_cast<int>(axes.size());
  if (axes.back() - axes.front() + 1 == length)
    return reduce_run(kind, x, axes.front(), axes.back() + 1, keep_dims);
  // Move axes that are not adjacent to the end, where they form one run.
  std::vector<int> order;
  Shape kept;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const bool gone = std::ranges::count(axes, axis) > 0;
    if (!gone) order.push_back(axis);
    if (!gone || keep_dims) kept.append(gone ? 1 : x.shape()[axis]);
  }
  order.insert(order.end(), axes.begin(), axes.end());
  return reduce_run(kind, x.permute(order), x.rank() - length, x.rank(), false).reshape(kept);
}

}  // namespace

Tensor sum(const Tensor& x, const Axes& axes, bool keep_dims) {
  return reduce(Reduction::sum, x, axes, keep_dims);
}
Tensor mean(const Tensor& x, const Axes& axes, bool keep_dims) {
  return reduce(Reduction::mean, x, axes, keep_dims);
}
Tensor max(const Tensor& x, const Axes& axes, bool keep_dims) {
  const Tensor result = reduce(Reduction::max, x, axes, keep_dims);
  return cast(result, x.type());
}
Tensor min(const Tensor& x, const Axes& axes, bool keep_dims) {
  const Tensor result = reduce(Reduction::min, x, axes, keep_dims);
  return cast(result, x.type());
}
Tensor argmax(const Tensor& x, int axis, bool keep_dims) {
  return reduce(Reduction::argmax, x, {axis}, keep_dims);
}
Tensor argmin(const Tensor& x, int axis, bool keep_dims) {
  return reduce(Reduction::argmin, x, {axis}, keep_dims);
}

Tensor finite_argmax(const Tensor& x) {
  if (x && !x.type().is_block() && !is_float(x.type().plain()))
    fail(fmt::format("finite_argmax: elements of type {}; floats are needed", x.type().name()));
  return reduce(Reduction::finite_argmax, x, {-1}, false);
}

Tensor variance(const Tensor& x, const Axes& axes, double correction, bool keep_dims) {
  if (!x) fail("variance: an empty Tensor as an input");
  if (x.type().is_block() || !is_float(x.type().plain()))
    fail(fmt::format("variance: elements of type {}; cast them to a float type first",
                     x.type().name()));
  const Axes sorted = sorted_axes("variance", x, axes);
  double terms = 1;
  for (const int axis : sorted) terms *= static_cast<double>(x.shape()[axis]);
  // Two passes, in at least f32: E[x^2] - E[x]^2 would cancel if the mean is large.
  const DType type = register_type(x.type().plain());
  const Tensor wide = cast(x, type);
  const Tensor squares = square(wide - mean(wide, sorted, true));
  const double divisor = std::max(0.0, terms - correction);
  return cast(sum(squares, sorted, keep_dims) / divisor, x.type());
}

Tensor all(const Tensor& x, const Axes& axes, bool keep_dims) {
  return equal(sum(equal(x, 0.0), axes, keep_dims), 0.0);
}
Tensor any(const Tensor& x, const Axes& axes, bool keep_dims) {
  return not_equal(sum(not_equal(x, 0.0), axes, keep_dims), 0.0);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (!x) fail("sum_to: an empty Tensor as an input");
  if (x.shape() == shape) return x;
  const int extra = x.rank() - shape.rank();
  Axes axes;
  bool fits = extra >= 0;
  for (int axis = 0; fits && axis < x.rank(); ++axis) {
    const int64_t wanted = axis < extra ? 1 : shape[axis - extra];
    if (x.shape()[axis] == wanted && axis >= extra) continue;
    fits = wanted == 1;
    axes.push_back(axis);
  }
  if (!fits)
    fail(fmt::format("sum_to: {} does not broadcast to {}", shape.text(), x.shape().text()));
  return cast(sum(x, axes, true), x.type()).reshape(shape);
}

}  // namespace prism
