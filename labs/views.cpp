// The view of each lab in list.h.
#include <array>

#include "core/base/error.h"
#include "labs/list.h"
#include "labs/view.h"

namespace fp8lab {

#define FP8LAB_DECLARE(lab)                      \
    namespace lab {                              \
    std::unique_ptr<LabView> make_view(Lab& of); \
    }
FP8LAB_LABS(FP8LAB_DECLARE)
#undef FP8LAB_DECLARE

std::unique_ptr<LabView> make_view(Lab& lab) {
    struct Entry {
        std::string_view id;
        std::unique_ptr<LabView> (*make)(Lab& lab);
    };
#define FP8LAB_ENTRY(lab) Entry{lab::entry().id, lab::make_view},
    static const std::array kViews = {FP8LAB_LABS(FP8LAB_ENTRY)};
#undef FP8LAB_ENTRY
    for (const Entry& entry : kViews)
        if (entry.id == lab.info().id) return entry.make(lab);
    throw Error{ErrorKind::failed, std::string(lab.info().id), "has no view; add it to labs/list.h"};
}

}  // namespace fp8lab
