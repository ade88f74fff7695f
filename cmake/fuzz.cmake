# Owns the fuzzers: each fuzz/NAME_fuzz.cpp becomes fuzz_NAME, under libFuzzer, ASan and UBSan (clang only). Its corpus is
# fuzz/corpus/NAME. They link only instrumented copies of the parsers, which build in one minute; the library would take
# ten. The sources that parsers need from other folders are listed here.
# PRISM_FUZZ_SANITIZE=OFF leaves out the sanitizers: several times as fast, to find many inputs that reach new code.
# Those inputs are then run with the sanitizers (scripts/fuzz.sh, FUZZ_FAST).
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "PRISM_FUZZ needs clang (CXX=clang++); this is ${CMAKE_CXX_COMPILER_ID}")
endif()

set(source ${CMAKE_CURRENT_SOURCE_DIR}/src)
file(GLOB parser_sources CONFIGURE_DEPENDS ${source}/base/*.cpp ${source}/base/*/*.cpp ${source}/llm/gguf/gguf*.cpp
     ${source}/llm/chat_format/*.cpp ${source}/llm/convert/hf_*.cpp ${source}/llm/grammar/*.cpp
     ${source}/llm/template/*.cpp ${source}/llm/tokenizer/*.cpp)
list(FILTER parser_sources EXCLUDE REGEX "_test\\.cpp$")
foreach(name cli/command_line cli/conversation_text cli/fit_options cli/input cli/sampling_arguments cli/text_wrap
        cpu/convert cpu/half cpu/nearest/code_distance
        cpu/nearest/nearest cpu/nearest/score_tile
        dsl/builder dsl/operations dsl/philox dsl/values ir/kernel llm/convert/quantisation_settings
        llm/convert/sentence_piece_model llm/convert/sentence_settings
        llm/generate/candidates llm/generate/known_models llm/generate/generation
        llm/gguf/expanded_types llm/generate/penalties llm/generate/prompt_file llm/generate/sampler llm/generate/text_stream llm/model/finite_values
        llm/store/content_version llm/store/http_headers llm/store/resume runtime/device_records
        runtime/discovery/choice_record runtime/discovery/timed_record runtime/measure/calibration_record
        search/directory search/filter_parser search/vector_formats search/methods/code_space search/methods/curve
        search/methods/exact search/methods/graph search/methods/graph_build search/methods/graph_searcher
        search/methods/ivf_searcher search/methods/measure search/files/catalogue_part
        search/files/file_content search/files/ignore_rules search/files/splitter search/files/text_encoding
        search/files/text_lines search/files/words
        tensor/io/header_text tensor/io/npy_header tensor/cpu_pool tensor/io/safetensors_header tensor/shape)
  list(APPEND parser_sources ${source}/${name}.cpp)
endforeach()
list(APPEND parser_sources ${CMAKE_CURRENT_SOURCE_DIR}/tests/support/models/gguf_mutator.cpp)
option(PRISM_FUZZ_SANITIZE "Build the fuzzers with ASan and UBSan" ON)
if(PRISM_FUZZ_SANITIZE)
  set(fuzz_options -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O2 -g1)
  set(fuzz_link_options -fsanitize=fuzzer,address,undefined)
else()
  # Bounds of standard containers are still checked.
  set(fuzz_options -D_GLIBCXX_ASSERTIONS -O2)
  set(fuzz_link_options -fsanitize=fuzzer)
endif()

add_library(prism_fuzzed STATIC EXCLUDE_FROM_ALL ${parser_sources})
target_include_directories(prism_fuzzed PUBLIC ${source} ${CMAKE_CURRENT_SOURCE_DIR}/include
                           ${CMAKE_CURRENT_SOURCE_DIR}/tests)
target_compile_options(prism_fuzzed PUBLIC ${fuzz_options} -fsanitize=fuzzer-no-link)
target_link_libraries(prism_fuzzed PUBLIC ${library_dependencies} nlohmann_json::nlohmann_json CLI11::CLI11)

# The server, without TLS; some files of it need the whole library.
if(server_sources)
  set(fuzzed_server_sources ${server_sources} ${CMAKE_CURRENT_SOURCE_DIR}/tests/support/server/scripted_model.cpp)
  list(FILTER fuzzed_server_sources EXCLUDE REGEX "/(server|engine_model|searched_files)\\.cpp$")
  add_library(prism_fuzzed_server STATIC EXCLUDE_FROM_ALL ${fuzzed_server_sources})
  target_include_directories(prism_fuzzed_server SYSTEM PUBLIC ${BOOST_BEAST_INCLUDE_DIR})
  target_compile_definitions(prism_fuzzed_server PUBLIC BOOST_ERROR_CODE_HEADER_ONLY BOOST_ALL_NO_LIB)
  target_link_libraries(prism_fuzzed_server PUBLIC prism_fuzzed)
endif()

file(GLOB fuzz_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/*_fuzz.cpp)
if(NOT server_sources)
  list(FILTER fuzz_files EXCLUDE REGEX "/server_[^/]*$")
endif()
add_custom_target(fuzzers)
foreach(file IN LISTS fuzz_files)
  get_filename_component(name ${file} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${name})
  add_executable(fuzz_${name} EXCLUDE_FROM_ALL ${file})
  target_link_libraries(fuzz_${name} PRIVATE prism_fuzzed)
  if(name MATCHES "^server_")
    target_link_libraries(fuzz_${name} PRIVATE prism_fuzzed_server)
  endif()
  target_link_options(fuzz_${name} PRIVATE ${fuzz_link_options})
  add_dependencies(fuzzers fuzz_${name})
endforeach()
