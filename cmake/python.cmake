# Builds the Python package's extension module prismrt/_core from python/src/ and installs it as the component `python`, which
# is what pyproject.toml packs into the wheel. The program is part of the module: `python -m prismrt` calls it. nanobind's split mode gives one module for CPython 3.10 and
# later: its compiled part comes from the package nanobind-backend at run time.
if(NOT TARGET prism_cli)
  message(FATAL_ERROR "PRISM_PYTHON needs PRISM_PROGRAM: `python -m prismrt` is the program")
endif()
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_folder
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
find_package(nanobind 3.1 CONFIG REQUIRED HINTS ${nanobind_folder})

file(GLOB python_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/python/src/*.cpp)
nanobind_add_module(prism_python STABLE_ABI BACKEND_MODULE nanobind_backend NB_SUPPRESS_WARNINGS NOMINSIZE ${python_sources})
# Operators and functions of tensors, and decoding, are called often; the wheel is small because the rest is compiled for size.
set(small_sources ${python_sources})
list(FILTER small_sources EXCLUDE REGEX "/(tensors|functions|indexing|dlpack|models)\\.cpp$")
set_source_files_properties(${small_sources} PROPERTIES COMPILE_OPTIONS -Os)
set_target_properties(prism_python PROPERTIES OUTPUT_NAME _core LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/prismrt)
target_link_libraries(prism_python PRIVATE prism_cli prism_internal prism_warnings)
target_compile_definitions(prism_python PRIVATE PRISM_VERSION="${PROJECT_VERSION}")
if(NOT APPLE AND NOT WIN32)
  # Other extension modules of the process see nothing of the libraries inside.
  target_link_options(prism_python PRIVATE -Wl,--exclude-libs,ALL)
endif()
# The types of the module for editors and mypy.
nanobind_add_stub(prism_python_stub MODULE _core INCLUDE_PRIVATE PYTHON_PATH ${CMAKE_BINARY_DIR}/python/prismrt DEPENDS prism_python
                  OUTPUT ${CMAKE_BINARY_DIR}/python/prismrt/_core.pyi PATTERN_FILE ${CMAKE_CURRENT_SOURCE_DIR}/python/stub_patterns.txt)
install(FILES ${CMAKE_BINARY_DIR}/python/prismrt/_core.pyi DESTINATION prismrt COMPONENT python)
install(TARGETS prism_python LIBRARY DESTINATION prismrt COMPONENT python)
