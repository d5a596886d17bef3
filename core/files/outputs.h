// What one call of the program reads and writes, declared before any work. This class makes sure that an
// output never replaces an input, another output, or a file that is recognised as work of another kind, and
// that it can be written at all.
//
//   Outputs outputs;
//   outputs.reads(arguments.in);
//   outputs.writes("-o", arguments.out, Holds::numbers);
//
// Two names are the same file when they lead to it: through links, as ./x, as a second hard link, and as a
// file of the same folder that is not there yet.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fp8lab {

// What an output holds. A file that is there already is replaced only where it may be the same kind:
// `check --csv class/*.f8lab` would otherwise replace the first student's submission. The kind is known by
// the extension (.f8lab, .f8scene, .f8deck, .safetensors) or by the first bytes (JSON, NPY, PNG, JPEG, HTML,
// SVG, XML, PDF, ZIP, ELF, a table of `train`). Raw numbers and other text have no such mark, so a file
// without one may be replaced by any kind. Evidence of an exercise is JSON and never becomes a submission.
enum class Holds {
    numbers,  // raw or .npy
    tensors,  // .safetensors
    table,
    json,
    page,
    picture,
    submission,
    program,  // in Python: text without a mark
};

class Outputs {
  public:
    // Declares an input. "-" is stdin. Folders and files that are not there are left to their reader. Throws
    // usage_error: an output declared before would replace it.
    void reads(const std::filesystem::path& path);

    // Declares an output. `option` is what the user typed; "-" is stdout. Throws usage_error(option, ...): an empty
    // name, an input or another output of this call, a file that holds something else. Throws Error{failed}: a
    // folder, or what cannot be written.
    void writes(const std::string& option, const std::filesystem::path& path, Holds holds);

    // Declares files in this folder, which is made when the first of them is written. Throws as writes().
    void writes_into(const std::string& option, const std::filesystem::path& folder);

    // Declares stdout, by an option that names no file ("--json"), or "stdout" for what a verb prints without an
    // option. Throws usage_error: it is taken, or it is a file that is an input or output of the same call.
    void prints(const std::string& option);

  private:
    struct Identity {
        dev_t device;
        ino_t inode;       // of the file, or of its folder
        std::string name;  // in that folder, of a file that is not there yet
        bool operator==(const Identity&) const = default;
    };
    struct Output {
        std::string option;
        Identity identity;
    };
    static std::optional<Identity> identity_of(const std::filesystem::path& target);
    void add(const std::string& option, const std::string& shown, const std::optional<Identity>& identity);

    std::vector<Identity> inputs_;
    std::vector<Output> outputs_;
    std::string stdout_taken_by_;
};

}  // namespace fp8lab
