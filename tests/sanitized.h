// Whether a sanitizer is built in: memory is then counted, and the address space used, in other ways, and times say
// little.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
