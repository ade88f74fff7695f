// The fixture of the matrix product tests.
#include "support/ops/products_anywhere.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <iostream>

#include "prism/device.h"
#include "support/devices/devices.h"
#include "support/seed.h"

namespace prism::testing_support {

std::vector<Place> places() {
  std::vector<Place> all = {{"checked", nullptr}};
  for (const BackendReport& report : discover_backends())
    for (const auto& driver : report.devices) all.push_back({driver->info().id, driver});
  return all;
}

std::string place_name(const testing::TestParamInfo<Place>& info) {
  std::string name = info.param.name;
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

KernelCase case_of(const ops::ProductLaunch& launch) {
  KernelCase one;
  one.groups = launch.groups;
  one.params = launch.params;
  return one;
}

void ProductsAnywhere::SetUp() { random_ = CaseRandom(run_seed()); }

void ProductsAnywhere::TearDown() {
  std::cout << programs_.size() << " programs, " << not_drawn_ << " sets of cases not drawn\n";
  for (const auto& [name, seconds] : programs_)
    if (seconds > 1) std::cout << "  " << name << ": " << seconds << " s\n";
  EXPECT_LE(programs_.size(), 50u) << "one test";  // two for each of the 23 block types
}

Contents ProductsAnywhere::run_all(const ir::Kernel& kernel, const KernelCase& one) {
  const auto start = std::chrono::steady_clock::now();
  Contents contents = GetParam().driver ? run_case(Device(GetParam().driver, ""), kernel, one)
                                        : interpret_case(kernel, one, 32);
  programs_.try_emplace(
      kernel.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return contents;
}

std::vector<std::byte> ProductsAnywhere::run(const ir::Kernel& kernel, const KernelCase& one) {
  return run_all(kernel, one).back();
}

bool ProductsAnywhere::compiles_slowly() const {
  return GetParam().driver && GetParam().driver->info().software;
}

bool ProductsAnywhere::is_intel() const {
  return GetParam().driver && test::is_intels_opencl(GetParam().driver->info());
}

std::vector<ElementType> ProductsAnywhere::drawn(std::vector<ElementType> types, size_t count) {
  if (!compiles_slowly()) return types;
  if (is_intel()) count = 1;
  std::cout << "drawn:";
  while (types.size() > count)
    types.erase(types.begin() + static_cast<std::ptrdiff_t>(random_.next() % types.size()));
  for (const ElementType type : types) std::cout << " " << type.name();
  std::cout << std::endl;
  return types;
}

bool ProductsAnywhere::takes(uint32_t one_of) {
  if (!compiles_slowly() || (random_.next() % one_of == 0 && !is_intel())) return true;
  ++not_drawn_;
  return false;
}

std::vector<std::byte> ProductsAnywhere::rounded_buffer(const Matrix& x) {
  const ops::ProductLaunch launch = ops::round_rows_launch(x.rows, x.k, x.k);
  KernelCase one = case_of(launch);
  one.buffers = {x.bytes, kernels::poison(ops::rounded_bytes(x.rows, x.k) / 4, DType::u32)};
  return run(ops::round_rows(x.type.plain()), one);
}

ir::Capabilities ProductsAnywhere::capabilities() const {
  if (GetParam().driver) return GetParam().driver->info().capabilities;
  ir::Capabilities plain;
  plain.shared_bytes = 32 << 10;
  return plain;
}

}  // namespace prism::testing_support
