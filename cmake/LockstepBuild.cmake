# The words the folders' CMakeLists.txt are written in.

# Sources of the library, in this folder.
function(ls_sources)
  foreach(f ${ARGN})
    target_sources(ls_objects PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${f})
  endforeach()
endfunction()

# Those of them that call functions of the program (src/base/guard.h): an exception that
# leaves such a function has to come by.
function(ls_guarded_sources)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ls_objects
    PROPERTIES COMPILE_OPTIONS -fexceptions)
endfunction()

# Sources compiled once per instruction set, always optimised; LSI_ISA is its name.
set(LS_ISA_FLAGS_baseline "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(LS_ISAS baseline avx2 avx512)
  set(LS_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c -mtune=znver3)
  set(LS_ISA_FLAGS_avx512 -mavx512f -mavx512vl -mavx512bw -mavx512dq -mavx2 -mfma -mf16c
    -mprefer-vector-width=512)
else()
  set(LS_ISAS baseline)
endif()
function(ls_simd_sources)
  foreach(isa ${LS_ISAS})
    set(lib ls_simd_${isa})
    add_library(${lib} OBJECT ${ARGN})
    target_include_directories(${lib} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_compile_definitions(${lib} PRIVATE LSI_ISA=${isa} LSI_ISA_${isa}=1)
    target_compile_options(${lib} PRIVATE ${LS_ISA_FLAGS_${isa}} -O3 -fno-math-errno
      -fno-trapping-math -ffp-contract=fast -Wno-psabi)
    target_link_libraries(${lib} PRIVATE ls_build)
    set_target_properties(${lib} PROPERTIES C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
    target_sources(lockstep PRIVATE $<TARGET_OBJECTS:${lib}>)
    target_sources(ls_testing PRIVATE $<TARGET_OBJECTS:${lib}>)
  endforeach()
endfunction()

# A unit test beside the code it tests: ls_test(ring_test) compiles ring_test.c.
function(ls_test name)
  if(BUILD_TESTING)
    add_executable(${name} ${name}.c)
    target_link_libraries(${name} PRIVATE ls_testing ls_build m)
    file(RELATIVE_PATH dir ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    add_test(NAME ${dir}/${name} COMMAND ${name})
    set_tests_properties(${dir}/${name} PROPERTIES TIMEOUT 300 LABELS unit)
  endif()
endfunction()
