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
    const kWait_ms = 1000;  // after a reload the page before may still hold it
    if (!navigator.locks) return nobody_answers();
    return new Promise(answer => {
        navigator.locks.request('fp8lab profile', { signal: AbortSignal.timeout(kWait_ms) }, () => {
            answer(true);
            return new Promise(() => {});
        }).catch(problem => answer(problem.name === 'TimeoutError' || problem.name === 'AbortError' ? false : nobody_answers()));
    });
}

// Without https there are no locks: the page asks whether another one is there.
function nobody_answers() {
    const kWait_ms = 300;
    const channel = new BroadcastChannel('fp8lab profile');
    return new Promise(answer => {
        channel.onmessage = ({ data }) => { if (data === 'here') answer(false); };
        channel.postMessage('who');
        setTimeout(() => {
            channel.onmessage = ({ data }) => { if (data === 'who') channel.postMessage('here'); };
            answer(true);
        }, kWait_ms);
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
    const kEvery_ms = 500;
    let under_way = false, again = false;
    const now = () => {
        again = under_way;
        if (under_way) return;
        under_way = true;
        FS.syncfs(false, problem => {
            under_way = false;
            if (problem) console.error(`not kept: ${problem}`);
            if (again) now();
        });
    };
    navigator.storage?.persist?.();
    setInterval(now, kEvery_ms);
    addEventListener('pagehide', now);
    document.addEventListener('visibilitychange', () => { if (document.hidden) now(); });
}

// ---- what the browser tells ----

function watch_size(program) {
    new ResizeObserver(([entry]) => {
        const exact = entry.devicePixelContentBoxSize?.[0];
        // Between two pixels only the browser knows which one it takes; where it says something else (an emulated ratio), it
        // is the ratio that counts.
        const pixels = (exact, length) => {
            const about = length * window.devicePixelRatio;
            return exact !== undefined && Math.abs(exact - about) <= 1 ? exact : Math.round(about);
        };
        canvas.width = pixels(exact?.inlineSize, entry.contentRect.width);
        canvas.height = pixels(exact?.blockSize, entry.contentRect.height);
        program._page_changed?.();
    }).observe(canvas, { box: 'devicePixelContentBoxSize' in ResizeObserverEntry.prototype ? 'device-pixel-content-box' : 'content-box' });
}

async function take_files(program, files) {
    program.FS.mkdirTree('/dropped');
    const paths = [];
    for (const file of [...files]) {
        paths.push(`/dropped/${file.name}`);
        program.FS.writeFile(paths.at(-1), new Uint8Array(await file.arrayBuffer()));
    }
    for (const path of paths) program.ccall('page_dropped', null, ['string'], [path]);  // together: several are one list
}

function listen(program) {
    addEventListener('hashchange', () => {
        if (!location.hash) return;
        program.ccall('page_open_link', null, ['string'], [location.hash.slice(1)]);
        history.replaceState(null, '', location.pathname + location.search);
    });
    canvas.addEventListener('webglcontextlost', () => fail('The browser took the page its WebGL.'));
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

// The service worker keeps the files. Without one (no https, a private window) the page needs its server.
async function keep_files() {
    if (!navigator.serviceWorker) return;
    try {
        await navigator.serviceWorker.register('sw.js');
    } catch (error) {
        console.warn(`not kept for use without a network: ${error.message}`);
    }
}

async function start() {
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
    const [data, before, program] = await Promise.all([bytes('fp8lab.data', files.data), asked_before(files).catch(() => new Map()), made]);
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
    if (location.hash) history.replaceState(null, '', location.pathname + location.search);  // a reload goes on from here
    keep_files();
    says.hidden = true;
    canvas.focus();
    window.fp8lab_page = program;  // for tests, and for whoever looks
}

start().catch(error => {
    console.error(error.stack);
    fail(`FP8 Lab could not be started: ${error.message}.`);
});
