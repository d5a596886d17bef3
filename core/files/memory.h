// The memory that this process can still have. Work that allocates in proportion to its options or its input says how
// much it needs before it allocates anything: a refusal in a sentence, where the system would slow down for minutes and
// then end the process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace fp8lab {

// Bytes: the least of MemAvailable (/proc/meminfo), of what RLIMIT_AS (`ulimit -v`) leaves, and of what the memory.max of
// the process's cgroup and of those above it leave (version 2; the page cache of files counts as free, as it does in
// MemAvailable). 2^64 - 1 where none is known. `root`: where proc and sys are, other than / in tests.
std::uint64_t free_memory(const std::filesystem::path& root = "/");

// Throws Error{failed, where, "not enough memory: 85.9 GB are needed, 23.6 GB are free"}, exit code 1. Less than a megabyte is not asked
// for.
void require_memory(const std::string& where, double bytes, std::uint64_t free);
void require_memory(const std::string& where, double bytes);

}  // namespace fp8lab
