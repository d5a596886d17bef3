#include "kernels/device/library_folders.h"

#include <cstdlib>
#include <string>
#include <system_error>

namespace fp8lab::cuda {
namespace {

using Folders = std::vector<std::filesystem::path>;

// The library's folder in each python3.N below `root`.
void add_python_folders(const std::filesystem::path& root, const char* packages, std::string_view package,
                        Folders& to) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(root, none))
        if (entry.path().filename().string().starts_with("python3"))
            to.push_back(entry.path() / packages / "nvidia" / package / "lib");
}

}  // namespace

Folders library_folders(const char* told, std::string_view package) {
    Folders out;
    const auto variable = [](const char* name) -> std::filesystem::path {
        const char* const value = std::getenv(name);
        return value ? value : "";
    };
    if (const auto folder = variable(told); !folder.empty()) return {folder, folder / "lib"};
    if (const auto environment = variable("VIRTUAL_ENV"); !environment.empty())
        add_python_folders(environment / "lib", "site-packages", package, out);
    if (const auto home = variable("HOME"); !home.empty())
        add_python_folders(home / ".local/lib", "site-packages", package, out);
    add_python_folders("/usr/local/lib", "dist-packages", package, out);
    add_python_folders("/usr/lib", "dist-packages", package, out);
    out.emplace_back();
    return out;
}

}  // namespace fp8lab::cuda
