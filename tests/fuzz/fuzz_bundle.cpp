// A submission from a student: refused with a place, or read so that what is written of it reads back to the
// same; and so is each evidence in it.
#include <cstdint>
#include <cstdlib>

#include "core/base/error.h"
#include "core/lesson/bundle.h"
#include "core/lesson/evidence.h"
#include "tests/fuzz/with_new_checksum.h"

namespace {

using namespace fp8lab;

void check(bool holds) {
    if (!holds) std::abort();
}

void read_evidence(const std::string& text) {
    try {
        const std::string once = evidence_text(parse_evidence(text, "e"));
        check(evidence_text(parse_evidence(once, "e")) == once);
    } catch (const Error& error) {
        // A checksum that does not fit is a verdict on the student, all else is no evidence.
        check(error.kind() == ErrorKind::input || error.kind() == ErrorKind::failed);
        check(error.where() == "e" && !error.why().empty());
    }
}

// Whether its checksum fits.
bool read_bundle(std::string_view text) {
    try {
        const Bundle bundle = parse_bundle(text, "b");
        const std::string once = bundle_text(bundle);
        const Bundle again = parse_bundle(once, "b");
        check(again.intact && bundle_text(again) == once);
        check(again.student == bundle.student && again.machine == bundle.machine &&
              again.evidence == bundle.evidence && again.others == bundle.others &&
              again.predictions.size() == bundle.predictions.size());
        for (const std::string& evidence : bundle.evidence) {
            read_evidence(evidence);
            read_evidence(test::with_new_checksum(evidence));
        }
        return bundle.intact;
    } catch (const Error& error) {
        check(error.kind() == ErrorKind::input);
        check(error.where() == "b" && !error.why().empty());
        return true;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    read_bundle(text);
    check(read_bundle(test::with_new_checksum(text)));
    return 0;
}
