# What a folder of lib sets where it is a build of its own; included behind project().
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
option(ELBOWROOM_TESTS "Build the native tests" OFF)
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow)
