// Tests SHA-256 against known digests and with input split into arbitrary pieces.
#include "base/sha256.h"
#include "support/seed.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace prism {
namespace {

std::string digest(std::string_view text) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.finish();
}

TEST(Sha256, KnownDigests) {  // examples from FIPS 180-4
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesMakeNoDifference) {
  const uint32_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (size_t bytes = 0; bytes < 200; ++bytes) {
    std::string text(bytes, '\0');
    for (char& c : text) c = static_cast<char>(random());
    Sha256 hash;
    for (size_t at = 0; at < bytes;) {
      const size_t piece = std::min<size_t>(random() % 80, bytes - at);
      hash.update(std::as_bytes(std::span(text).subspan(at, piece)));
      at += piece;
    }
    EXPECT_EQ(hash.finish(), digest(text)) << bytes;
  }
}

TEST(Sha256, OfAFileThatIsNotThere) { EXPECT_ANY_THROW(sha256_of_file("/no/such/file")); }

}  // namespace
}  // namespace prism
