# Owns the test programs: unit_tests (src/**/*_test.cpp) and one program per file of tests/.
find_package(GTest REQUIRED)
find_package(nlohmann_json REQUIRED)
include(GoogleTest)

# Paths are compiled into one file only, so that no other object depends on the build folder.
file(GLOB support_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/support/*.cpp
     ${CMAKE_CURRENT_SOURCE_DIR}/tests/support/*/*.cpp)
add_library(prism_test_support STATIC ${support_sources})
target_include_directories(prism_test_support PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/tests)
target_link_libraries(prism_test_support PUBLIC prism_internal GTest::gtest nlohmann_json::nlohmann_json
                      PRIVATE prism_warnings fmt::fmt ${CMAKE_DL_LIBS})
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/tests/support/paths.cpp PROPERTIES COMPILE_DEFINITIONS
  "PRISM_SOURCE_DIR=\"${CMAKE_CURRENT_SOURCE_DIR}\";PRISM_BINARY_DIR=\"${CMAKE_BINARY_DIR}\";PRISM_CXX_COMPILER=\"${CMAKE_CXX_COMPILER}\"")

# hiprtc is called from a separate process; see main.cpp.
add_executable(hiprtc_compile EXCLUDE_FROM_ALL tests/support/front_ends/hiprtc_compile/main.cpp tests/support/front_ends/rtc.cpp
               tests/support/shared_library.cpp)
target_include_directories(hiprtc_compile PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/tests)
target_link_libraries(hiprtc_compile PRIVATE prism_warnings ${CMAKE_DL_LIBS})
add_dependencies(prism_test_support hiprtc_compile)

# Injects faults into the program through LD_PRELOAD; see tests/support/faults/faults.h.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  add_library(fault_preload MODULE tests/support/faults/preload/fault_preload.cpp)
  set_target_properties(fault_preload PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/faults)
  target_link_libraries(fault_preload PRIVATE prism_warnings ${CMAKE_DL_LIBS})
endif()

# Tests do not use the user's cache folder.
set(test_environment "PRISM_CACHE_DIR=${CMAKE_BINARY_DIR}/test-cache")

set(test_libraries prism_test_support prism_internal prism_warnings fmt::fmt GTest::gtest GTest::gtest_main
    Threads::Threads ${CMAKE_DL_LIBS})
list(APPEND unit_test_sources ${server_tests} ${program_tests})
# Tests are not optimised: it takes 2 of 5 seconds of compiling a test (more under sanitizers) and saves little at run
# time. Those that compute much themselves are an exception: the tests of src/cpu/, and of models and ops in tests/.
if(NOT MSVC)
  set(plain_test_sources ${unit_test_sources})
  list(FILTER plain_test_sources EXCLUDE REGEX "/src/cpu/")
  set_source_files_properties(${plain_test_sources} PROPERTIES COMPILE_OPTIONS -O0)
endif()
if(unit_test_sources)
  add_executable(unit_tests ${unit_test_sources})
  target_link_libraries(unit_tests PRIVATE $<TARGET_NAME_IF_EXISTS:prism_cli> $<TARGET_NAME_IF_EXISTS:prism_server>
                        ${test_libraries})
  gtest_discover_tests(unit_tests DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    PROPERTIES LABELS unit TIMEOUT 300 ENVIRONMENT "${test_environment}")
endif()

# The unit tests of multi-threaded code, as a separate program: it builds quickly under the thread sanitizer, because it
# contains only the layers they use.
set(thread_test_sources ${unit_test_sources})
list(FILTER thread_test_sources INCLUDE REGEX "/(base/(cache_folder|system/thread_pool)|runtime/queue|backends/cpu/[a-z_]*|cpu/(attention|products/matmul))_test\\.cpp$")
set(thread_layer_sources ${library_sources})
list(FILTER thread_layer_sources EXCLUDE REGEX "/src/(tensor|ops|grad|conformance|nn|llm|search)/")
add_executable(thread_tests EXCLUDE_FROM_ALL ${thread_test_sources} ${thread_layer_sources}
               tests/support/run_program.cpp)
target_include_directories(thread_tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR}/include
                           ${CMAKE_CURRENT_SOURCE_DIR}/tests)
target_link_libraries(thread_tests PRIVATE prism_warnings fmt::fmt hwy::hwy nlohmann_json::nlohmann_json GTest::gtest
                      GTest::gtest_main Threads::Threads ${CMAKE_DL_LIBS})
# With the server, whose model is a double; of the layer llm only the parsers.
if(TARGET prism_server)
  set(thread_server_sources ${server_sources})
  list(FILTER thread_server_sources EXCLUDE REGEX "/(engine_model|searched_files)\\.cpp$")
  set(thread_parser_sources ${library_sources})
  list(FILTER thread_parser_sources INCLUDE REGEX "/src/llm/(gguf|tokenizer|template|grammar|chat_format|generate|store)/|/src/llm/model/finite_values\\.cpp$|/src/tensor/shape\\.cpp$")
  add_library(thread_parsers STATIC EXCLUDE_FROM_ALL ${thread_parser_sources} ${thread_server_sources})
  target_include_directories(thread_parsers PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR}/include)
  target_include_directories(thread_parsers SYSTEM PRIVATE ${BOOST_BEAST_INCLUDE_DIR})
  # The thread sanitizer knows no fences; the queues of Asio have locks of their own.
  target_compile_definitions(thread_parsers PRIVATE BOOST_ERROR_CODE_HEADER_ONLY BOOST_ALL_NO_LIB BOOST_ASIO_DISABLE_FENCED_BLOCK)
  target_link_libraries(thread_parsers PRIVATE prism_warnings ${library_dependencies} nlohmann_json::nlohmann_json)
  target_sources(thread_tests PRIVATE src/server/engine/engine_test.cpp tests/server/http_test.cpp
    tests/server/hostile_client_test.cpp tests/server/load_attack_test.cpp tests/server/loading_test.cpp
    tests/server/model_answer_test.cpp tests/support/http_client.cpp
    tests/support/server/load_clients.cpp tests/support/server/scripted_model.cpp
    tests/support/server/double/no_language_model.cpp)
  target_link_libraries(thread_tests PRIVATE thread_parsers)
endif()

file(GLOB test_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/*/*_test.cpp)
# Tests named after a backend need that backend.
foreach(backend IN LISTS PRISM_SWITCHED_BACKENDS)
  if(NOT backend IN_LIST PRISM_ENABLED_BACKENDS)
    list(FILTER test_files EXCLUDE REGEX "/${backend}_[^/]*$")
  endif()
endforeach()
if(NOT TARGET prism_server)
  list(FILTER test_files EXCLUDE REGEX "/tests/server/")
endif()
add_custom_target(attacks)  # what make attack runs
foreach(file IN LISTS test_files)
  get_filename_component(name ${file} NAME_WE)
  set(label unit)
  if(name MATCHES "device")
    set(label device)
  endif()
  add_executable(${name} ${file})
  if(NOT MSVC AND file MATCHES "/tests/(attack|cli|search|server)/")
    target_compile_options(${name} PRIVATE -O0)
  endif()
  target_link_libraries(${name} PRIVATE $<TARGET_NAME_IF_EXISTS:prism_cli> ${test_libraries})
  if(name MATCHES "attack")
    add_dependencies(attacks ${name})
  endif()
  if(file MATCHES "/tests/server/")
    target_link_libraries(${name} PRIVATE prism_server)
  endif()
  if(TARGET prism_program)
    add_dependencies(${name} prism_program)
  endif()
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  # Results per case, for the support table.
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 1500
    ENVIRONMENT "${test_environment};GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/results/${name}.xml")
endforeach()

# A server with scripted answers for the tests of its page (scripts/test_page.sh).
if(TARGET prism_server)
  add_executable(page_server EXCLUDE_FROM_ALL tests/server/page/page_server.cpp)
  target_link_libraries(page_server PRIVATE prism_server prism_internal prism_warnings fmt::fmt
                        nlohmann_json::nlohmann_json Threads::Threads)
endif()

# Start long tests first, so that none runs alone at the end. Costs are seconds on two cores, in the slower of
# make test and make test-devices.
foreach(cost ops_device_test=250 random_kernels_device_test=235 random_kernels_test=170 sycl_device_test=150
        printers_test=100 hip_double_test=95 front_end_printers_device_test=75 model_device_test=60
        few_row_products_device_test=60 kernels_device_test=55 metal_double_test=55 product_texts_device_test=35
        many_row_products_device_test=30 epilogues_device_test=30 generation_device_test=30)
  string(REPLACE "=" ";" cost ${cost})
  list(GET cost 0 name)
  if(TARGET ${name})
    list(GET cost 1 seconds)
    set_tests_properties(${name} PROPERTIES COST ${seconds})
  endif()
endforeach()

if(TARGET plugins_test)
  add_dependencies(plugins_test prism_backend_null)
endif()
foreach(name fault_attack_test file_search_test search_faults_test)
  if(TARGET ${name} AND TARGET fault_preload)
    add_dependencies(${name} fault_preload)
  endif()
endforeach()

# Doubles of drivers that this machine lacks: shared libraries with the driver's entry points, which the backend opens
# instead of the real one.
function(prism_add_double name)  # libNAME_double.so from the given file patterns
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/tests/doubles/)
  file(GLOB sources CONFIGURE_DEPENDS ${ARGN})
  add_library(${name}_double MODULE ${sources})
  set_target_properties(${name}_double PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/doubles)
  target_include_directories(${name}_double PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR}/src)
  target_link_libraries(${name}_double PRIVATE prism_warnings ${CMAKE_DL_LIBS})
  target_compile_definitions(${name}_double PRIVATE PRISM_CXX_COMPILER="${CMAKE_CXX_COMPILER}"
                             PRISM_SOURCE_DIR="${CMAKE_CURRENT_SOURCE_DIR}")
endfunction()

if("cuda" IN_LIST PRISM_ENABLED_BACKENDS)
  prism_add_double(cuda cuda_*.cpp host_*.cpp)
  foreach(name cuda_double_test cuda_exchange_test cuda_fallback_test cuda_products_test cuda_set_up_test)
    if(TARGET ${name})
      add_dependencies(${name} cuda_double)
    endif()
  endforeach()
endif()
if("hip" IN_LIST PRISM_ENABLED_BACKENDS)
  prism_add_double(hip hip_*.cpp cuda_*.cpp host_*.cpp)
  foreach(name hip_double_test hip_forward_device_test hip_models_device_test hip_unknown_card_device_test)
    if(TARGET ${name})
      add_dependencies(${name} hip_double)
    endif()
  endforeach()
endif()
if("metal" IN_LIST PRISM_ENABLED_BACKENDS AND NOT APPLE AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  prism_add_double(metal metal_*.cpp host_*.cpp)
  foreach(name metal_double_test metal_memory_test)
    if(TARGET ${name})
      add_dependencies(${name} metal_double)
    endif()
  endforeach()
endif()

# Scripts that test the build itself: switches, checks, the installed copy. Their arguments are the source and the build folder.
find_program(BASH_PROGRAM bash)
file(GLOB test_scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/build/*_test.sh)
if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/examples)
  list(FILTER test_scripts EXCLUDE REGEX "/(install|readme)_test\\.sh$")
endif()
foreach(file IN LISTS test_scripts)
  get_filename_component(name ${file} NAME_WE)
  if(BASH_PROGRAM AND PROJECT_IS_TOP_LEVEL)
    add_test(NAME ${name} COMMAND ${BASH_PROGRAM} ${file} ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_BINARY_DIR})
    set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 600 ENVIRONMENT "${test_environment}")
  endif()
endforeach()
