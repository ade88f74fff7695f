// Encodes SPIR-V instructions and puts the sections of a module in order.
#include "print/spirv/spirv_module.h"

namespace prism::spirv {
namespace {

void append(Words& section, Code code, const Words& operands) {
  const uint32_t count = static_cast<uint32_t>(operands.size()) + 1;
  section.push_back(count << 16 | static_cast<uint32_t>(code));
  section.insert(section.end(), operands.begin(), operands.end());
}

// A string as words, lowest byte first, terminated by at least one zero byte.
Words text_words(std::string_view text) {
  Words words(text.size() / 4 + 1, 0);
  for (size_t i = 0; i < text.size(); ++i)
    words[i / 4] |= static_cast<uint32_t>(static_cast<unsigned char>(text[i])) << (8 * (i % 4));
  return words;
}

Words joined(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

void Module::use_vulkan_memory_model() {
  vulkan_memory_model_ = true;
  require(Capability::VulkanMemoryModel);
  require(Capability::VulkanMemoryModelDeviceScope);
}

Id Module::declare(Code code, Words operands) {
  Words key = joined({static_cast<uint32_t>(code)}, operands);
  Id& id = declared_[std::move(key)];
  if (!id) {
    id = new_id();
    append(globals_, code, joined({id}, operands));
  }
  return id;
}

Id Module::declare_typed(Code code, Id type, Words operands) {
  Words key = joined({static_cast<uint32_t>(code), type}, operands);
  Id& id = declared_[std::move(key)];
  if (!id) {
    id = new_id();
    append(globals_, code, joined({type, id}, operands));
  }
  return id;
}

Id Module::pointer_type(StorageClass storage, Id to) {
  return declare(Code::TypePointer, {static_cast<uint32_t>(storage), to});
}

Id Module::new_struct(const Words& members) {
  const Id id = new_id();
  append(globals_, Code::TypeStruct, joined({id}, members));
  return id;
}

Id Module::buffer_type(Id element, uint32_t stride) {
  const bool is_new = !declared_.contains({static_cast<uint32_t>(Code::TypeRuntimeArray), element});
  const Id array = declare(Code::TypeRuntimeArray, {element});
  const Id structure = declare(Code::TypeStruct, {array});
  if (is_new) {
    decorate(array, Decoration::ArrayStride, {stride});
    decorate(structure, Decoration::Block);
    decorate_member(structure, 0, Decoration::Offset, {0});
  }
  return structure;
}

Id Module::constant(Id type, uint64_t bits, uint32_t width) {
  Words value = {static_cast<uint32_t>(bits)};
  if (width == 64) value.push_back(static_cast<uint32_t>(bits >> 32));
  return declare_typed(Code::Constant, type, value);
}

Id Module::constant_bool(bool value) {
  return declare_typed(value ? Code::ConstantTrue : Code::ConstantFalse, bool_type(), {});
}

Id Module::global_variable(StorageClass storage, Id type) {
  const Id pointer = pointer_type(storage, type);
  const Id id = new_id();
  append(globals_, Code::Variable, {pointer, id, static_cast<uint32_t>(storage)});
  global_ids_.push_back(id);
  return id;
}

Id Module::input_variable(BuiltIn builtin, Id type) {
  Id& id = inputs_[static_cast<uint32_t>(builtin)];
  if (!id) {
    const Id pointer = pointer_type(StorageClass::Input, type);
    id = new_id();
    append(globals_, Code::Variable, {pointer, id, static_cast<uint32_t>(StorageClass::Input)});
    decorate(id, Decoration::BuiltIn, {static_cast<uint32_t>(builtin)});
    input_ids_.push_back(id);
  }
  return id;
}

Id Module::function_variable(Id type) {
  const Id pointer = pointer_type(StorageClass::Function, type);
  const Id id = new_id();
  append(function_variables_, Code::Variable,
         {pointer, id, static_cast<uint32_t>(StorageClass::Function)});
  return id;
}

void Module::name(Id id, std::string_view text) {
  append(names_, Code::Name, joined({id}, text_words(text)));
}

void Module::decorate(Id id, Decoration decoration, const Words& operands) {
  append(decorations_, Code::Decorate, joined({id, static_cast<uint32_t>(decoration)}, operands));
}

void Module::decorate_member(Id type, uint32_t member, Decoration decoration,
                             const Words& operands) {
  append(decorations_, Code::MemberDecorate,
         joined({type, member, static_cast<uint32_t>(decoration)}, operands));
}

void Module::execution_mode(ExecutionMode mode, const Words& operands) {
  if (!main_) main_ = new_id();
  append(modes_, Code::ExecutionMode, joined({main_, static_cast<uint32_t>(mode)}, operands));
}

Id Module::emit(Code code, Id type, const Words& operands) {
  const Id id = new_id();
  append(body_, code, joined({type, id}, operands));
  return id;
}

void Module::emit_void(Code code, const Words& operands) { append(body_, code, operands); }

Id Module::glsl(Glsl instruction, Id type, const Words& operands) {
  if (!glsl_) glsl_ = new_id();
  return emit(Code::ExtInst, type, joined({glsl_, static_cast<uint32_t>(instruction)}, operands));
}

void Module::label(Id id) {
  append(body_, Code::Label, {id});
  current_label_ = id;
}

Words Module::finish(std::string_view entry) {
  if (!main_) main_ = new_id();
  const Id nothing = void_type();
  const Id signature = declare(Code::TypeFunction, {nothing});
  const Id first_label = new_id();

  Words words = {kMagic, vulkan_memory_model_ ? kVersion16 : kVersion13, 0, 0, 0};
  for (uint32_t capability : capabilities_) append(words, Code::Capability, {capability});
  for (const std::string& extension : extensions_)
    append(words, Code::Extension, text_words(extension));
  if (glsl_) append(words, Code::ExtInstImport, joined({glsl_}, text_words("GLSL.std.450")));
  append(words, Code::MemoryModel,
         {kAddressingLogical, vulkan_memory_model_ ? kMemoryModelVulkan : kMemoryModelGLSL450});
  Words interface = joined({kExecutionModelGLCompute, main_}, text_words(entry));
  interface = joined(std::move(interface), input_ids_);
  // Since SPIR-V 1.4 the interface lists every variable.
  if (vulkan_memory_model_) interface = joined(std::move(interface), global_ids_);
  append(words, Code::EntryPoint, interface);
  for (const Words* section : {&modes_, &names_, &decorations_, &globals_})
    words.insert(words.end(), section->begin(), section->end());
  append(words, Code::Function, {nothing, main_, 0, signature});
  append(words, Code::Label, {first_label});
  words.insert(words.end(), function_variables_.begin(), function_variables_.end());
  // The body has its own label, because its variables are known only now.
  append(words, Code::Branch, {body_.at(1)});
  words.insert(words.end(), body_.begin(), body_.end());
  append(words, Code::Return, {});
  append(words, Code::FunctionEnd, {});
  words[3] = next_id_;
  return words;
}

}  // namespace prism::spirv
