// Tests reading and writing GGUF files, and the errors for corrupt ones.
#include "prism/llm/gguf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "llm/gguf/gguf_types.h"
#include "llm/gguf/gguf_writer.h"
#include "support/run_program.h"
#include "support/seed.h"

namespace prism::llm {
namespace {

using Bytes = std::vector<std::byte>;

Bytes read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

void write_all(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// A small file with every metadata type, and the values of its tensors.
struct Sample {
  GgufWriter writer;
  std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = std::vector<float>(7, 0.5f);
  Sample() {
    writer.set("general.architecture", "llama");
    writer.set("u8", uint8_t{200});
    writer.set("i8", int8_t{-100});
    writer.set("u16", uint16_t{60000});
    writer.set("i16", int16_t{-30000});
    writer.set("u32", uint32_t{4000000000u});
    writer.set("i32", int32_t{-2000000000});
    writer.set("u64", uint64_t{1} << 63);
    writer.set("i64", INT64_MIN);
    writer.set("f32", 1.5f);
    writer.set("f64", 0.1);
    writer.set("yes", true);
    writer.set("no", false);
    writer.set("words", std::vector<std::string>{"", "one", "two\nlines", std::string("\0x", 2)});
    writer.set("floats", std::vector<float>{0.25f, -1.0f});
    writer.set("ints", std::vector<int32_t>{1, -2, 3});
    writer.set("bools", std::vector<bool>{true, false, true});
    writer.set_array("nested", {{1, 2}, {}, {3}});
    writer.add_tensor("a", {2, 3}, DType::f32, std::as_bytes(std::span(a)));
    writer.add_tensor("b", {7}, DType::f32, std::as_bytes(std::span(b)));
    writer.add_tensor("none", {0, 4}, DType::f16, std::span<const std::byte>());
  }
};

std::string what_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptFile) << error.what();
    return error.what();
  }
  return "nothing thrown";
}
#define EXPECT_SAYS(run, words)                             \
  do {                                                      \
    const std::string said = what_of([&] { run; });         \
    EXPECT_NE(said.find(words), std::string::npos) << said; \
  } while (false)

TEST(Gguf, RoundTripsEveryType) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "sample.gguf";
  const Sample sample;
  uint64_t last = 0;
  sample.writer.write(path, [&](uint64_t done, uint64_t all) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, all);
    last = done;
  });
  EXPECT_EQ(std::filesystem::file_size(path), sample.writer.file_bytes());

  const GgufFile file = GgufFile::open(path);
  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(file.string("general.architecture"), "llama");
  EXPECT_EQ(file.integer("u8"), 200);
  EXPECT_EQ(file.integer("i8"), -100);
  EXPECT_EQ(file.integer("u16"), 60000);
  EXPECT_EQ(file.integer("i16"), -30000);
  EXPECT_EQ(file.integer("u32"), 4000000000);
  EXPECT_EQ(file.integer("i32"), -2000000000);
  EXPECT_EQ(file.integer("i64"), INT64_MIN);
  EXPECT_EQ(file.number("u64"), 0x1p63);
  EXPECT_EQ(file.number("f32"), 1.5);
  EXPECT_EQ(file.number("f64"), 0.1);
  EXPECT_EQ(file.number("i8"), -100);
  EXPECT_TRUE(file.boolean("yes"));
  EXPECT_FALSE(file.boolean("no"));
  EXPECT_EQ(file.strings("words"),
            (std::vector<std::string_view>{"", "one", "two\nlines", std::string_view("\0x", 2)}));
  EXPECT_EQ(file.floats("floats"), (std::vector<float>{0.25f, -1.0f}));
  EXPECT_EQ(file.floats("ints"), (std::vector<float>{1, -2, 3}));
  EXPECT_EQ(file.integers("ints"), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(file.integers("bools"), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(file.find("nested")->text(), "[[1, 2], [], [3]]");
  EXPECT_EQ(file.find("nested")->type_text(), "array of array");

  EXPECT_EQ(file.integer_or("absent", 5), 5);
  EXPECT_EQ(file.number_or("absent", 0.5), 0.5);
  EXPECT_EQ(file.string_or("absent", "x"), "x");
  EXPECT_TRUE(file.boolean_or("absent", true));
  EXPECT_TRUE(file.strings("absent").empty());
  EXPECT_THROW(file.integer("absent"), Error);
  EXPECT_SAYS(file.integer("u64"), "metadata u64 is 9223372036854775808 of type u64");
  EXPECT_SAYS(file.string_or("u8", ""), "string is needed");
  EXPECT_SAYS(file.boolean("ints"), "bool is needed");
  EXPECT_SAYS(file.integers("floats"), "integer is needed");
  EXPECT_SAYS(file.strings("u8"), "array of strings is needed");

  ASSERT_EQ(file.tensors().size(), 3u);
  const GgufTensor& a = *file.find_tensor("a");
  EXPECT_EQ(a.shape, Shape({2, 3}));
  EXPECT_EQ(a.offset % 32, 0u);
  EXPECT_EQ(file.tensor(a).to_vector<float>(), sample.a);
  EXPECT_EQ(file.tensor(*file.find_tensor("b")).to_vector<float>(), sample.b);
  EXPECT_EQ(file.tensor(*file.find_tensor("none")).shape(), Shape({0, 4}));
  EXPECT_EQ(file.find_tensor("c"), nullptr);
}

TEST(Gguf, CopiesValuesOfAnotherFileByteForByte) {
  const test::TemporaryFolder folder;
  const Sample sample;
  sample.writer.write(folder / "first.gguf");
  const GgufFile file = GgufFile::open(folder / "first.gguf");
  GgufWriter copy;
  for (const auto& [key, value] : file.metadata()) copy.set(key, value);
  for (const GgufTensor& tensor : file.tensors()) copy.add_tensor(tensor, file.data(tensor));
  copy.write(folder / "second.gguf");
  EXPECT_EQ(read_all(folder / "first.gguf"), read_all(folder / "second.gguf"));
}

TEST(Gguf, TruncatedAnywhereIsAnError) {
  const test::TemporaryFolder folder;
  const Sample sample;
  sample.writer.write(folder / "whole.gguf");
  const Bytes whole = read_all(folder / "whole.gguf");
  const uint64_t needed = GgufFile::open(folder / "whole.gguf").find_tensor("b")->offset + 7 * 4;
  const std::string cut = folder / "cut.gguf";
  for (size_t bytes = 0; bytes < needed; ++bytes) {
    const Bytes head(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes));
    EXPECT_NE(what_of([&] { GgufFile::parse(head, std::max<size_t>(bytes, 1)); }), "nothing thrown")
        << bytes;
    if (bytes % 29 == 0) {
      write_all(cut, head);
      EXPECT_NE(what_of([&] { GgufFile::open(cut); }), "nothing thrown") << bytes;
    }
    // The buffer has exactly this size, so that a sanitizer detects reads beyond it. The file size
    // is known, so GgufIncomplete is expected until the header is complete, except for its padding.
    try {
      GgufFile::parse(head, whole.size());
      EXPECT_GT(bytes + 32, sample.writer.header_bytes());
    } catch (const GgufIncomplete&) {
      EXPECT_LT(bytes, sample.writer.header_bytes());
    }
  }
  write_all(cut, {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(needed)});
  EXPECT_NO_THROW(GgufFile::open(cut));
}

TEST(Gguf, AnyByteChangedIsReadOrRefused) {
  const test::TemporaryFolder folder;
  const Sample sample;
  sample.writer.write(folder / "whole.gguf");
  Bytes bytes = read_all(folder / "whole.gguf");
  bytes.resize(sample.writer.header_bytes());
  const uint32_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int times = 0; times < 4; ++times) {
      Bytes changed = bytes;
      changed[i] = times == 0 ? std::byte{0xff} : static_cast<std::byte>(random());
      try {
        const GgufFile file = GgufFile::parse(changed, sample.writer.file_bytes());
        for (const auto& [key, value] : file.metadata()) value.text();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kCorruptFile) << error.what();
      }
    }
}

// A header written by hand, for contents that GgufWriter rejects.
struct RawFile {
  std::string out = "GGUF";
  template <class T>
  RawFile& put(T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  RawFile& string(std::string_view text) {
    put<uint64_t>(text.size());
    out += text;
    return *this;
  }
  RawFile& start(uint64_t tensors, uint64_t entries, uint32_t version = 3) {
    return put<uint32_t>(version).put<uint64_t>(tensors).put<uint64_t>(entries);
  }
  RawFile& tensor(std::string_view name, std::initializer_list<uint64_t> lengths, uint32_t type,
                  uint64_t offset) {
    string(name).put<uint32_t>(static_cast<uint32_t>(lengths.size()));
    for (const uint64_t length : lengths) put(length);
    return put<uint32_t>(type).put<uint64_t>(offset);
  }
  GgufFile parse(uint64_t data_bytes = 0) {
    const uint64_t bytes = (out.size() + 31) / 32 * 32 + data_bytes;
    return GgufFile::parse(std::as_bytes(std::span(out)), bytes);
  }
};

TEST(Gguf, LyingHeadersAreErrorsThatNameTheField) {
  constexpr uint64_t kHuge = ~uint64_t{0};
  EXPECT_SAYS(RawFile().start(kHuge, 0).parse(), "the number of tensors");
  EXPECT_SAYS(RawFile().start(0, kHuge).parse(), "the number of metadata entries");
  EXPECT_SAYS(RawFile().start(0, 1000).put<uint64_t>(1).parse(), "metadata");
  EXPECT_SAYS(RawFile().start(0, 0, 1).parse(), "version 1");
  EXPECT_SAYS(RawFile().start(0, 0, 4).parse(), "version 4");
  EXPECT_SAYS(RawFile().start(0, 0, 0x03000000).parse(), "big-endian");
  EXPECT_NO_THROW(RawFile().start(0, 0, 2).parse());
  EXPECT_SAYS(RawFile().start(0, 1).put<uint64_t>(kHuge).string("pad pad").parse(),
              "metadata key 1 of 1");
  EXPECT_SAYS(RawFile().start(0, 1).string("k").put<uint32_t>(13).put<uint64_t>(0).parse(),
              "metadata k has type number 13");
  EXPECT_SAYS(RawFile().start(0, 1).string("k").put<uint32_t>(8).put<uint64_t>(kHuge).parse(),
              "metadata k");
  // 2^61 numbers of 8 bytes: the total overflows to 0.
  EXPECT_SAYS(RawFile()
                  .start(0, 1)
                  .string("k")
                  .put<uint32_t>(9)
                  .put<uint32_t>(10)
                  .put<uint64_t>(uint64_t{1} << 61)
                  .parse(),
              "the count of metadata k");
  RawFile twice;
  twice.start(0, 2);
  for (int i = 0; i < 2; ++i) twice.string("k").put<uint32_t>(0).put<uint8_t>(1);
  EXPECT_SAYS(twice.parse(), "metadata k occurs twice in the file");
  for (const uint32_t alignment : {0u, 4u, 24u})
    EXPECT_SAYS(
        RawFile().start(0, 1).string("general.alignment").put<uint32_t>(4).put(alignment).parse(),
        "general.alignment");
}

TEST(Gguf, ArraysNestToABound) {
  const auto nested = [](int depth) {
    RawFile file;
    file.start(0, 1).string("k").put<uint32_t>(9);
    for (int i = 1; i < depth; ++i) file.put<uint32_t>(9).put<uint64_t>(1);
    file.put<uint32_t>(0).put<uint64_t>(1).put<uint8_t>(7);
    return file.parse().find("k")->text();
  };
  EXPECT_EQ(nested(8), "[[[[[[[[7]]]]]]]]");
  EXPECT_SAYS(nested(9), "nested deeper than 8");
  EXPECT_SAYS(nested(100000), "nested deeper than 8");
}

TEST(Gguf, LyingTensorsAreErrorsThatNameThem) {
  constexpr uint64_t k32 = uint64_t{1} << 32;
  EXPECT_NO_THROW(RawFile().start(1, 0).tensor("t", {8}, 0, 0).parse(32));
  EXPECT_SAYS(RawFile().start(1, 0).tensor("t", {8}, 0, 0).parse(31), "tensor t ends at byte");
  EXPECT_SAYS(RawFile().start(1, 0).tensor("t", {8}, 0, 64).parse(32), "tensor t ends at byte");
  EXPECT_SAYS(RawFile().start(1, 0).tensor("t", {8}, 0, ~uint64_t{31}).parse(32), "tensor t");
  EXPECT_SAYS(RawFile().start(1, 0).tensor("t", {8}, 0, 4).parse(64), "multiple of the alignment");
  EXPECT_SAYS(RawFile().start(1, 0).tensor("t", {k32, k32}, 0, 0).parse(32), "more elements");
  EXPECT_NO_THROW(RawFile().start(1, 0).tensor("t", {k32, k32, 0}, 0, 0).parse());
  EXPECT_SAYS(RawFile().start(1, 0).tensor("t", {~uint64_t{0}}, 0, 0).parse(32), "tensor t");
  EXPECT_SAYS(RawFile().start(1, 0).tensor("t", {1, 1, 1, 1, 1}, 0, 0).parse(32), "5 dimensions");
  EXPECT_SAYS(RawFile().start(1, 0).tensor("t", {33}, 8, 0).parse(64), "blocks of 32");
  EXPECT_SAYS(RawFile().start(1, 0).tensor("t", {32}, 4, 0).parse(64), "type number 4");
  EXPECT_SAYS(RawFile().start(2, 0).tensor("t", {8}, 0, 0).tensor("t", {8}, 0, 32).parse(64),
              "tensor t occurs twice in the file");
  EXPECT_SAYS(RawFile().start(2, 0).tensor("t", {16}, 0, 0).tensor("u", {8}, 0, 32).parse(64),
              "tensors t and u overlap");
}

TEST(Gguf, TypesWithoutValuesHaveSizes) {
  RawFile raw;
  raw.start(1, 0).tensor("t", {512, 2}, 15, 0);
  const GgufFile file = raw.parse(4 * 292);
  const GgufTensor& tensor = file.tensors().front();
  EXPECT_EQ(tensor.bytes, 4u * 292);
  EXPECT_STREQ(tensor.type_name(), "q8_k");
  EXPECT_FALSE(tensor.is_supported());
  try {
    file.tensor(tensor);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    EXPECT_NE(std::string(error.what()).find("q8_k"), std::string::npos);
  }
  for (uint32_t number = 0; number < 64; ++number)
    if (const GgufTensorType* const type = gguf_tensor_type(number); type && type->element_type) {
      EXPECT_EQ(type->elements, type->element_type->block_elements()) << type->name;
      EXPECT_EQ(type->bytes, type->element_type->block_bytes()) << type->name;
      EXPECT_STREQ(type->name, type->element_type->name());
      EXPECT_EQ(gguf_number(*type->element_type), number);
    }
}

// Writes three parts: metadata in the first, split.* in all.
void write_parts(const test::TemporaryFolder& folder, int64_t claimed_tensors,
                 const std::string& second_name = "t1") {
  const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (uint16_t i = 0; i < 3; ++i) {
    GgufWriter part;
    if (i == 0) part.set("general.architecture", "llama");
    part.set("split.no", i);
    part.set("split.count", uint16_t{3});
    part.set("split.tensors.count", static_cast<int32_t>(claimed_tensors));
    part.add_tensor(i == 1 ? second_name : "t" + std::to_string(i), {i + 1}, DType::f32,
                    std::as_bytes(std::span(values)).first(4 * (i + 1)));
    part.write(folder / ("m-0000" + std::to_string(i + 1) + "-of-00003.gguf"));
  }
}

TEST(Gguf, SplitFilesOpenWithAllParts) {
  const test::TemporaryFolder folder;
  write_parts(folder, 3);
  for (const char* given : {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf"}) {
    const GgufFile file = GgufFile::open(folder / given);
    EXPECT_EQ(file.string("general.architecture"), "llama");
    ASSERT_EQ(file.tensors().size(), 3u);
    EXPECT_EQ(file.parts().size(), 3u);
    EXPECT_EQ(file.find_tensor("t2")->part, 2u);
    EXPECT_EQ(file.tensor(*file.find_tensor("t2")).to_vector<float>(),
              (std::vector<float>{1, 2, 3}));
  }
  write_parts(folder, 4);
  EXPECT_SAYS(GgufFile::open(folder / "m-00001-of-00003.gguf"), "split.tensors.count is 4");
  write_parts(folder, 3, "t0");
  EXPECT_SAYS(GgufFile::open(folder / "m-00001-of-00003.gguf"), "more than one part");
  write_parts(folder, 3);
  std::filesystem::copy_file(folder / "m-00001-of-00003.gguf", folder / "other.gguf");
  EXPECT_SAYS(GgufFile::open(folder / "other.gguf"), "rename it");
  std::filesystem::copy_file(folder / "m-00003-of-00003.gguf", folder / "m-00002-of-00003.gguf",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_SAYS(GgufFile::open(folder / "m-00001-of-00003.gguf"), "its name must end in");
  std::filesystem::remove(folder / "m-00002-of-00003.gguf");
  try {
    GgufFile::open(folder / "m-00001-of-00003.gguf");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_NE(std::string(error.what()).find("m-00002-of-00003"), std::string::npos);
  }
}

}  // namespace
}  // namespace prism::llm
