# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

# Installs the headers and a package: find_package(tersum) gives tersum::tersum. The exported targets are the whole
# package configuration, as the library depends on nothing.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder "${CMAKE_INSTALL_DATADIR}/cmake/tersum")

install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/include/tersum" "${PROJECT_SOURCE_DIR}/include/tersum_baselines"
            "${PROJECT_SOURCE_DIR}/include/tersum_server" "${PROJECT_SOURCE_DIR}/include/tersum_nccl_device"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING
  PATTERN "*.hpp"
  PATTERN "*.cuh"
  PATTERN "*.ipp"
  PATTERN "*.inl")
install(TARGETS tersum tersum_baselines tersum_server tersum_nccl_device EXPORT tersum
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(
  EXPORT tersum
  FILE tersum-config.cmake
  NAMESPACE tersum::
  DESTINATION "${package_folder}")

# Below 1.0 a new minor version may break.
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/tersum-config-version.cmake"
  COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/tersum-config-version.cmake" DESTINATION "${package_folder}")
