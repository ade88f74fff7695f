// Subgroup operations for each type, the lane's numbers, and the fence of a device.
#include "print/opencl_subgroups.h"

#include <string>

#include <fmt/format.h>

namespace prism {
namespace {

// A type by its printer and language names, since OpenCL C has no templates.
struct SubgroupType {
  const char *name, *c_name;
  const char* sum;      // expression of a and b
  const char* by_word;  // x from another lane, if PTX moves it one word at a time with {op}
};
constexpr const char* kTwoWords =
    "as_{c}(prism_make_uint2(prism_ptx_{op}(as_uint2(x).x, lane), prism_ptx_{op}(as_uint2(x).y, "
    "lane)))";
constexpr SubgroupType kSubgroupTypes[] = {
    {"u32", "uint", "a + b", "prism_ptx_{op}(x, lane)"},
    {"i32", "int", "(int)((uint)a + (uint)b)", "as_int(prism_ptx_{op}(as_uint(x), lane))"},
    {"u64", "ulong", "a + b", kTwoWords},
    {"i64", "long", "(long)((ulong)a + (ulong)b)", kTwoWords},
    {"f32", "float", "a + b", "as_float(prism_ptx_{op}(as_uint(x), lane))"},
    {"f64", "double", "a + b", kTwoWords},
    {"f16", "half", "a + b", "as_half((ushort)prism_ptx_{op}((uint)as_ushort(x), lane))"}};

std::vector<PreludeItem> subgroup_functions(const SubgroupType& type, const char* qualifier) {
  std::vector<PreludeItem> items;
  const auto add = [&](const char* name, const char* op, const char* form, const char* next = "",
                       const char* native = "0") {
    const auto text = [&](const char* part, const std::string& moved) {
      return fmt::format(fmt::runtime(part), fmt::arg("f", qualifier), fmt::arg("t", type.name),
                         fmt::arg("c", type.c_name), fmt::arg("op", op), fmt::arg("next", next),
                         fmt::arg("native", native), fmt::arg("moved", moved));
    };
    items.push_back({text(name, ""), text(form, text(type.by_word, ""))});
  };
  for (const char* op : {"shuffle", "shuffle_xor"})
    add("prism_{op}_{t}", op, R"({f}{c} prism_{op}_{t}({c} x, uint lane) {{
#if defined(PRISM_SUBGROUPS_BY_PTX)
  return {moved};
#elif defined(cl_khr_subgroup_shuffle)
  return sub_group_{op}(x, lane);
#else
  return intel_sub_group_{op}(x, lane);
#endif
}})");
  const auto add_all = [&](const char* op, const char* next, const char* native) {
    add("prism_reduce_{op}_{t}", op, R"({f}{c} prism_reduce_{op}_{t}({c} a) {{
#if {native}
  return sub_group_reduce_{op}(a);
#else
  for (uint mask = prism_lanes() / 2u; mask > 0u; mask /= 2u) {{
    const {c} b = prism_shuffle_xor_{t}(a, mask);
    a = {next};
  }}
  return a;
#endif
}})",
        next, native);
    add("prism_inclusive_scan_{op}_{t}", op, R"({f}{c} prism_inclusive_scan_{op}_{t}({c} a) {{
#if {native}
  return sub_group_scan_inclusive_{op}(a);
#else
  const uint lane = prism_lane(), size = prism_lanes();
  for (uint step = 1u; step < size; step *= 2u) {{
    const {c} b = prism_shuffle_{t}(a, (lane - step) & (size - 1u));
    if (lane >= step) a = {next};
  }}
  return a;
#endif
}})",
        next, native);
    add("prism_exclusive_scan_{op}_{t}", op,
        R"({f}{c} prism_exclusive_scan_{op}_{t}({c} x, {c} identity) {{
  const uint lane = prism_lane();
  const {c} all = prism_inclusive_scan_{op}_{t}(x);
  const {c} below = prism_shuffle_{t}(all, (lane - 1u) & (prism_lanes() - 1u));
  return lane == 0u ? identity : below;
}})");
  };
  constexpr const char* kNative = "!defined(PRISM_SUBGROUPS_BY_PTX)";
  add_all("add", type.sum, kNative);
  add_all("min", "b < a ? b : a", kNative);
  add_all("max", "a < b ? b : a", kNative);
  if (type.name[0] == 'f') return items;
  for (const auto& [op, form] : {std::pair{"and", "a & b"}, {"or", "a | b"}, {"xor", "a ^ b"}})
    add_all(op, form, "0");
  return items;
}

// NVIDIA's compiler has no subgroups but accepts PTX; its backend defines the macro. A warp has 32
// lanes.
constexpr const char* kLanes = R"(#ifdef PRISM_SUBGROUPS_BY_PTX
#define prism_lanes() 32u
#define prism_lane() ((uint)get_local_id(0) & 31u)
#define prism_subgroup() ((uint)get_local_id(0) >> 5)
#else
#define prism_lanes() get_sub_group_size()
#define prism_lane() get_sub_group_local_id()
#define prism_subgroup() get_sub_group_id()
#endif)";
constexpr const char* kFence = R"(#ifdef PRISM_SUBGROUPS_BY_PTX
#define prism_device_fence() __asm__ volatile("fence.acq_rel.gpu;" ::: "memory")
#else
#define prism_device_fence() atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device)
#endif)";
constexpr const char* kPtxShuffle = R"(#ifdef PRISM_SUBGROUPS_BY_PTX
static inline uint {0}(uint x, uint lane) {{
  uint y;
  __asm__ volatile("shfl.sync.{1}.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(y) : "r"(x), "r"(lane));
  return y;
}}
#endif)";

}  // namespace

std::vector<PreludeItem> opencl_subgroup_prelude(const char* qualifier) {
  std::vector<PreludeItem> items = {{"prism_lanes prism_lane prism_subgroup", kLanes},
                                    {"prism_device_fence", kFence, true}};
  for (const auto& [name, how] :
       {std::pair{"prism_ptx_shuffle", "idx"}, {"prism_ptx_shuffle_xor", "bfly"}})
    items.push_back({name, fmt::format(fmt::runtime(kPtxShuffle), name, how), true});
  for (const SubgroupType& type : kSubgroupTypes)
    for (PreludeItem& item : subgroup_functions(type, qualifier)) items.push_back(std::move(item));
  return items;
}

}  // namespace prism
