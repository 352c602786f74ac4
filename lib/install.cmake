# elbow_install(NAME "description" HEADERS x.h [y.h] [REQUIRES elbow_z]): installs the library elbow_NAME, its headers of
# include/elbowroom, the CMake package elbowroom-NAME and pkg-config's elbow_NAME, as the component NAME.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

function(elbow_install name description)
  cmake_parse_arguments(PARSE_ARGV 2 ELBOW "" "REQUIRES" "HEADERS")
  set(library elbow_${name})
  set(package elbowroom-${name})
  install(TARGETS ${library} EXPORT ${package} COMPONENT ${name})
  list(TRANSFORM ELBOW_HEADERS PREPEND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../include/elbowroom/)
  install(FILES ${ELBOW_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/elbowroom COMPONENT ${name})
  install(EXPORT ${package} NAMESPACE elbowroom:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/${package}
          FILE ${package}-config.cmake COMPONENT ${name})
  write_basic_package_version_file(${package}-config-version.cmake VERSION ${PROJECT_VERSION}
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${package}-config-version.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/${package} COMPONENT ${name})
  # The installed tree may be moved: pkg-config looks from where its file is.
  file(RELATIVE_PATH ELBOW_PREFIX_FROM_HERE "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/library.pc.in ${library}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
          COMPONENT ${name})
endfunction()
