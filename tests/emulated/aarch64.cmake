# CMake's toolchain file of aarch64.sh: the compiler of this machine, headers and libraries of the arm64 root that
# AARCH64_ROOT names. Nothing of the root is run while it builds, so that MPI's wrappers are not asked.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

set(CMAKE_SYSROOT $ENV{AARCH64_ROOT})
set(CMAKE_FIND_ROOT_PATH $ENV{AARCH64_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(libraries $ENV{AARCH64_ROOT}/usr/lib/aarch64-linux-gnu)
set(ENV{PKG_CONFIG_SYSROOT_DIR} $ENV{AARCH64_ROOT})
# OpenBLAS is one of Debian's alternatives, which nothing has chosen in a root that was only unpacked.
set(ENV{PKG_CONFIG_LIBDIR} ${libraries}/pkgconfig:$ENV{AARCH64_ROOT}/usr/share/pkgconfig:${libraries}/openblas-pthread/pkgconfig)

foreach(language C CXX)
  set(MPI_${language}_COMPILER ${CMAKE_${language}_COMPILER})
  set(MPI_${language}_COMPILER_INCLUDE_DIRS ${libraries}/openmpi/include)
  set(MPI_${language}_HEADER_DIR ${libraries}/openmpi/include)
  set(MPI_${language}_LIB_NAMES mpi)
endforeach()
set(MPI_CXX_SKIP_MPICXX TRUE)
set(MPI_mpi_LIBRARY ${libraries}/openmpi/lib/libmpi.so)
