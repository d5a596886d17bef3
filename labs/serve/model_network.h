// What L17 serves: a trained network in FP32 with its held-out rows.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/inference/data.h"
#include "core/inference/score.h"
#include "core/inference/token_model.h"

namespace fp8lab::serve {

struct NetworkSpec {
    std::string network = "digits-s1";  // "digits-s1" to "digits-s3", "transformer", "own"
    std::string path = {};              // own: a checkpoint of train --save
    std::string version = {};           // version_of() it: one that is overwritten is read again
    bool operator==(const NetworkSpec&) const = default;
};

// A multilayer perceptron or a model of tokens.
struct Served {
    NetworkSpec spec;
    std::string name;                       // "digits-s1"
    std::shared_ptr<const TrainedMlp> mlp;  // null: tokens
    InferenceData data;                     // of mlp
    bool held_out = true;                // false: its rows are those of the training, nothing else is known
    std::shared_ptr<TokenModel> tokens;  // used by one thread
    std::vector<LayerSize> layers;
    Reference reference;  // the outputs in FP32

    const std::string& data_name() const { return mlp ? data.name : tokens->data().name; }
    std::size_t rows() const { return reference.y.rows; }
    // What a method can see: rows of the training, or tokens of it.
    std::size_t train_rows() const;
};
// Size and time of change of a file, empty where there is none.
std::string version_of(const std::string& path);
// Its file. Throws input_error: an own one, and none is chosen.
std::filesystem::path file_of(const NetworkSpec& spec);
// Throws input_error: an own file that cannot be read, is no checkpoint, or has no data of its own.
std::shared_ptr<const Served> make_served(const NetworkSpec& spec);

// The model of tokens, for parts that need one. Throws besides usage_error: a multilayer perceptron has neither tokens nor a
// cache.
std::shared_ptr<TokenModel> make_tokens(const NetworkSpec& spec);
// The multilayer perceptron. Throws besides usage_error: a model of tokens.
std::shared_ptr<const Served> make_digits(const NetworkSpec& spec);

// What a command line of `train` says of a model of tokens, without its recipe: the model with its sizes, the task, seed,
// batch and steps. Throws input_error(where, ...): no such line.
TrainSpec token_spec(const std::string& command_line, const std::string& where);

}  // namespace fp8lab::serve
