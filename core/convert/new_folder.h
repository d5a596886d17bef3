// A folder that gets its name only when it is complete: until then it is a hidden one beside it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace fp8lab {

class NewFolder {
  public:
    // Throws usage_error(option, ...): something has that name. Throws Error{failed}: the folder above it is not there or
    // cannot be written.
    NewFolder(const std::string& option, std::filesystem::path path);
    ~NewFolder();  // without keep() nothing is left
    NewFolder(const NewFolder&) = delete;
    NewFolder& operator=(const NewFolder&) = delete;

    const std::filesystem::path& path() const { return hidden_; }  // where its files are written
    // Throws Error{failed} where the disk has less room than so many bytes.
    void require_room(std::uint64_t bytes) const;
    void keep();  // throws Error{failed}, also where something took the name meanwhile

  private:
    std::filesystem::path path_, hidden_;
    bool kept_ = false;
};

// A file of a known size whose parts are written in any order, by several threads at a time.
class PlacedFile {
  public:
    explicit PlacedFile(std::filesystem::path path);
    ~PlacedFile();
    PlacedFile(const PlacedFile&) = delete;
    PlacedFile& operator=(const PlacedFile&) = delete;

    // Throws Error{failed} with path and reason. The system begins to write to the disk meanwhile, and what is there
    // leaves its cache: then writers are not held up, and sync() and removing find little to do in memory. How long the
    // file system needs to free the blocks still grows with the file.
    void write(std::uint64_t offset, std::span<const std::byte> bytes) const;
    void sync(std::uint64_t size) const;  // asks between its parts (core/threads/ask.h)

  private:
    [[noreturn]] void fail(int error_number) const;

    std::filesystem::path path_;
    int fd_ = -1;
    mutable std::atomic<std::uint64_t> written_ = 0;  // bytes, in any order
};

}  // namespace fp8lab
