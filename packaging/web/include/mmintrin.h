// MMX is of x86 alone. Eigen includes this header beside those of SSE2 and uses nothing of it.
