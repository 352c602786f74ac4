# elbow_install(NAME "description" HEADERS x.h [y.h] [REQUIRES z]): installs the library elbow_NAME, its headers of
# include/elbowroom, the CMake package elbowroom-NAME and pkg-config's elbow_NAME, as the component NAME. REQUIRES names
# libraries of lib/ that this one needs, whose components are to be installed, too.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../VERSION ELBOWROOM_VERSION)
# Interfaces may change with each minor version before 1.0, and with each major version from then on.
string(REGEX MATCH "^(0\\.[0-9]+|[0-9]+)" ELBOWROOM_SOVERSION ${ELBOWROOM_VERSION})
add_compile_definitions(ELBOWROOM_VERSION="${ELBOWROOM_VERSION}")
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Exports functions of C alone.
function(elbow_export_c target)
  set(map ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/exports.map)
  target_link_options(${target} PRIVATE -Wl,--version-script=${map})
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map})
endfunction()

# elbow_library(NAME sources ...): the library elbow_NAME of a folder of lib, and its objects elbow_NAME_objects, which its
# tests and programs are made of, too.
function(elbow_library name)
  add_library(elbow_${name}_objects OBJECT ${ARGN})
  set_target_properties(elbow_${name}_objects PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(elbow_${name}_objects PRIVATE ../../include ..)
  add_library(elbow_${name} SHARED $<TARGET_OBJECTS:elbow_${name}_objects>)
  add_library(elbowroom::${name} ALIAS elbow_${name})
  set_target_properties(elbow_${name} PROPERTIES
    EXPORT_NAME ${name} LINKER_LANGUAGE CXX VERSION ${ELBOWROOM_VERSION} SOVERSION ${ELBOWROOM_SOVERSION}
    INSTALL_RPATH "$ORIGIN")  # a library finds those that it needs beside itself
  target_include_directories(elbow_${name} PUBLIC
    $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/../../include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

function(elbow_install name description)
  cmake_parse_arguments(PARSE_ARGV 2 ELBOW "" "" "HEADERS;REQUIRES")
  set(library elbow_${name})
  set(package elbowroom-${name})
  elbow_export_c(${library})
  install(TARGETS ${library} EXPORT ${package} COMPONENT ${name})
  list(TRANSFORM ELBOW_HEADERS PREPEND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../include/elbowroom/)
  install(FILES ${ELBOW_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/elbowroom COMPONENT ${name})
  install(EXPORT ${package} NAMESPACE elbowroom:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/${package}
          FILE ${package}-targets.cmake COMPONENT ${name})
  set(config "include(CMakeFindDependencyMacro)\n")
  foreach(required IN LISTS ELBOW_REQUIRES)
    string(APPEND config "find_dependency(elbowroom-${required} ${ELBOWROOM_VERSION})\n")
  endforeach()
  string(APPEND config "include(\"\${CMAKE_CURRENT_LIST_DIR}/${package}-targets.cmake\")\n")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${package}-config.cmake "${config}")
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${package}-config.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/${package} COMPONENT ${name})
  write_basic_package_version_file(${package}-config-version.cmake VERSION ${ELBOWROOM_VERSION}
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${package}-config-version.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/${package} COMPONENT ${name})
  # The installed tree may be moved: pkg-config looks from where its file is.
  file(RELATIVE_PATH ELBOW_PREFIX_FROM_HERE "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
  list(TRANSFORM ELBOW_REQUIRES PREPEND elbow_ OUTPUT_VARIABLE needed)
  list(JOIN needed ", " ELBOW_REQUIRES)
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/library.pc.in ${library}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
          COMPONENT ${name})
endfunction()
