// The precompiled header has included doctest already, without its implementation.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "core/threads/parallel.h"

int main(int argc, char** argv) {
    // As many tests run at once as there are cores, and BLAS's threads wait for each other in busy loops.
#ifndef __SANITIZE_THREAD__
    fp8lab::set_threads(1);
#endif
    return doctest::Context(argc, argv).run();
}
