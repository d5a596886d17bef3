// The labs, by number: one line each, the namespace of its folder. In it model.cpp defines entry() and
// view.cpp make_view().
#pragma once

#include "labs/lab.h"

#define FP8LAB_LABS(LAB) \
    LAB(bits)            \
    LAB(ruler)           \
    LAB(error)           \
    LAB(window)          \
    LAB(delayed)         \
    LAB(blocks)          \
    LAB(adding)          \
    LAB(train)           \
    LAB(speed)           \
    LAB(memory)          \
    LAB(lower)           \
    LAB(four)            \
    LAB(transformer)     \
    LAB(wide)            \
    LAB(gpus)            \
    LAB(clinic)          \
    LAB(serve)           \
    LAB(experts)         \
    LAB(workbench)

namespace fp8lab {

#define FP8LAB_DECLARE(lab) \
    namespace lab {         \
    LabEntry entry();       \
    }
FP8LAB_LABS(FP8LAB_DECLARE)
#undef FP8LAB_DECLARE

}  // namespace fp8lab
