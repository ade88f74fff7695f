// Identifiers that avoid the reserved words of every language and the names of printed preludes.
#include "print/names.h"

#include <cctype>
#include <sstream>

namespace prism {
namespace {

// Keywords, types and functions of C, C++, CUDA, OpenCL C, Metal, SYCL and WGSL that a printed
// kernel may use or must not redefine. One set for all, so that a kernel has the same names in
// every dialect.
const std::set<std::string>& reserved() {
  static const std::set<std::string> words = [] {
    std::istringstream text(
        "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
        "char32_t class compl "
        "const const_cast constant constexpr continue decltype default delete device do double "
        "dynamic_cast else "
        "enum explicit export extern false float for friend goto if inline int long mutable "
        "namespace new noexcept "
        "not not_eq nullptr operator or or_eq private protected public register reinterpret_cast "
        "requires restrict "
        "return short signed sizeof static static_assert static_cast struct switch template this "
        "thread "
        "thread_local threadgroup throw true try typedef typeid typename union unsigned using "
        "virtual void volatile "
        "wchar_t while xor xor_eq concept co_await co_return co_yield "
        "kernel global local generic uniform pipe vertex fragment compute half uchar ushort uint "
        "ulong size_t "
        "ptrdiff_t intptr_t uintptr_t event_t sampler_t image2d_t quad complex imaginary atomic "
        "char2 char4 uchar2 uchar4 short2 short4 ushort2 ushort4 int2 int3 int4 uint2 uint3 uint4 "
        "long2 long4 "
        "ulong2 ulong4 float2 float3 float4 double2 double4 half2 half4 bool2 bool4 dim3 "
        "threadIdx blockIdx blockDim gridDim warpSize "
        "abs acos all any asin atan atan2 barrier bitselect cbrt ceil clamp clz copysign cos cosh "
        "cross dot degrees "
        "distance exp exp2 exp10 expm1 fabs fdim floor fma fmax fmin fmod fract frexp hypot ilogb "
        "isequal isfinite "
        "isinf isnan isnormal ldexp length lgamma log log2 log10 log1p logb mad max min mix modf "
        "nan nextafter "
        "normalize popcount pow pown powr radians remainder rint rootn rotate round rsqrt select "
        "shuffle sign signbit "
        "sin sincos sinh smoothstep sqrt step tan tanh tgamma trunc upsample mul_hi mulhi fast "
        "precise metal sycl "
        "std main printf assert memcpy memset prefetch mem_flags as_type simd vec item index_t "
        "alias array bitcast const_assert continuing diagnostic discard enable fn function let "
        "loop "
        "override read write read_write storage workgroup var ptr f16 f32 i32 u32 vec2 vec3 vec4 "
        "extractBits insertBits countOneBits countLeadingZeros inverseSqrt arrayLength "
        "Self abstract active as asm_fragment async attribute await become cast coherent "
        "column_major common compile compile_fragment consteval constinit crate debugger demote "
        "demote_to_helper extends external fallthrough filter final finally from fxgroup get "
        "groupshared highp impl implements import instanceof interface layout lowp macro "
        "macro_rules match mediump meta mod module move mut nil noinline nointerpolation "
        "non_coherent noncoherent noperspective null of package packoffset partial pass patch "
        "pixelfragment precision premerge priv pub readonly ref regardless require resource self "
        "set shared smooth snorm subroutine super target trait type unless unorm unsafe unsized "
        "use varying wgsl where with writeonly yield typeof "
        "linux unix i386 NULL INFINITY NAN M_PI MAXFLOAT HUGE_VALF TRUE FALSE");
    std::set<std::string> result;
    for (std::string word; text >> word;) result.insert(word);
    return result;
  }();
  return words;
}

}  // namespace

std::string legal_identifier(const std::string& text) {
  std::string result;
  for (char c : text) {
    const bool fits =
        std::isalnum(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 128;
    // Consecutive underscores are reserved in C++.
    if (fits)
      result += c;
    else if (!result.empty() && result.back() != '_')
      result += '_';
  }
  while (!result.empty() && result.back() == '_') result.pop_back();
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0]))) result = "v" + result;
  return result;
}

std::string Names::unique(const std::string& wanted) {
  std::string base = legal_identifier(wanted);
  // prism_ belongs to the prelude, kernel_ to entry points.
  if (reserved().count(base) || base.rfind("prism_", 0) == 0 || base.rfind("kernel_", 0) == 0)
    base = "the_" + base;
  std::string name = base;
  for (int i = 1; !taken_.insert(name).second; ++i) name = base + "_" + std::to_string(i);
  return name;
}

}  // namespace prism
