// What a model of tokens keeps of the tokens that it has read, so that each is computed once ("KV cache"): the keys and
// values of every block, as the products of attention read them, behind rotation and cast. Model::decode() reads and
// extends it.
#pragma once

#include <cstddef>
#include <vector>

#include "core/nn/matrix.h"

namespace fp8lab {

// A new one is empty and fits every model; decode() gives it its sizes with the first tokens.
template <class T>
struct KvState {
    // Of one block: row sequence * context + t belongs to token t of the sequence; kv_heads * head_size columns.
    struct Block {
        Matrix<T> k, v;
    };

    // Tokens that each sequence has: the position of the next one. It may be set to a smaller number: the tokens behind it
    // are forgotten, and decode() goes on from there, as if they had never been read.
    std::size_t length = 0;
    std::size_t sequences = 0, context = 0;  // context: of the model, the most that length can be
    std::vector<Block> blocks = {};
};

}  // namespace fp8lab
