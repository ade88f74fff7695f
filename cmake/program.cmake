# Builds the program in the root of the build folder; everything but main.cpp is a library, so that tests can link it.
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/src/cli/app.cpp PROPERTIES COMPILE_DEFINITIONS
                            "PRISM_VERSION=\"${PROJECT_VERSION}\"")
set(main_source ${CMAKE_CURRENT_SOURCE_DIR}/src/cli/main.cpp)
list(REMOVE_ITEM program_sources ${main_source})
if(program_sources)
  add_library(prism_cli STATIC ${program_sources})
  set_target_properties(prism_cli PROPERTIES POSITION_INDEPENDENT_CODE ON)  # also part of the Python module
  target_link_libraries(prism_cli PUBLIC prism_internal PRIVATE prism_warnings fmt::fmt CLI11::CLI11
                        nlohmann_json::nlohmann_json Threads::Threads)
  if(TARGET prism_server)
    target_link_libraries(prism_cli PRIVATE prism_server)
    target_compile_definitions(prism_cli PRIVATE PRISM_HAS_SERVER=1)
  endif()
  if(PRISM_SANITIZE)
    # Under sanitizers optimisation takes half of the compile time of templates, and no code here is hot.
    target_compile_options(prism_cli PRIVATE -O0)
  elseif(NOT MSVC AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_options(prism_cli PRIVATE -Os)
  endif()
endif()
if(EXISTS ${main_source})
  add_executable(prism_program ${main_source})
  set_target_properties(prism_program PROPERTIES OUTPUT_NAME prism
                        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  target_link_libraries(prism_program PRIVATE $<TARGET_NAME_IF_EXISTS:prism_cli> prism_internal prism_warnings
                        Threads::Threads)
endif()
