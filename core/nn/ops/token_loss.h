// The loss of next-token prediction.
#pragma once

#include "core/nn/loss.h"
#include "core/nn/matrix.h"
#include "core/nn/tokens/token_batch.h"

namespace fp8lab {

// logits (sequences * context, vocabulary). The loss is the mean of -ln softmax(logits)[target] over the scored
// targets, in nats; the accuracy is the share of them with the largest logit (the first, if several are equal).
// Exponentials and their sum of a row in T, logarithms and all that is summed over rows in float64. dlogits is
// resized: (softmax - one-hot) / number of scored targets, 0 in rows that are not scored. Where nothing is
// scored, loss and accuracy are NaN and dlogits is 0.
template <class T>
LossValue token_loss(const Matrix<T>& logits, const TokenBatch& batch, Matrix<T>& dlogits);

template <class T>
LossValue token_loss(const Matrix<T>& logits, const TokenBatch& batch);  // without a gradient

}  // namespace fp8lab
