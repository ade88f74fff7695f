# Owns the files that `cmake --install` installs: headers, the library, the program, find_package(Prism).
include(CMakePackageConfigHelpers)

target_include_directories(prism INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(DIRECTORY include/prism DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

install(TARGETS prism EXPORT PrismTargets)
if(TARGET prism_program)
  install(TARGETS prism_program)
  include(completions)
endif()
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Prism)
install(EXPORT PrismTargets NAMESPACE Prism:: DESTINATION ${config_folder})
configure_package_config_file(${CMAKE_CURRENT_SOURCE_DIR}/cmake/PrismConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/PrismConfig.cmake INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/PrismConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/PrismConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/PrismConfigVersion.cmake
  ${CMAKE_CURRENT_SOURCE_DIR}/cmake/FindPCRE2.cmake DESTINATION ${config_folder})
