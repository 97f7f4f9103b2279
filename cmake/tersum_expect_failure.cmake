# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

# A test that passes when a source does not compile, for the reasons that it names: the compiler says them in their order.
# cmake -DCOMPILER=... -DSOURCE=... -DINCLUDES=... -DPRECOMPILED=... -P tersum_expect_failure.cmake

file(STRINGS "${SOURCE}" lines REGEX "^ *// expected: ")
file(STRINGS "${SOURCE}" first REGEX "^// expected first: ")  # in the first error or warning
if(NOT lines)
  message(FATAL_ERROR "${SOURCE} has no line '// expected: <text>'")
endif()

# What to compile it with besides, one option a line.
file(STRINGS "${SOURCE}" options REGEX "^// option: ")
list(TRANSFORM options REPLACE "^// option: " "")

# As little as tells whether it compiles.
set(only -fsyntax-only)
if(SOURCE MATCHES "\\.cu$")
  set(only -arch=sm_80 -ptx -o /dev/null)
elseif(COMPILER MATCHES "clang")
  list(APPEND only -ferror-limit=0)
endif()

# Headers that are precompiled are so without other options, and before the source defines a macro.
set(headers)
file(STRINGS "${SOURCE}" macros REGEX "^#define ")
if(NOT options AND NOT macros AND SOURCE MATCHES "\\.cpp$")
  set(headers -include "${PRECOMPILED}")
endif()

# LC_ALL=C: plain quotation marks, untranslated.
execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env LC_ALL=C "${COMPILER}" -std=c++20 ${options} ${only} "-I${INCLUDES}"
          ${headers} "${SOURCE}"
  RESULT_VARIABLE status
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles, and must not")
endif()

set(rest "${output}")
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^ *// expected: " "" expected "${line}")
  string(FIND "${rest}" "${expected}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "the compiler does not say '${expected}' after the others:\n${output}")
  endif()
  string(LENGTH "${expected}" length)
  math(EXPR position "${position} + ${length}")
  string(SUBSTRING "${rest}" ${position} -1 rest)
endforeach()

string(REPLACE "// expected first: " "" first "${first}")
string(REGEX MATCH "(error|warning):[^\n]*" said "${output}")
string(FIND "${said}" "${first}" position)
if(position EQUAL -1)
  message(FATAL_ERROR "the compiler does not first say '${first}', but '${said}'")
endif()
