// Files of tensors: what is written can be read, byte by byte what NumPy and safetensors write, and
// broken files are errors.
#include "prism/io.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "prism/error.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

struct IoTest : ::testing::Test {
  fs::path folder = fs::temp_directory_path() / ("prism-io-test-" + std::to_string(getpid()));
  IoTest() { fs::create_directories(folder); }
  ~IoTest() override { fs::remove_all(folder); }

  std::string path(const char* name) const { return (folder / name).string(); }
  std::string write(const char* name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string bytes_of(const char* name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static ErrorCode code_of(const std::string& file) {
    try {
      load(file, Device::cpu());
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(file), std::string::npos) << error.what();
      return error.code();
    }
    ADD_FAILURE() << file << " was loaded";
    return ErrorCode::kDriver;
  }
};

// As numpy.save writes it: version 1.0, header padded to a multiple of 64 with its newline.
std::string npy(std::string dictionary, const std::string& elements) {
  dictionary.resize(128 - 11, ' ');
  dictionary += '\n';
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + dictionary + elements;
}

std::string safetensors(const std::string& header, const std::string& elements) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + elements;
}

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

TEST_F(IoTest, NpyHoldsEveryTypeItKnows) {
  const std::vector<double> values = {0, 1, 0, 1, 1, 0};
  for (const DType type : {DType::f32, DType::f64, DType::f16, DType::i8, DType::u8, DType::i16,
                           DType::i32, DType::i64, DType::b1}) {
    save(path("x.npy"), from_doubles(values, {2, 3}, type, Device::cpu()));
    const Tensor x = load(path("x.npy"), Device::cpu());
    EXPECT_EQ(x.dtype(), ElementType(type));
    EXPECT_EQ(x.shape(), (Shape{2, 3}));
    EXPECT_EQ(x.to_doubles(), values);
  }
  EXPECT_THROW(save(path("x.npy"), empty({2}, DType::bf16, Device::cpu())), Error);
  EXPECT_THROW(save(path("x.txt"), empty({2}, DType::f32, Device::cpu())), Error);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1) << "temporary files are left";
}

TEST_F(IoTest, NpyIsWrittenAsNumpyWritesIt) {
  save(path("x.npy"), from_vector({1.0f, 2.0f}, {2}, Device::cpu()));
  EXPECT_EQ(bytes_of("x.npy"),
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, ), }", floats({1, 2})));
  save(path("y.npy"), from_vector({1.0f}, {}, Device::cpu()));
  EXPECT_EQ(load(path("y.npy"), Device::cpu()).shape(), Shape{});
}

TEST_F(IoTest, NpyOfNumpyIsRead) {
  const std::string c = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  EXPECT_EQ(load(write("c.npy", npy(c, floats({1, 2, 3, 4, 5, 6}))), Device::cpu()).to_doubles(),
            (std::vector<double>{1, 2, 3, 4, 5, 6}));
  const std::string f = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
  const Tensor x = load(write("f.npy", npy(f, floats({1, 4, 2, 5, 3, 6}))), Device::cpu());
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.to_doubles(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  const std::string none = "{'descr': '|b1', 'fortran_order': False, 'shape': (0, 3), }";
  EXPECT_EQ(load(write("n.npy", npy(none, "")), Device::cpu()).shape(), (Shape{0, 3}));
}

TEST_F(IoTest, BrokenNpyIsAnError) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  const std::string whole = npy(good, floats({1, 2}));
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(code_of(write("cut.npy", whole.substr(0, length))), ErrorCode::kCorruptFile)
        << length;
  const auto code = [&](const std::string& header) {
    return code_of(write("bad.npy", npy(header, floats({1, 2}))));
  };
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"),
            ErrorCode::kCorruptFile);
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': False, }"), ErrorCode::kCorruptFile);
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,), }"), ErrorCode::kCorruptFile);
  EXPECT_EQ(code("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"),
            ErrorCode::kCorruptFile);
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }"),
            ErrorCode::kCorruptFile);
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"),
            ErrorCode::kCorruptFile);
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2), }"),
            ErrorCode::kCorruptFile);
  EXPECT_EQ(code("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }"),
            ErrorCode::kNotSupported);
  EXPECT_EQ(code("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }"),
            ErrorCode::kNotSupported);
  EXPECT_EQ(code("{'descr': '|b1', 'fortran_order': False, 'shape': (8,), }"),
            ErrorCode::kCorruptFile)
      << "bytes that are neither 0 nor 1";
  EXPECT_EQ(code_of(path("none.npy")), ErrorCode::kNotFound);
}

TEST_F(IoTest, SafetensorsHoldsSeveralTensors) {
  const std::map<std::string, Tensor> tensors = {
      {"layer.\"0\"\n", from_vector({1.5f, -2.0f, 3.0f}, {3, 1}, Device::cpu())},
      {"half", from_doubles(std::vector<double>{0.5, 2}, {2}, DType::bf16, Device::cpu())},
      {"many", from_vector(std::vector<int64_t>{INT64_MIN, INT64_MAX}, {2}, Device::cpu())},
      {"mask", from_doubles(std::vector<double>{1, 0, 1}, {3}, DType::b1, Device::cpu())},
      {"nothing", empty({0, 4}, DType::f64, Device::cpu())},
  };
  save_safetensors(path("x.safetensors"), tensors);
  const auto loaded = load_safetensors(path("x.safetensors"), Device::cpu());
  ASSERT_EQ(loaded.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_TRUE(loaded.contains(name)) << name;
    EXPECT_EQ(loaded.at(name).dtype(), tensor.dtype());
    EXPECT_EQ(loaded.at(name).shape(), tensor.shape());
    EXPECT_EQ(loaded.at(name).to_bytes(), tensor.to_bytes());
  }
  EXPECT_THROW(load(path("x.safetensors"), Device::cpu()), Error) << "several tensors";
  save(path("one.safetensors"), tensors.at("half"));
  EXPECT_EQ(load(path("one.safetensors"), Device::cpu()).to_doubles(),
            (std::vector<double>{0.5, 2}));
}

TEST_F(IoTest, SafetensorsIsWrittenInItsFormat) {
  save_safetensors(path("x.safetensors"), {{"a", from_vector({1.0f}, {1}, Device::cpu())}});
  std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(bytes_of("x.safetensors"), safetensors(header, floats({1})));
}

TEST_F(IoTest, SafetensorsOfOthersIsRead) {
  const auto file = load_safetensors(
      write("x.safetensors",
            safetensors(R"({"__metadata__": {"format": "pt"}, "b\u00e9\ud83d\ude00": )"
                        R"({"shape": [ ], "data_offsets": [4, 8], "dtype": "F32"},)"
                        R"( "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}} )",
                        floats({1, 2}))),
      Device::cpu());
  EXPECT_EQ(file.at("a").item(), 1);
  EXPECT_EQ(file.at("b\xc3\xa9\xf0\x9f\x98\x80").item(), 2);
}

TEST_F(IoTest, BrokenSafetensorsIsAnError) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::string whole = safetensors(good, floats({1, 2}));
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(code_of(write("cut.safetensors", whole.substr(0, length))), ErrorCode::kCorruptFile)
        << length;
  const auto code = [&](const std::string& header) {
    return code_of(write("bad.safetensors", safetensors(header, floats({1, 2}))));
  };
  for (const char* header : {
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})",
           R"({"a":{"dtype":"F32","shape":[2]}})",
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})",
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)",
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} x)",
           R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})",
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
           R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
           R"({"a\ud83d":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
           R"(["a"])",
       })
    EXPECT_EQ(code(header), ErrorCode::kCorruptFile) << header;
  EXPECT_EQ(code(R"({"a":{"dtype":"U32","shape":[2],"data_offsets":[0,8]}})"),
            ErrorCode::kNotSupported);
  std::string long_header = whole;
  long_header[6] = '\x7f';  // a length of 2^55
  EXPECT_EQ(code_of(write("long.safetensors", long_header)), ErrorCode::kCorruptFile);
}

}  // namespace
}  // namespace prism
