// The SPIR-V opcodes and enumerants that the printer uses, with the specification's names.
#pragma once

#include <cstdint>

namespace prism::spirv {

inline constexpr uint32_t kMagic = 0x07230203;
inline constexpr uint32_t kVersion13 = 0x00010300;
inline constexpr uint32_t kVersion16 = 0x00010600;

// clang-format off
// Instructions.
enum class Code : uint32_t {
  Name = 5, Extension = 10, ExtInstImport = 11, ExtInst = 12, MemoryModel = 14, EntryPoint = 15,
  ExecutionMode = 16, Capability = 17, TypeVoid = 19, TypeBool = 20, TypeInt = 21, TypeFloat = 22,
  TypeVector = 23, TypeArray = 28, TypeRuntimeArray = 29, TypeStruct = 30, TypePointer = 32,
  TypeFunction = 33, ConstantTrue = 41, ConstantFalse = 42, Constant = 43, ConstantNull = 46,
  Function = 54, FunctionEnd = 56, Variable = 59, Load = 61, Store = 62, AccessChain = 65,
  Decorate = 71, MemberDecorate = 72, CompositeConstruct = 80, CompositeExtract = 81,
  ConvertFToU = 109, ConvertFToS = 110, ConvertSToF = 111, ConvertUToF = 112, UConvert = 113,
  SConvert = 114, FConvert = 115, Bitcast = 124, SNegate = 126, FNegate = 127, IAdd = 128,
  FAdd = 129, ISub = 130, FSub = 131, IMul = 132, FMul = 133, UDiv = 134, SDiv = 135, FDiv = 136,
  UMulExtended = 151, SMulExtended = 152, LogicalEqual = 164, LogicalNotEqual = 165,
  LogicalOr = 166, LogicalAnd = 167, LogicalNot = 168, Select = 169, IEqual = 170,
  INotEqual = 171, UGreaterThan = 172, SGreaterThan = 173, UGreaterThanEqual = 174,
  SGreaterThanEqual = 175, ULessThan = 176, SLessThan = 177, ULessThanEqual = 178,
  SLessThanEqual = 179, FOrdEqual = 180, FUnordNotEqual = 183, FOrdLessThan = 184,
  FOrdGreaterThan = 186, FOrdLessThanEqual = 188, FOrdGreaterThanEqual = 190,
  ShiftRightLogical = 194, ShiftRightArithmetic = 195, ShiftLeftLogical = 196, BitwiseOr = 197,
  BitwiseXor = 198, BitwiseAnd = 199, Not = 200, BitFieldInsert = 201, BitFieldSExtract = 202,
  BitFieldUExtract = 203, BitCount = 205, ControlBarrier = 224, MemoryBarrier = 225, AtomicExchange = 229,
  AtomicCompareExchange = 230, AtomicIAdd = 234, AtomicSMin = 236, AtomicUMin = 237,
  AtomicSMax = 238, AtomicUMax = 239, AtomicAnd = 240, AtomicOr = 241, AtomicXor = 242, Phi = 245,
  LoopMerge = 246, SelectionMerge = 247, Label = 248, Branch = 249, BranchConditional = 250,
  Return = 253, GroupNonUniformShuffle = 345, GroupNonUniformShuffleXor = 346,
  GroupNonUniformIAdd = 349, GroupNonUniformFAdd = 350, GroupNonUniformSMin = 353,
  GroupNonUniformUMin = 354, GroupNonUniformFMin = 355, GroupNonUniformSMax = 356,
  GroupNonUniformUMax = 357, GroupNonUniformFMax = 358, GroupNonUniformBitwiseAnd = 359,
  GroupNonUniformBitwiseOr = 360, GroupNonUniformBitwiseXor = 361,
  GroupNonUniformLogicalAnd = 362, GroupNonUniformLogicalOr = 363,
  GroupNonUniformLogicalXor = 364, SDot = 4450, UDot = 4451, TypeCooperativeMatrixKHR = 4456,
  CooperativeMatrixLoadKHR = 4457, CooperativeMatrixStoreKHR = 4458,
  CooperativeMatrixMulAddKHR = 4459, AtomicFAddEXT = 6035,
};

// Instructions of the extended set GLSL.std.450.
enum class Glsl : uint32_t {
  RoundEven = 2, Trunc = 3, FAbs = 4, Floor = 8, Ceil = 9, Sin = 13, Cos = 14, Tanh = 21,
  Exp = 27, Log = 28, Exp2 = 29, Log2 = 30, Sqrt = 31, InverseSqrt = 32, Fma = 50,
  UnpackHalf2x16 = 62, FindUMsb = 75,
};

enum class Capability : uint32_t {
  Shader = 1, Float16 = 9, Float64 = 10, Int64 = 11, Int16 = 22, Int8 = 39, GroupNonUniform = 61,
  GroupNonUniformArithmetic = 63, GroupNonUniformShuffle = 65, StorageBuffer16BitAccess = 4433,
  StorageBuffer8BitAccess = 4448, DenormPreserve = 4464, SignedZeroInfNanPreserve = 4466,
  RoundingModeRTE = 4467, VulkanMemoryModel = 5345, VulkanMemoryModelDeviceScope = 5346,
  DotProductInput4x8BitPacked = 6018, DotProduct = 6019, CooperativeMatrixKHR = 6022,
  AtomicFloat32AddEXT = 6033,
};

enum class ExecutionMode : uint32_t {
  LocalSize = 17, DenormPreserve = 4459, SignedZeroInfNanPreserve = 4461, RoundingModeRTE = 4462,
};

enum class Decoration : uint32_t {
  Block = 2, ArrayStride = 6, BuiltIn = 11, Aliased = 20, Coherent = 23, NonWritable = 24, Binding = 33,
  DescriptorSet = 34, Offset = 35, NoContraction = 42,
};

enum class BuiltIn : uint32_t {
  NumWorkgroups = 24, WorkgroupId = 26, LocalInvocationIndex = 29, SubgroupId = 40,
  SubgroupLocalInvocationId = 41,
};

enum class StorageClass : uint32_t {
  Input = 1, Workgroup = 4, Function = 7, PushConstant = 9, StorageBuffer = 12,
};

enum class Scope : uint32_t {
  Device = 1, Workgroup = 2, Subgroup = 3,
};

// clang-format on

inline constexpr uint32_t kExecutionModelGLCompute = 5;
inline constexpr uint32_t kAddressingLogical = 0;
inline constexpr uint32_t kMemoryModelGLSL450 = 1;
inline constexpr uint32_t kMemoryModelVulkan = 3;
inline constexpr uint32_t kLoopControlNone = 0, kLoopControlUnroll = 1, kLoopControlDontUnroll = 2;
inline constexpr uint32_t kSelectionControlNone = 0;
inline constexpr uint32_t kPackedVectorFormat4x8Bit = 0;
// Memory semantics.
inline constexpr uint32_t kAcquireRelease = 0x8, kUniformMemory = 0x40, kWorkgroupMemory = 0x100,
                          kMakeAvailable = 0x2000, kMakeVisible = 0x4000;
// Memory operands.
inline constexpr uint32_t kNonPrivatePointer = 0x20;
// Group operations.
inline constexpr uint32_t kReduce = 0, kInclusiveScan = 1, kExclusiveScan = 2;
// Cooperative matrices: layouts, uses, operand flags.
inline constexpr uint32_t kRowMajor = 0, kColumnMajor = 1;
inline constexpr uint32_t kUseA = 0, kUseB = 1, kUseAccumulator = 2;
inline constexpr uint32_t kSignedA = 1, kSignedB = 2, kSignedC = 4, kSignedResult = 8;

}  // namespace prism::spirv
