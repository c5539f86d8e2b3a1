# Read by CMake where it begins with llama.cpp: without the library for its own programs, which takes
# as long as the rest and which no Python needs. llama-cpp-python has no option for it.
set(LLAMA_BUILD_COMMON OFF)
