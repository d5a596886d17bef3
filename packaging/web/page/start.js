// Starts the program of the page: its files, the profile in IndexedDB, and what the browser tells it.
const canvas = document.getElementById('canvas');
const says = document.getElementById('says');
const words = document.getElementById('words');
const loaded = document.getElementById('loaded');

let failed = false;
function fail(why) {
    failed = true;
    canvas.hidden = true;
    says.hidden = false;
    loaded.hidden = true;
    words.textContent = `${why.replace(/\.?$/, '.')} Reload the page to start again; what you passed is kept.`;
}

// ---- what is loaded ----

async function bytes(name, size) {
    const response = await fetch(name);
    if (!response.ok) throw new Error(`${name} could not be loaded: ${response.status} ${response.statusText}`);
    let came = 0;
    const parts = [];
    const reader = response.body.getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
        parts.push(part.value);
        came += part.value.length;
        loaded.value = came / size;
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
}

function script(name) {
    return new Promise((done, failed) => {
        const element = document.createElement('script');
        element.src = name;
        element.onload = done;
        element.onerror = () => failed(new Error(`${name} could not be loaded`));
        document.head.append(element);
    });
}

// What is asked for when the program opens it, and was asked for before: in the browser's cache, which can only be read beforehand.
const kAsked = 'fp8lab_asked';
async function asked_before(files) {
    const before = new Map();
    if (!window.caches) return before;
    const wanted = new Set(files.asked.map(([path, , version]) => new URL(`assets/${path}?${version}`, location.href).href));
    const cache = await caches.open(kAsked);
    for (const request of await cache.keys()) {
        if (wanted.has(request.url)) before.set(request.url, new Uint8Array(await (await cache.match(request)).arrayBuffer()));
        else await cache.delete(request);
    }
    return before;
}

// A file of the server that is read when the program opens it: its size is known, its bytes come with the first open().
function lazy_file(FS, path, size, address, before) {
    FS.writeFile(path, new Uint8Array(0));
    const { node } = FS.lookupPath(path);
    node.usedBytes = size;
    node.contents = null;
    const usual = node.stream_ops;
    node.stream_ops = {
        ...usual,
        open: () => {
            node.contents = before.get(address) ?? loaded_now(FS, address);
            node.usedBytes = node.contents.length;
            node.stream_ops = usual;
        },
    };
}

function loaded_now(FS, address) {
    const request = new XMLHttpRequest();  // waits: the program does too
    request.open('GET', address, false);
    request.overrideMimeType('text/plain; charset=x-user-defined');
    try {
        request.send();
    } catch {
        throw new FS.ErrnoError(29);  // EIO
    }
    if (request.status !== 200) throw new FS.ErrnoError(request.status === 404 ? 44 : 29);  // ENOENT
    const bytes = Uint8Array.from(request.response, letter => letter.charCodeAt(0) & 0xff);
    window.caches?.open(kAsked).then(cache => cache.put(address, new Response(bytes))).catch(() => {});
    return bytes;
}

function put_assets(FS, files, data, before) {
    let at = 0;
    for (const [path, size] of files.packed) {
        FS.mkdirTree(`/assets/${path}`.replace(/\/[^/]*$/, ''));
        FS.writeFile(`/assets/${path}`, data.subarray(at, at + size));
        at += size;
    }
    for (const [path, size, version] of files.asked) {
        FS.mkdirTree(`/assets/${path}`.replace(/\/[^/]*$/, ''));
        lazy_file(FS, `/assets/${path}`, size, new URL(`assets/${path}?${version}`, location.href).href, before);
    }
}

// ---- the profile ----

// Whether this page is the first of this browser: only it writes. The lock is held as long as the page lives.
function first_page() {
    return new Promise(answer => {
        if (!navigator.locks) return answer(true);
        navigator.locks.request('fp8lab profile', { ifAvailable: true }, lock => {
            answer(lock !== null);
            return lock === null ? undefined : new Promise(() => {});
        });
    });
}

// Returns why nothing is kept; empty: it is.
async function mount_profile(program) {
    const { FS, IDBFS } = program;
    FS.mkdir('/profile');
    const is_first = await first_page();
    FS.mount(IDBFS, {}, '/profile');
    const problem = await new Promise(done => FS.syncfs(true, error => done(error)));
    if (!is_first) return 'another tab has this profile open; nothing is kept here';
    if (problem) return 'this browser keeps no data of this page; nothing is kept here';
    keep(FS);
    return '';
}

// What changed in the profile goes to IndexedDB every few seconds, and when the page is left. The program holds its journal
// open, so that no close() tells of a change.
function keep(FS) {
    const kEvery_ms = 2000;
    let under_way = false;
    const now = () => {
        if (under_way) return;
        under_way = true;
        FS.syncfs(false, problem => {
            under_way = false;
            if (problem) console.error(`not kept: ${problem}`);
        });
    };
    setInterval(now, kEvery_ms);
    addEventListener('pagehide', now);
    document.addEventListener('visibilitychange', () => { if (document.hidden) now(); });
}

// ---- what the browser tells ----

function watch_size(program) {
    new ResizeObserver(([entry]) => {
        const exact = entry.devicePixelContentBoxSize?.[0];
        const ratio = window.devicePixelRatio;
        canvas.width = exact?.inlineSize ?? Math.round(entry.contentRect.width * ratio);
        canvas.height = exact?.blockSize ?? Math.round(entry.contentRect.height * ratio);
        program._page_changed?.();
    }).observe(canvas, { box: 'devicePixelContentBoxSize' in ResizeObserverEntry.prototype ? 'device-pixel-content-box' : 'content-box' });
}

async function take_files(program, files) {
    for (const file of files) {
        program.FS.mkdirTree('/dropped');
        program.FS.writeFile(`/dropped/${file.name}`, new Uint8Array(await file.arrayBuffer()));
        program.ccall('page_dropped', null, ['string'], [`/dropped/${file.name}`]);
    }
}

function listen(program) {
    addEventListener('hashchange', () =>
        program.ccall('page_open_link', null, ['string'], [location.hash.slice(1)]));
    addEventListener('paste', event =>
        program.ccall('page_pasted', null, ['string'], [event.clipboardData.getData('text')]));
    addEventListener('dragover', event => event.preventDefault());
    addEventListener('drop', event => {
        event.preventDefault();
        take_files(program, event.dataTransfer.files);
    });
    addEventListener('contextmenu', event => event.preventDefault());
    document.addEventListener('visibilitychange', () => program._page_changed());
    const dialog = document.getElementById('files');
    dialog.addEventListener('change', () => {
        take_files(program, dialog.files);
        dialog.value = '';  // the same file can be chosen again
    });
}

// ---- start ----

// The service worker keeps the files and isolates the page, for what it loads after it: so it comes first, and the page once
// more. Without one (no https, a private window) the page needs its server, and has no threads.
async function isolate() {
    if (window.crossOriginIsolated || !navigator.serviceWorker) return;
    try {
        await navigator.serviceWorker.register('sw.js');
        await navigator.serviceWorker.ready;
    } catch (error) {
        return console.warn(`not kept for use without a network: ${error.message}`);
    }
    if (sessionStorage.getItem('isolated')) return;  // it was tried
    sessionStorage.setItem('isolated', 'tried');
    location.reload();
    await new Promise(() => {});
}

async function start() {
    await isolate();
    const query = new URLSearchParams(location.search);
    const files = await (await fetch('files.json')).json();
    const host = { fail, tell: console.warn, ask_for_files: () => document.getElementById('files').click() };
    const environment = { FP8LAB_ASSETS: '/assets', FP8LAB_HOME: '/profile', LANG: 'C' };
    const made = script('page.js').then(() => fp8lab({
        canvas,
        fp8lab: host,
        preRun: [module => Object.assign(module.ENV, environment)],
        onAbort: why => fail(`FP8 Lab stopped: ${why}.`),
    }));
    const [data, before, program] = await Promise.all([bytes('fp8lab.data', files.data), asked_before(files), made]);
    put_assets(program.FS, files, data, before);
    const kept = await mount_profile(program);
    canvas.hidden = false;
    watch_size(program);
    await new Promise(requestAnimationFrame);  // the size is known
    await new Promise(requestAnimationFrame);
    const more = [...(query.has('probes') ? ['--probes'] : []), ...(kept ? ['--read-only', kept] : [])];
    program.callMain([location.hash.slice(1), ...more]);
    if (failed) return;
    listen(program);
    says.hidden = true;
    canvas.focus();
    window.fp8lab_page = program;  // for tests, and for whoever looks
}

start().catch(error => {
    console.error(error.stack);
    fail(`FP8 Lab could not be started: ${error.message}.`);
});
