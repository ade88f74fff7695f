// Chooses and launches the kernel of a matrix product on a device.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/types/gpu_block_layout.h"
#include "ops/products/matmul_op.h"
#include "ops/products/matmul_sides.h"
#include "ops/products/product_kernels.h"
#include "ops/products/product_launch.h"
#include "ops/quantise/block_kernels.h"
#include "runtime/measure/tuned.h"
#include "tensor/chain/chain_op.h"
#include "tensor/plan/device_call.h"

namespace prism {

namespace {

// From here on a launch that rounds x costs less than rounding it in every group of the product:
// 512 rows of f32 by f16 weights of 4096 x 11008 ran at 156 TFLOP/s on an H200, rows of f16 at 291.
constexpr int64_t kManyRows = 64;

uint32_t word(int64_t value) { return static_cast<uint32_t>(value); }

ops::ProductShape shape_of(const Sides& s) {
  ops::ProductShape shape;
  shape.m = word(s.m);
  shape.n = word(s.n);
  shape.k = word(s.k);
  shape.a_stride = word(s.in_a.step);
  shape.b_stride = word(s.in_b.step);
  shape.c_stride = word(s.n);
  shape.batch = word(s.batch);
  shape.a_batch = word(s.in_a.batch_step);
  shape.b_batch = word(s.in_b.batch_step);
  shape.c_batch = word(s.m * s.n);
  return shape;
}

void launch_few_rows(DeviceCall& call, const Sides& s) {
  ops::VectorProduct product = few_rows_product(call.info(), s);
  product.scale_epsilon = s.scale_epsilon;
  const auto launch = ops::vector_product_launch(product, word(s.n), word(s.k), word(s.m),
                                                 word(s.in_a.step), word(s.n));
  const DeviceView x =
      product.rounded && !s.rounded ? rounded_rows(call, s.a, s.m, s.k, s.in_a.step) : s.a;
  launch_product(call, product, launch, {s.b, x}, s.tail, s.c);
}

void launch_packed(DeviceCall& call, const ops::PackedProduct& product, const Sides& s) {
  const auto launch =
      ops::packed_product_launch(product, word(s.n), word(s.k), word(s.m), word(s.in_a.step));
  launch_product(call, product, launch, {s.b, s.a}, s.tail, s.c);
}

void launch_f32(DeviceCall& call, const Sides& s) {
  ops::F32Product product;
  product.a = s.a.type.plain();
  product.b = s.b.type.plain();
  product.a_transposed = s.in_a.transposed;
  product.b_transposed = s.in_b.transposed;
  product.c = s.c.type.plain();
  launch_product(call, product, ops::f32_product_launch(shape_of(s)), {s.a, s.b}, s.tail, s.c);
}

// Whether both sides are multiplied in f32: they are f32, or the device has no matrix instructions
// for their type.
bool is_f32(const DeviceInfo& device, const Sides& s) {
  const auto is = [&](DType type) {
    return s.a.type == ElementType(type) && s.b.type == ElementType(type);
  };
  if (is(DType::f32)) return true;
  const bool narrow = is(DType::bf16) || is(DType::f16);
  return narrow && s.m >= kManyRows && !ops::has_fragments(device.capabilities, s.a.type.plain());
}

// The same for few tiles of c and a long k, as gradients of weights have: k is cut into parts.
void launch_f32_in_parts(DeviceCall& call, Sides s, uint32_t parts) {
  const DeviceView c = s.c;
  s.k /= parts;
  s.batch = parts;
  s.in_a.batch_step = s.in_a.transposed ? s.k * s.in_a.step : s.k;
  s.in_b.batch_step = s.in_b.transposed ? s.k : s.k * s.in_b.step;
  s.c = call.scratch({parts, s.m, s.n}, DType::f32);
  launch_f32(call, s);
  const DType type = c.type.plain();
  call.launch(
      fmt::format("sum_of_parts {}", dtype_name(type)), [&] { return ops::sum_of_parts(type); },
      {groups_for(s.m * s.n, ops::kPartsGroup), 1, 1}, {s.c, c}, {word(parts), word(s.m * s.n)});
}

void launch_f64(DeviceCall& call, const Sides& s) {
  const ops::F64Product product{s.a.type.plain(), s.b.type.plain(), s.in_a.transposed,
                                s.in_b.transposed};
  const auto launch = ops::f64_product_launch(shape_of(s));
  call.launch(
      ops::product_key(product), [&] { return ops::f64_product(product); }, launch.groups,
      {s.a, s.b, s.c}, param_values(launch.params));
}

void launch_fragments(DeviceCall& call, const Sides& s) {
  ops::FragmentProduct wanted;
  wanted.a = s.a.type.plain();
  wanted.b = s.b.type;
  wanted.c = s.c.type.plain();
  wanted.operand =
      wanted.a == DType::bf16 && s.b.type == ElementType(DType::bf16) ? DType::bf16 : DType::f16;
  wanted.a_transposed = s.in_a.transposed;
  wanted.b_transposed = s.in_b.transposed;
  const ops::ProductShape shape = shape_of(s);
  const uint32_t all = shape.m | shape.n | shape.k | shape.a_stride | shape.b_stride |
                       shape.a_batch | shape.b_batch | shape.c_batch;
  wanted.aligned = all % 8 == 0;
  const auto product =
      ops::fragment_product_for(wanted, shape, call.info().capabilities, call.info().compute_units);
  const auto launch = ops::fragment_product_launch(product, shape);
  launch_product(call, product, launch, {s.a, s.b}, s.tail, s.c);
}

// The vendor's product of these, the sides in the type that weights have there: quantised ones are
// decoded to f16 before, for rows of bf16 to that, and x is brought to that type. Nothing where
// there is none.
std::optional<NativeProduct> native_of(const Device& device, const Sides& s, ElementType own) {
  const bool block = s.b.type.is_block();
  NativeProduct native;
  native.m = word(s.m);
  native.n = word(s.n);
  native.k = word(s.k);
  native.transpose_a = s.in_a.transposed;
  native.transpose_b = s.in_b.transposed;
  native.a_type = native.b_type = !block ? s.b.type.plain() : s.x == DType::bf16 ? s.x : DType::f16;
  native.c_type = own.plain();
  native.a_stride = static_cast<uint64_t>(s.in_a.step);
  native.b_stride = static_cast<uint64_t>(s.in_b.step);
  native.c_stride = static_cast<uint64_t>(s.n);
  native.batch = word(s.batch);
  native.a_batch = static_cast<uint64_t>(s.in_a.batch_step);
  native.b_batch = static_cast<uint64_t>(s.in_b.batch_step);
  native.c_batch = static_cast<uint64_t>(s.m * s.n);
  if (s.a.type != ElementType(native.a_type)) {  // x goes to scratch memory, row by row
    if (!block && (s.a.type != ElementType(DType::f32) || dtype_bytes(native.a_type) != 2))
      return std::nullopt;
    native.transpose_a = false;
    native.a_stride = static_cast<uint64_t>(s.k);
    native.a_batch = s.batch > 1 ? static_cast<uint64_t>(s.m * s.k) : 0;
  }
  const bool results = native.c_type == native.a_type || native.c_type == DType::f32;
  if (!results || !device.supports(native)) return std::nullopt;
  return native;
}

// x in scratch memory, row by row, where it is of another type.
DeviceView as_type(DeviceCall& call, const DeviceView& x, DType type) {
  if (x.type == ElementType(type)) return x;
  const DeviceView narrow = call.scratch(x.layout.shape, type);
  launch_chain(call, cast_chain(x.type.plain(), type), std::span(&x, 1), narrow);
  return narrow;
}

// Quantised weights in scratch memory, row by row.
DeviceView decoded(DeviceCall& call, const Sides& s, DType type) {
  const GpuBlockLayout planes =
      gpu_block_layout(s.b.type.block(), static_cast<uint64_t>(s.n), static_cast<uint64_t>(s.k));
  const DeviceView rows = call.scratch({s.n, s.k}, type);
  const auto launch = ops::dequantise_gpu_blocks_launch(planes);
  call.launch(
      fmt::format("dequantise_gpu_blocks {} {}", s.b.type.name(), dtype_name(type)),
      [&] { return ops::dequantise_gpu_blocks(s.b.type.block(), type); }, launch.groups,
      {s.b, rows}, param_values(launch.params));
  return rows;
}

// Whether weights are unpacked to f32 and multiplied there.
bool is_unpacked(const DeviceInfo& device, const Sides& s) {
  const bool by_rows = s.batch == 1 && s.in_b.transposed && s.in_b.step == s.k;
  const bool narrow = s.b.type.is_block() || dtype_bytes(s.b.type.plain()) == 2;
  return by_rows && narrow && unpacked_weight_bytes(device, s.m, s.n * s.k) > 0;
}

void launch_unpacked(DeviceCall& call, Sides s) {
  if (s.b.type.is_block()) {
    s.b = decoded(call, s, DType::f32);
  } else {
    const int64_t offset = s.b.layout.offset;
    s.b.layout = Layout::dense({s.n, s.k});
    s.b.layout.offset = offset;
    s.b = as_type(call, s.b, DType::f32);
  }
  if (s.a.type != ElementType(DType::f32)) {
    s.a = as_type(call, s.a, DType::f32);
    s.in_a = {false, s.k, 1, 0};
  }
  launch_f32(call, s);
}

void launch_native(DeviceCall& call, const NativeProduct& native, Sides s) {
  if (s.b.type.is_block()) s.b = decoded(call, s, native.b_type);
  call.product(native, as_type(call, s.a, native.a_type), s.b, s.c);
}

// Numbers of rows in classes by powers of two: what is best changes slowly with them.
std::string tuning_key(const Sides& s) {
  return fmt::format("matmul_{}_{}_{}x{}_{}{}{}", ElementType(s.x).name(), s.b.type.name(), s.n,
                     s.k, std::bit_ceil(static_cast<uint64_t>(s.m)),
                     s.in_b.transposed ? "" : "_plain", s.batch > 1 ? "_batch" : "");
}

// Whether a tail does nothing but add a tensor of the product's own type.
bool only_adds(const Chain& chain, ElementType own) {
  if (chain.steps.size() != 3 || chain.inputs.size() != 2 || chain.result != 2 ||
      own != ElementType(chain.inputs[1]) || own != ElementType(chain.output))
    return false;
  const Chain::Step& last = chain.steps[2];
  return last.kind == Chain::Kind::apply && last.op == ScalarOp::add && last.a != last.b;
}

// The number by which a tail multiplies the sums, where it does no more than that and store them as
// f32.
std::optional<float> only_scales(const Chain& chain) {
  if (chain.inputs.size() != 1 || chain.output != DType::f32) return std::nullopt;
  const auto is_number = [&](uint16_t step) {
    return chain.steps[step].kind == Chain::Kind::constant;
  };
  double factor = 1;
  for (const Chain::Step& step : chain.steps) {
    if (step.kind == Chain::Kind::cast && step.stored != DType::f32) return std::nullopt;
    if (step.kind != Chain::Kind::apply) continue;
    if (step.op != ScalarOp::mul || is_number(step.a) == is_number(step.b)) return std::nullopt;
    factor *= chain.steps[is_number(step.a) ? step.a : step.b].number;
  }
  return static_cast<float>(factor);
}

bool is_plain(ElementType type) {
  return type == ElementType(DType::f32) || type == ElementType(DType::f16);
}

}  // namespace

Sides sides_of(const DeviceView& a, const DeviceView& b, const DeviceView& c,
               std::optional<DType> rounded) {
  Sides s{a, b, c};
  s.m = a.layout.shape[-2];
  s.k = b.layout.shape[-2];
  s.n = b.layout.shape[-1];
  s.rounded = rounded.has_value();
  s.x = rounded.value_or(a.type.plain());
  if (a.layout.shape.rank() == 3) s.batch = a.layout.shape[0];
  if (s.m == 0 || s.n == 0 || s.k == 0 || s.batch == 0) return s;
  s.in_a = rounded ? MatrixLayout{false, s.k, 1, 0} : matrix_layout(a.layout).value();
  s.in_b = b.type.is_block() ? MatrixLayout{true, s.k, 1, 0} : matrix_layout(b.layout).value();
  return s;
}

bool has_few_rows(const Sides& s, ElementType own) {
  return s.m <= kFewRows && s.batch == 1 && s.in_b.transposed && !s.in_a.transposed &&
         is_plain(s.x) && is_plain(own) && (s.b.type.is_block() || s.in_b.step == s.k);
}

std::optional<ops::PackedProduct> packed_product_of(const DeviceInfo& device, const Sides& s,
                                                    ElementType own) {
  const bool narrow = s.a.type == ElementType(DType::f16);
  if (s.m > kPackedRows || !s.b.type.is_block() || s.batch != 1 || s.in_a.transposed || s.rounded ||
      !is_plain(s.x) || !is_plain(own) || (narrow && s.in_a.step % 8 != 0))
    return std::nullopt;
  ops::PackedProduct wanted;
  wanted.weight = s.b.type;
  wanted.y = is_plain(s.c.type) ? s.c.type.plain() : own.plain();
  return ops::packed_product_for(wanted, word(s.n), word(s.k), word(s.m), device.capabilities,
                                 device.compute_units);
}

ProductWay product_way(const DeviceInfo& device, const Sides& s, ElementType own) {
  const auto possible = [&](ProductWay way) {
    return way == ProductWay::few_rows ? has_few_rows(s, own)
           : way == ProductWay::packed ? packed_product_of(device, s, own).has_value()
                                       : true;
  };
  const std::string tuned = s.rounded ? "" : tuned_choice(device, tuning_key(s)).value_or("");
  for (size_t i = 0; i < kProductWayNames.size(); ++i) {
    const auto way = static_cast<ProductWay>(i);
    if (tuned == kProductWayNames[i] && possible(way)) return way;
  }
  for (const ProductWay way : {ProductWay::few_rows, ProductWay::packed})
    if (possible(way)) return way;
  return ProductWay::vendor;
}

uint64_t unpacked_weight_bytes(const DeviceInfo& device, int64_t rows, int64_t elements) {
  // Without matrix instructions f32 is multiplied faster than f16 (an H200 through OpenCL 37
  // TFLOP/s and 12, through WebGPU 30 and 1), and many rows are worth unpacking for. Memory has a
  // limit.
  constexpr uint64_t kMost = 256u << 20;
  const uint64_t bytes = 4 * static_cast<uint64_t>(elements);
  const bool worth = device.capabilities.fragments.empty() && rows >= kManyRows && bytes <= kMost;
  return !device.is_cpu && worth ? bytes : 0;
}

ops::VectorProduct few_rows_product(const DeviceInfo& device, const Sides& s) {
  ops::VectorProduct wanted;
  wanted.weight = s.b.type;
  wanted.x = s.x;
  wanted.y = s.c.type.plain();
  wanted.x_rows = word(s.m);
  wanted.rounded = s.b.type.is_block();
  if (!s.b.type.is_block()) {
    const int64_t lanes = 16 / static_cast<int64_t>(s.b.type.block_bytes());
    wanted.aligned =
        s.k % std::max<int64_t>(lanes, 8) == 0 && s.in_b.step == s.k && s.in_a.step % 8 == 0;
  }
  return ops::vector_product_for(wanted, word(s.n), word(s.k), device.capabilities,
                                 device.compute_units);
}

std::optional<DType> narrowed_rows(const Device& device, const Sides& s, ElementType own) {
  const bool narrow = s.b.type.is_block() || dtype_bytes(s.b.type.plain()) == 2;
  if (s.rounded || s.a.type != ElementType(DType::f32) || !narrow) return std::nullopt;
  const ProductWay way = product_way(device.info(), s, own);
  if (way == ProductWay::few_rows) return std::nullopt;
  if (way == ProductWay::packed) return DType::f16;
  if (way == ProductWay::vendor)
    if (const auto native = native_of(device, s, own)) return native->a_type;
  if (s.m < kManyRows || device.info().capabilities.fragments.empty()) return std::nullopt;
  return DType::f16;
}

int MatmulOp::overwrites(std::span<const Tensor> inputs) const {
  const Device& device = inputs[0].device();
  if (device.info().is_cpu || tail_.others() != 1 || inputs[0].elements() == 0 ||
      inputs[1].elements() == 0)
    return -1;
  const auto view = [](const Tensor& t) { return DeviceView{0, t.type(), t.layout()}; };
  for (size_t i = 0; i < 2; ++i)
    if (!takes_layout(i, inputs[i], device.info())) return -1;
  const Tensor& added = inputs[2];
  Sides s = sides_of(view(inputs[0]), view(inputs[1]), {}, rounded_);
  if (narrowed_) s.x = *narrowed_;
  const ElementType own = product_type(s.x, s.b.type);
  const bool fits = only_adds(tail_.chain(), own) && added.layout().offset == 0 &&
                    added.layout().is_dense() && added.elements() == s.batch * s.m * s.n;
  const bool native = fits && product_way(device.info(), s, own) == ProductWay::vendor &&
                      native_of(device, s, own).has_value();
  return native ? 2 : -1;
}

void MatmulOp::launch(DeviceCall& call) const {
  Sides s = sides_of(call.input(0), call.input(1), call.output(), rounded_);
  if (narrowed_) s.x = *narrowed_;
  s.scale_epsilon = scale_epsilon_;
  if (s.m == 0 || s.n == 0 || s.batch == 0) return;
  // Without a tail the product is the output, else it has the type that it would have.
  const ElementType own = tail_.empty() ? call.output().type : product_type(s.x, s.b.type);
  const auto apart = [&] {
    return tail_.empty() ? call.output() : call.scratch({s.batch, s.m, s.n}, own);
  };
  const auto tail_alone = [&] {
    if (!tail_.empty()) launch_tail(call, tail_, 2, s.c);
  };
  if (s.k == 0) {
    s.c = apart();
    launch_zeros(call, s.c);
    return tail_alone();
  }
  if (own == ElementType(DType::f64)) {
    s.c = apart();
    launch_f64(call, s);
    return tail_alone();
  }
  const ProductWay way = product_way(call.info(), s, own);
  if (auto native = way == ProductWay::vendor ? native_of(call.device(), s, own) : std::nullopt) {
    if (const auto factor = tail_.empty() ? std::nullopt : only_scales(tail_.chain())) {
      if (auto wide = native_of(call.device(), s, DType::f32)) {
        wide->alpha = *factor;
        return launch_native(call, *wide, s);
      }
    }
    if (tail_.others() > 0 && call.output().slot == call.input(2).slot) {  // see overwrites()
      native->beta = 1;
      return launch_native(call, *native, s);
    }
    s.c = apart();
    launch_native(call, *native, s);
    return tail_alone();
  }
  if (is_f32(call.info(), s) && s.m >= kManyRows) {
    const uint32_t parts = ops::f32_product_parts(shape_of(s), call.info().compute_units);
    if (parts > 1) {
      s.c = apart();
      launch_f32_in_parts(call, s, parts);
      return tail_alone();
    }
  }
  const bool packed = way == ProductWay::packed;
  const bool few = has_few_rows(s, own) && !packed && way != ProductWay::kernel;
  auto tail = bind_tail(call, tail_, 2, s.n);
  const bool bound = tail.has_value() && (is_plain(s.c.type) || !(few || packed));
  if (bound)
    s.tail = *std::move(tail);
  else
    s.c = apart();
  if (const auto type = narrowed_rows(call.device(), s, own); type && !few) {
    s.a = as_type(call, s.a, *type);
    s.in_a = {false, s.k, s.batch, s.batch > 1 ? s.m * s.k : 0};
  }
  if (few)
    launch_few_rows(call, s);
  else if (packed)
    launch_packed(call, packed_product_of(call.info(), s, own).value(), s);
  else if (is_f32(call.info(), s))
    launch_f32(call, s);
  else if (is_unpacked(call.info(), s))
    launch_unpacked(call, s);
  else
    launch_fragments(call, s);
  if (!bound) tail_alone();
}

}  // namespace prism
