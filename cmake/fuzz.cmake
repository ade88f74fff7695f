# Owns the fuzzers: each fuzz/NAME_fuzz.cpp becomes fuzz_NAME, under libFuzzer, ASan and UBSan (clang only). Its corpus is
# fuzz/corpus/NAME. They link only sanitised copies of the parsers, which build in one minute; the library would take ten.
# The sources that parsers need from other folders are listed here.
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "PRISM_FUZZ needs clang (CXX=clang++); this is ${CMAKE_CXX_COMPILER_ID}")
endif()

file(GLOB parser_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/base/*.cpp
     ${CMAKE_CURRENT_SOURCE_DIR}/src/base/*/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/src/llm/*/*.cpp
     ${CMAKE_CURRENT_SOURCE_DIR}/src/tensor/shape.cpp)
list(FILTER parser_sources EXCLUDE REGEX "_test\\.cpp$")
set(fuzz_options -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1 -g1)

add_library(prism_fuzzed STATIC EXCLUDE_FROM_ALL ${parser_sources})
target_include_directories(prism_fuzzed PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR}/include)
target_compile_options(prism_fuzzed PUBLIC ${fuzz_options} -fsanitize=fuzzer-no-link)
target_link_libraries(prism_fuzzed PUBLIC ${library_dependencies} nlohmann_json::nlohmann_json)

file(GLOB fuzz_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/*_fuzz.cpp)
add_custom_target(fuzzers)
foreach(file IN LISTS fuzz_files)
  get_filename_component(name ${file} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${name})
  add_executable(fuzz_${name} EXCLUDE_FROM_ALL ${file})
  target_link_libraries(fuzz_${name} PRIVATE prism_fuzzed)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer,address,undefined)
  add_dependencies(fuzzers fuzz_${name})
endforeach()
