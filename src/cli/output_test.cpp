// Tests the escaping of the program's output streams.
#include "cli/output.h"

#include <gtest/gtest.h>

#include <iostream>
#include <sstream>

#include "prism/error.h"

namespace prism::cli {
namespace {

// Puts a buffer in the place of the system's standard output.
class Redirected {
 public:
  explicit Redirected(std::streambuf* to) : before_(std::cout.rdbuf(to)) {}
  ~Redirected() {
    std::cout.clear();
    std::cout.rdbuf(before_);
  }

 private:
  std::streambuf* before_;
};

TEST(ProgramOutput, EscapesEverythingButItsOwnSequences) {
  std::stringbuf written;
  const Redirected redirected(&written);
  {
    ProgramOutput output;
    std::cout << "a\x1b[2J" << '\x9b' << '\r' << "b\n\tc" << control_sequence("\033[1m") << "d";
    std::cout << "\xc3" << std::flush << "\xbc" << 7 << std::flush;
    output.finish();
    std::cout << std::string(100000, 'x') << "\xe2\x80";
  }
  EXPECT_EQ(written.str(),
            "a\\u001b[2J\\x9b\\u000db\n\tc\033[1md\xc3\xbc"
            "7" +
                std::string(100000, 'x') + "\\xe2\\x80");
}

TEST(ProgramOutput, ASequenceCannotBeImitated) {
  const std::string real = control_sequence("\033[1m");
  std::stringbuf written;
  const Redirected redirected(&written);
  {
    const ProgramOutput output;
    std::cout << real.substr(0, 5) << "0123456789abcdef0123456789ab\033[1m\a";
  }
  EXPECT_EQ(written.str().find('\033'), std::string::npos) << written.str();
}

TEST(ProgramOutput, GeneratedTextIsUnchangedInAFile) {
  std::stringbuf written;
  const Redirected redirected(&written);
  {
    ProgramOutput output;
    std::cout << "\x1b";
    EXPECT_TRUE(write_generated("\x1b[1m\xff"));
    std::cout << "\x1b";
  }
  EXPECT_EQ(written.str(), "\\u001b\x1b[1m\xff\\u001b");
}

// A disk with room for some bytes.
class FullDisk : public std::streambuf {
 public:
  explicit FullDisk(std::streamsize room) : room_(room) {}

 protected:
  std::streamsize xsputn(const char*, std::streamsize count) override {
    if (count > room_) errno = ENOSPC;
    return count <= room_ ? count : 0;
  }

 private:
  std::streamsize room_;
};

TEST(ProgramOutput, AFailedWriteIsAnError) {
  for (const bool generated : {false, true}) {
    FullDisk disk(10);
    const Redirected redirected(&disk);
    ProgramOutput output;
    std::cout << "short";
    EXPECT_NO_THROW(output.finish());
    if (generated)
      EXPECT_FALSE(write_generated("longer than the room"));
    else
      std::cout << "longer than the room";
    try {
      output.finish();
      ADD_FAILURE() << "the text is lost";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace prism::cli
