#include "core/scaling/side_cast.h"

namespace fp8lab {

SideCast side_cast(const Recipe& recipe, TensorClass tensor, Along along) {
    const Recipe here = recipe_of_gemm(recipe, gemm_of(tensor, along));
    return {cast_plan(here, tensor), here.scale == ScaleSource::delayed,
            here.rht && tensor != TensorClass::w};
}

bool has_delayed_scale(const Recipe& recipe) {
    for (const TensorClass tensor : {TensorClass::x, TensorClass::w, TensorClass::dy})
        for (const Along along : {Along::cols, Along::rows})
            if (side_cast(recipe, tensor, along).delayed) return true;
    return false;
}

bool is_split(const Recipe& recipe, TensorClass tensor) {
    return has_inputs(recipe) &&
           side_cast(recipe, tensor, Along::cols) != side_cast(recipe, tensor, Along::rows);
}

}  // namespace fp8lab
