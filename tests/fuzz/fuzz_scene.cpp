// A scene from a stranger: refused with a place, or read so that its text reads back to the same, as a file
// and as a line.
#include <cstdint>
#include <cstdlib>

#include "core/base/error.h"
#include "core/lesson/scene.h"

namespace {

using namespace fp8lab;

void check(bool holds) {
    if (!holds) std::abort();
}

void check_limits(const Scene& scene) {
    check(scene.steps >= 0 && scene.numbers.size() <= 4 && scene.tensors.size() <= 4);
    check(scene.state.is_object() && (scene.compare.is_null() || scene.compare.is_object()));
    if (scene.predict) check(scene.predict->answer < static_cast<int>(scene.predict->choices.size()));
    if (scene.headline) check(scene.headline->tolerance >= 0 && scene.headline->tolerance < 1);
    for (const Scene::Tensor& tensor : scene.tensors) {
        std::size_t elements = tensor.path.empty() ? 1 : 0;
        for (const std::size_t length : tensor.shape) elements *= length;
        check(tensor.values.size() == elements);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    try {
        const Scene scene = is_scene_line(text) ? scene_from_line(text) : parse_scene(text, "s");
        check_limits(scene);
        const std::string once = scene_text(scene);
        const Scene again = parse_scene(once, "s");
        check(scene_text(again) == once && scene_text(scene_from_line(scene_line(again))) == once);
    } catch (const Error& error) {
        check(error.kind() == ErrorKind::input);
        check(!error.where().empty() && !error.why().empty());
    }
    return 0;
}
