// What C++ asks of the page (page.h). The canvas is Module.canvas.
addToLibrary({
    $page: {
        // Turns of the workers, between frames and before timers: a message is a task of its own.
        channel: null,
        waits: false,
        timer: 0,
        turn() {
            page.waits = false;
            const left = _page_do_turns();  // ms until the next one is due; negative: nothing is
            if (left === 0) return page.ask();
            if (left > 0) page.timer = setTimeout(page.ask, left);
        },
        ask() {
            if (page.waits) return;
            if (page.channel === null) {
                page.channel = new MessageChannel();
                page.channel.port1.onmessage = page.turn;
            }
            page.waits = true;
            page.channel.port2.postMessage(0);
        },
    },

    page_go_on__deps: ['$page'],
    page_go_on: () => {
        clearTimeout(page.timer);
        page.ask();
    },

    page_width: () => Module.canvas.width,
    page_height: () => Module.canvas.height,
    page_pixel_ratio: () => window.devicePixelRatio,
    page_cursor: name => { Module.canvas.style.cursor = UTF8ToString(name); },

    page_focus: () => { window.focus(); Module.canvas.focus(); },

    page_copy: text => {
        const words = UTF8ToString(text);
        const copy_now = () => {  // without https there is no navigator.clipboard
            addEventListener('copy', event => { event.clipboardData.setData('text/plain', words); event.preventDefault(); }, { once: true });
            document.execCommand('copy');
        };
        if (navigator.clipboard) navigator.clipboard.writeText(words).catch(copy_now);
        else copy_now();
    },

    page_download: (name, bytes, count) => {
        const link = document.createElement('a');
        link.href = URL.createObjectURL(new Blob([HEAPU8.slice(bytes, bytes + count)]));
        link.download = UTF8ToString(name);
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    },

    page_fullscreen: whole => {
        if (whole) document.documentElement.requestFullscreen?.().catch(() => {});
        else if (document.fullscreenElement) document.exitFullscreen();
    },

    page_ask_for_files: () => Module.fp8lab.ask_for_files(),

    page_address__deps: ['$stringToNewUTF8'],
    page_address: () => stringToNewUTF8(location.href.split('#')[0]),

    page_failed: why => Module.fp8lab.fail(UTF8ToString(why)),
});
