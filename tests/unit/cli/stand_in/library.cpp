// A library that does nothing: install_test.cpp gives it the names of NVIDIA's.
extern "C" int fp8lab_stand_in() { return 0; }
