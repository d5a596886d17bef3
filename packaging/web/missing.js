// What emscripten's C library declares and lacks.
mergeInto(LibraryManager.library, {
    // A hint to start writing; fsync() comes after it.
    sync_file_range__sig: 'iijji',
    sync_file_range: () => 0,

    // With -sNODERAWFS it throws. Node writes at once and waits itself: every stream is ready.
    __syscall_poll: (streams, count, timeout) => {
        for (let at = streams; at < streams + 8 * count; at += 8) HEAP16[(at + 6) >> 1] = HEAP16[(at + 4) >> 1];
        return count;
    },
});
