# Compiles for a browser: emscripten's toolchain with the flags that all parts of a program must share.
include(/usr/share/emscripten/cmake/Modules/Platform/Emscripten.cmake)
# SSE2 as WebAssembly's own vectors: with it Eigen adds in the same order as on the desktop, which is built for SSE2.
# include/: a header that emscripten lacks and Eigen includes for SSE2. For GCC before 6.3 and from 6.0 on
# Eigen has assembly of x86; 5.13, by its reckoning, is neither.
# std::jthread is experimental in LLVM's library of this version.
set(CMAKE_C_FLAGS_INIT "-fwasm-exceptions -msimd128 -msse2 -fgnuc-version=5.13.0 -isystem ${CMAKE_CURRENT_LIST_DIR}/include")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -fexperimental-library -ferror-limit=0")
# Where build.sh installs the libraries.
list(APPEND CMAKE_FIND_ROOT_PATH /root/web/prefix)
# The stack of the main thread is as deep as a desktop's need be.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-fwasm-exceptions -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB -sSTACK_SIZE=4MB")
