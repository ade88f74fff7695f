// Products as cuBLASLt calls, with Prism's own declarations of its interface.
//
// cuBLASLt is column-major, so it sees a row-major matrix as its transpose. The calls therefore
// compute c' = b' a': the operands are swapped, and so are m and n.
#include "backends/cuda/cublas.h"

#include <array>

#include <fmt/format.h>

#include "backends/cuda/nvrtc_search.h"

namespace prism::cuda {
namespace {

using Layout = struct LayoutTag*;
using Description = struct DescriptionTag*;
using Preference = struct PreferenceTag*;

// cudaDataType
constexpr int kR32F = 0, kR16F = 2, kR8I = 3, kR32I = 10, kR16BF = 14;
// cublasComputeType_t
constexpr int kCompute32F = 68, kCompute32I = 72, kComputeTf32 = 77;
// cublasLtMatmulDescAttributes_t, ...LayoutAttribute_t, ...PreferenceAttributes_t
constexpr int kTransposeA = 3, kTransposeB = 4;
constexpr int kBatchCount = 5, kBatchOffset = 6;
constexpr int kMaxWorkspace = 1, kAlignmentA = 5, kAlignmentB = 6, kAlignmentC = 7, kAlignmentD = 8;

struct Algorithm {  // cublasLtMatmulAlgo_t
  uint64_t data[8];
};
struct Found {  // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

int data_type(DType type) {
  switch (type) {
    case DType::f16:
      return kR16F;
    case DType::bf16:
      return kR16BF;
    case DType::i8:
      return kR8I;
    case DType::i32:
      return kR32I;
    default:
      return kR32F;
  }
}

// The fields that determine the algorithm. alpha does not, and neither does a non-zero beta's
// value.
NativeProduct key_of(NativeProduct product) {
  product.alpha = 1;
  product.beta = product.beta == 0 ? 0 : 1;
  return product;
}

}  // namespace

struct Cublas::Functions {
  int (*create)(Library*) = nullptr;
  int (*destroy)(Library) = nullptr;
  size_t (*version)() = nullptr;
  int (*description_create)(Description*, int compute, int scale) = nullptr;
  int (*description_destroy)(Description) = nullptr;
  int (*description_set)(Description, int, const void*, size_t) = nullptr;
  int (*layout_create)(Layout*, int type, uint64_t rows, uint64_t columns,
                       int64_t stride) = nullptr;
  int (*layout_destroy)(Layout) = nullptr;
  int (*layout_set)(Layout, int, const void*, size_t) = nullptr;
  int (*preference_create)(Preference*) = nullptr;
  int (*preference_destroy)(Preference) = nullptr;
  int (*preference_set)(Preference, int, const void*, size_t) = nullptr;
  int (*heuristic)(Library, Description, Layout, Layout, Layout, Layout, Preference, int wanted,
                   Found*, int* found) = nullptr;
  int (*multiply)(Library, Description, const void* alpha, DevicePointer, Layout, DevicePointer,
                  Layout, const void* beta, DevicePointer, Layout, DevicePointer, Layout,
                  const Algorithm*, DevicePointer workspace, size_t, Stream) = nullptr;

  bool bind(const DynamicLibrary& library) {
    const auto find = [&](auto& function, const char* name) {
      function = library.function<std::decay_t<decltype(function)>>(name);
      return function != nullptr;
    };
    return find(create, "cublasLtCreate") && find(destroy, "cublasLtDestroy") &&
           find(version, "cublasLtGetVersion") &&
           find(description_create, "cublasLtMatmulDescCreate") &&
           find(description_destroy, "cublasLtMatmulDescDestroy") &&
           find(description_set, "cublasLtMatmulDescSetAttribute") &&
           find(layout_create, "cublasLtMatrixLayoutCreate") &&
           find(layout_destroy, "cublasLtMatrixLayoutDestroy") &&
           find(layout_set, "cublasLtMatrixLayoutSetAttribute") &&
           find(preference_create, "cublasLtMatmulPreferenceCreate") &&
           find(preference_destroy, "cublasLtMatmulPreferenceDestroy") &&
           find(preference_set, "cublasLtMatmulPreferenceSetAttribute") &&
           find(heuristic, "cublasLtMatmulAlgoGetHeuristic") && find(multiply, "cublasLtMatmul");
  }
};

// One kind of product and its cuBLASLt descriptors, created once.
struct Cublas::Prepared {
  Handle<Description> description;
  Handle<Layout> a, b, c;
  Algorithm algorithm = {};
};

Cublas::Cublas(std::shared_ptr<CudaContext> context) : context_(std::move(context)) {}

Cublas::~Cublas() {
  prepared_.clear();
  if (handle_) quietly(*context_, [&](const gpu::Api&) { call_->destroy(handle_); });
  library_.keep_open();
}

bool Cublas::open() {
  if (tried_) return call_ != nullptr;
  tried_ = true;
  for (const std::string& name : cublas_candidates(context_->api().version)) {
    library_ = DynamicLibrary::open_first({name});
    auto functions = std::make_unique<Functions>();
    if (!library_ || !functions->bind(library_)) continue;
    call_ = std::move(functions);
    version_ = call_->version();
    return true;
  }
  absence_ =
      "no libcublasLt found: large dense products use Prism's own kernels; install NVIDIA's "
      "toolkit "
      "or its cuBLAS package, or name the library by PRISM_CUBLASLT_LIBRARY";
  return false;
}

bool Cublas::start() {
  if (handle_) return true;
  if (failed_to_start_ || !open()) return false;
  const Current current(*context_);
  if (const int status = call_->create(&handle_)) {
    failed_to_start_ = true;
    handle_ = nullptr;
    absence_ = fmt::format("{} does not work on this device: status {}", library_.name(), status);
    return false;
  }
  return true;
}

std::string Cublas::describe() {
  if (!open()) return absence_;
  const std::string text =
      fmt::format("cuBLASLt {}.{} ({})", version_ / 10000, version_ % 10000 / 100, library_.name());
  return failed_to_start_ ? text + ", but " + absence_ : text;
}

bool Cublas::supports(const NativeProduct& product, std::string* why) {
  if (!product.is_empty() && product.k == 0) {
    *why = "k is 0, and cuBLASLt needs at least 1";
    return false;
  }
  return product.is_empty() || prepare(product, why) != nullptr;
}

Cublas::Prepared* Cublas::prepare(const NativeProduct& product, std::string* why) {
  if (!start()) {
    *why = absence_;
    return nullptr;
  }
  const auto [place, fresh] = prepared_.try_emplace(key_of(product));
  const auto refuse = [&](const std::string& reason) -> Prepared* {
    *why = reason;
    return nullptr;
  };
  if (!fresh)
    return place->second ? place->second.get() : refuse("cuBLASLt does not support this product");

  const Current current(*context_);
  auto made = std::make_unique<Prepared>();
  const bool integers = product.c_type == DType::i32;
  int status = 0;
  const auto keep = [&](int result) { status = status ? status : result; };
  Description description = nullptr;
  keep(call_->description_create(&description,
                                 integers                   ? kCompute32I
                                 : product.rounded_operands ? kComputeTf32
                                                            : kCompute32F,
                                 integers ? kR32I : kR32F));
  if (status) return refuse(fmt::format("cuBLASLt answered {}", status));
  made->description = {description,
                       [destroy = call_->description_destroy](Description d) { destroy(d); }};
  const int32_t transpose_a = product.transpose_b, transpose_b = product.transpose_a;
  keep(call_->description_set(description, kTransposeA, &transpose_a, sizeof(transpose_a)));
  keep(call_->description_set(description, kTransposeB, &transpose_b, sizeof(transpose_b)));
  const auto layout = [&](DType type, uint32_t rows, uint32_t columns, uint64_t stride,
                          uint64_t batch_stride) -> Handle<Layout> {
    Layout one = nullptr;
    keep(call_->layout_create(&one, data_type(type), columns, rows, static_cast<int64_t>(stride)));
    if (!one) return {};
    Handle<Layout> owned(one, [destroy = call_->layout_destroy](Layout l) { destroy(l); });
    const int32_t batch = static_cast<int32_t>(product.batch);
    const int64_t offset = static_cast<int64_t>(batch_stride);
    keep(call_->layout_set(one, kBatchCount, &batch, sizeof(batch)));
    keep(call_->layout_set(one, kBatchOffset, &offset, sizeof(offset)));
    return owned;
  };
  made->a = layout(product.b_type, product.b_rows(), product.b_columns(), product.b_stride,
                   product.b_batch);
  made->b = layout(product.a_type, product.a_rows(), product.a_columns(), product.a_stride,
                   product.a_batch);
  made->c = layout(product.c_type, product.m, product.n, product.c_stride, product.c_batch);
  Preference preference = nullptr;
  keep(call_->preference_create(&preference));
  if (status) return refuse(fmt::format("cuBLASLt answered {}", status));
  const Handle<Preference> owned(
      preference, [destroy = call_->preference_destroy](Preference p) { destroy(p); });
  const size_t workspace = kProductWorkspace;
  const uint32_t alignment = 256;  // the alignment of all allocations and ranges
  keep(call_->preference_set(preference, kMaxWorkspace, &workspace, sizeof(workspace)));
  for (const int which : {kAlignmentA, kAlignmentB, kAlignmentC, kAlignmentD})
    keep(call_->preference_set(preference, which, &alignment, sizeof(alignment)));
  Found found = {};
  int count = 0;
  if (!status)
    keep(call_->heuristic(handle_, description, made->a.get(), made->b.get(), made->c.get(),
                          made->c.get(), preference, 1, &found, &count));
  if (status || count == 0 || found.state != 0)
    return refuse(fmt::format("cuBLASLt does not support this product (status {})",
                              status ? status : found.state));
  made->algorithm = found.algorithm;
  place->second = std::move(made);
  return place->second.get();
}

int Cublas::run(const NativeProduct& product, DevicePointer a, DevicePointer b, DevicePointer c,
                DevicePointer workspace, Stream stream) {
  std::string why;
  const Prepared* prepared = prepare(product, &why);
  if (!prepared) throw Error(ErrorCode::kNotSupported, context_->device() + ": " + why);
  const int32_t whole_alpha = static_cast<int32_t>(product.alpha),
                whole_beta = static_cast<int32_t>(product.beta);
  const bool integers = product.c_type == DType::i32;
  const void* alpha = integers ? static_cast<const void*>(&whole_alpha) : &product.alpha;
  const void* beta = integers ? static_cast<const void*>(&whole_beta) : &product.beta;
  return call_->multiply(handle_, prepared->description.get(), alpha, b, prepared->a.get(), a,
                         prepared->b.get(), beta, c, prepared->c.get(), c, prepared->c.get(),
                         &prepared->algorithm, workspace, kProductWorkspace, stream);
}

}  // namespace prism::cuda
