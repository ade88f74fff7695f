# Owns which backends are compiled in: sets PRISM_ENABLED_BACKENDS from the switches.
set(PRISM_SWITCHED_BACKENDS cuda hip metal vulkan sycl opencl webgpu)
set(PRISM_ENABLED_BACKENDS null cpu)
foreach(backend IN LISTS PRISM_SWITCHED_BACKENDS)
  string(TOUPPER ${backend} upper)
  option(PRISM_${upper} "The ${backend} backend" ON)
  if(PRISM_${upper})
    list(APPEND PRISM_ENABLED_BACKENDS ${backend})
  endif()
endforeach()

# Only the list of backends sees the switches, so that changing one recompiles one file.
function(prism_apply_switches)
  set(definitions "")
  foreach(backend IN LISTS PRISM_ENABLED_BACKENDS)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/src/backends/${backend}/${backend}_backend.h)
      string(TOUPPER ${backend} upper)
      list(APPEND definitions PRISM_HAS_${upper}=1)
    endif()
  endforeach()
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/src/backends/backends.cpp PROPERTIES
                              COMPILE_DEFINITIONS "${definitions}")
endfunction()
