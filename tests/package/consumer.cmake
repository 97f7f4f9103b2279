# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

# Included by each consumer: it got the target and nothing else.

get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
list(REMOVE_ITEM languages NONE)
if(NOT languages STREQUAL "CXX")
  message(FATAL_ERROR "tersum enabled a language: ${languages}")
endif()

if(TARGET tersum.flags OR TARGET doctest::doctest OR TARGET benchmark::benchmark)
  message(FATAL_ERROR "tersum brought targets of its own tests")
endif()

get_target_property(options tersum::tersum INTERFACE_COMPILE_OPTIONS)
get_target_property(definitions tersum::tersum INTERFACE_COMPILE_DEFINITIONS)
get_target_property(libraries tersum::tersum INTERFACE_LINK_LIBRARIES)
if(options OR definitions OR libraries)
  message(FATAL_ERROR "tersum imposes: ${options} ${definitions} ${libraries}")
endif()

add_executable(consumer ${CMAKE_CURRENT_LIST_DIR}/main.cpp)
target_link_libraries(consumer PRIVATE tersum::tersum)
