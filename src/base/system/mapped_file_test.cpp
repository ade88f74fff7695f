// Tests which addresses belong to a mapped file.
#include "base/system/mapped_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/run_program.h"

namespace prism {
namespace {

#ifndef _WIN32
TEST(MappedFile, IsFoundByTheAddressesOfItsPages) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "some", other = folder / "other";
  test::write_file(path, std::string(10000, 'a'));
  test::write_file(other, std::string(5000, 'b'));
  const MappedFile kept = map_file(other, MapAccess::read);
  const std::byte* address = nullptr;
  {
    const MappedFile mapped = map_file(path, MapAccess::read);
    address = mapped.data.get();
    EXPECT_STREQ(mapped_file_at(address), path.c_str());
    EXPECT_STREQ(mapped_file_at(address + 9999), path.c_str());
    EXPECT_STREQ(mapped_file_at(kept.data.get()), other.c_str());
  }
  EXPECT_EQ(mapped_file_at(address), nullptr) << "unmapped";
  EXPECT_EQ(mapped_file_at(&folder), nullptr);
  EXPECT_EQ(mapped_file_at(nullptr), nullptr);
  // Places of the list are used again.
  for (int i = 0; i < 100; ++i) {
    const std::vector<MappedFile> several(3, map_file(path, MapAccess::read));
    EXPECT_STREQ(mapped_file_at(several[2].data.get()), path.c_str());
  }
  EXPECT_STREQ(mapped_file_at(kept.data.get()), other.c_str());
}
#endif

}  // namespace
}  // namespace prism
