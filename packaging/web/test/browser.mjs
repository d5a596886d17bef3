// A headless Chromium, driven over its debugging protocol by two pipes, and a plain static server for the page.
import { spawn } from 'node:child_process';
import { createReadStream, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';

const kTypes = { '.html': 'text/html', '.js': 'text/javascript', '.wasm': 'application/wasm', '.json': 'application/json', '.svg': 'image/svg+xml' };

// Serves a folder as `python3 -m http.server` does: no compression, no headers of its own. Returns {address, close()}.
export function serve(folder) {
    const server = createServer((request, response) => {
        const path = join(folder, normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname)));
        const file = path.endsWith('/') ? path + 'index.html' : path;
        const found = statSync(file, { throwIfNoEntry: false })?.isFile();
        response.writeHead(found ? 200 : 404, { 'content-type': kTypes[extname(file)] ?? 'application/octet-stream' });
        if (found) createReadStream(file).pipe(response);
        else response.end();
    });
    return new Promise(done => server.listen(0, '127.0.0.1', () =>
        done({ address: `http://127.0.0.1:${server.address().port}/`, close: () => { server.closeAllConnections(); server.close(); } })));
}

export const pause = ms => new Promise(done => setTimeout(done, ms));

const kKeys = { Escape: 27, Enter: 13, Tab: 9, Backspace: 8, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, ' ': 32, Home: 36, End: 35, Delete: 46 };

export class Chromium {
    #next = 0;
    #waiting = new Map();
    #heard = '';
    log = [];  // what the page's console said

    static async start({ size = [1440, 900], ratio = 1, program = process.env.CHROMIUM ?? 'chromium', profile } = {}) {
        const self = new Chromium();
        self.downloads = mkdtempSync(join(tmpdir(), 'fp8lab-web-'));
        self.profile = profile ?? join(self.downloads, 'profile');
        self.process = spawn(program, ['--headless=new', '--no-sandbox', '--remote-debugging-pipe', `--user-data-dir=${self.profile}`,
            '--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--hide-scrollbars', '--no-first-run', 'about:blank'],
            { detached: true, stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
        self.process.stdio[4].setEncoding('utf8');
        self.process.stdio[4].on('data', part => self.#hear(part));
        await self.open_tab(size, ratio);
        return self;
    }
    async open_tab(size = [1440, 900], ratio = 1) {
        const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' }, null);
        const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true }, null);
        this.session = sessionId;
        await this.send('Page.enable');
        await this.send('Runtime.enable');
        await this.send('Network.enable');
        await this.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: this.downloads }, null);
        await this.resize(size, ratio);
        return sessionId;
    }
    resize([width, height], ratio = 1, mobile = false) {
        return this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: ratio, mobile });
    }
    async stop() {
        const ended = new Promise(done => this.process.once('exit', done));
        process.kill(-this.process.pid, 'SIGKILL');  // and its children, which write into the profile
        await ended;
        await pause(200);
        rmSync(this.downloads, { recursive: true, force: true, maxRetries: 5 });
    }
    #hear(part) {
        this.#heard += part;
        for (let end = this.#heard.indexOf('\0'); end >= 0; end = this.#heard.indexOf('\0')) {
            const message = JSON.parse(this.#heard.slice(0, end));
            this.#heard = this.#heard.slice(end + 1);
            const waiting = this.#waiting.get(message.id);
            if (waiting) {
                this.#waiting.delete(message.id);
                if (message.error) waiting.failed(new Error(`${waiting.method}: ${message.error.message}`));
                else waiting.done(message.result);
            }
            if (message.method === 'Runtime.consoleAPICalled') this.log.push(message.params.args.map(a => a.value ?? a.description).join(' '));
            if (message.method === 'Runtime.exceptionThrown') this.log.push('exception: ' + (message.params.exceptionDetails.exception?.description ?? message.params.exceptionDetails.text));
        }
    }
    send(method, params = {}, sessionId = this.session) {
        const id = ++this.#next;
        this.process.stdio[3].write(JSON.stringify({ id, method, params, ...(sessionId ? { sessionId } : {}) }) + '\0');
        const answer = new Promise((done, failed) => this.#waiting.set(id, { done, failed, method }));
        const kMost_ms = 60000;
        let clock;
        const late = new Promise((_, failed) => { clock = setTimeout(() => failed(new Error(`${method}: no answer`)), kMost_ms); });
        return Promise.race([answer, late]).finally(() => clearTimeout(clock));
    }
    async value(expression) {
        const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
        if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
        return result.value;
    }
    // Waits until `what` holds: a function of the probes, or an expression of the page.
    async until(what, said, limit_s = 30) {
        for (const end = Date.now() + 1000 * limit_s; Date.now() < end; await pause(50)) {
            const value = typeof what === 'string' ? await this.value(what) : await what();
            if (value) return value;
        }
        throw new Error(`after ${limit_s} s: ${said}`);
    }
    async go(address) {
        await this.send('Page.navigate', { url: 'about:blank' });
        await this.send('Page.navigate', { url: address });
        await this.until('window.fp8lab_page !== undefined && !document.getElementById("canvas").hidden', 'the page has not started: ' + this.log.join('; '), 60);
        await this.settled();
    }
    async probes() { return JSON.parse((await this.value('fp8lab_page.ccall("page_probes", "string", [], [])')) || '{}'); }
    async settled() {  // no frame for a while
        let last = -1;
        const end = Date.now() + 20000;
        for (let same = 0; same < 4 && Date.now() < end; await pause(60)) {
            const { frames } = await this.probes();
            same = frames !== undefined && frames === last ? same + 1 : 0;
            last = frames;
        }
    }
    async place(name) {
        const rect = await this.until(async () => (await this.probes()).probes?.[name], `there is no '${name}'`, 10);
        const ratio = await this.value('devicePixelRatio');
        return [(rect[0] + rect[2]) / 2 / ratio, (rect[1] + rect[3]) / 2 / ratio];
    }
    async mouse(type, [x, y], more = {}) {
        await this.send('Input.dispatchMouseEvent', { type, x, y, button: type === 'mouseMoved' ? 'none' : 'left', buttons: type === 'mousePressed' ? 1 : 0, clickCount: 1, ...more });
    }
    async click(name) {
        const at = typeof name === 'string' ? await this.place(name) : name;
        await this.mouse('mouseMoved', at);
        await this.mouse('mousePressed', at);
        await this.mouse('mouseReleased', at);
        await this.settled();
    }
    async touch(type, points) {
        await this.send('Emulation.setTouchEmulationEnabled', { enabled: true });
        await this.send('Input.dispatchTouchEvent', { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });
    }
    async key(key, { ctrl = false, shift = false, alt = false, code } = {}) {
        const modifiers = (alt ? 1 : 0) | (ctrl ? 2 : 0) | (shift ? 8 : 0);
        const letter = key.length === 1;
        const place = code ?? (/^[a-z]$/i.test(key) ? `Key${key.toUpperCase()}` : /^\d$/.test(key) ? `Digit${key}` : key === ' ' ? 'Space' : { ',': 'Comma', '.': 'Period', '-': 'Minus', '=': 'Equal', '/': 'Slash', '?': 'Slash' }[key] ?? key);
        const number = kKeys[key] ?? (letter ? key.toUpperCase().charCodeAt(0) : /^F\d+$/.test(key) ? 111 + Number(key.slice(1)) : 0);
        const event = { key, code: place, modifiers, windowsVirtualKeyCode: number };
        await this.send('Input.dispatchKeyEvent', { type: letter && !ctrl ? 'keyDown' : 'rawKeyDown', ...(letter && !ctrl ? { text: key } : {}), ...event });
        await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
        await this.settled();
    }
    async type(words) { for (const letter of words) await this.key(letter); }
    async picture(file) {
        const { data } = await this.send('Page.captureScreenshot', { format: 'png' });
        writeFileSync(file, Buffer.from(data, 'base64'));
    }
}
