// The page in a headless Chromium, by real mouse and key events.
//   node page_test.mjs PAGE OUT [NAME...]   OUT: a folder for screenshots and the downloaded submission; NAME: these tests alone
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Chromium, pause, serve } from './browser.mjs';

const [page, out, ...names] = process.argv.slice(2);
mkdirSync(out, { recursive: true });

let faults = 0;
const check = (holds, said) => {
    if (holds) return;
    ++faults;
    console.log(`  FAILED: ${said}`);
};
const metric = async (c, name) => (await c.probes()).metrics[name];

// ---- what a learner does ----

async function drag(c, name, dx, dy = 0) {
    const [x, y] = await c.place(name);
    await c.mouse('mouseMoved', [x, y]);
    await c.mouse('mousePressed', [x, y]);
    await c.mouse('mouseMoved', [x + dx, y + dy], { button: 'left', buttons: 1 });
    await c.mouse('mouseReleased', [x + dx, y + dy]);
    await c.settled();
}
async function fill(c, name, words) {
    await c.click(name);
    await c.until(async () => (await c.probes()).types, `${name} does not take text`, 5);
    await c.key('a', { ctrl: true });
    await c.type(words);
    await c.key('Enter');
}
async function pass(c, address, lab, exercise, acts, limit_s = 30) {
    await c.go(`${address}?probes#lab=${lab}`);
    await c.click('panel.Exercises');
    if (!(await c.probes()).probes['predict.commit']) await c.click(`exercise.${exercise}`);
    await acts();
    const file = `/profile/exercises/${exercise}.json`;
    await c.until(`fp8lab_page.FS.analyzePath("${file}").exists`, `${exercise} is not passed`, limit_s);
    await c.settled();
    await c.picture(join(out, `${exercise}.png`));
}

// ---- the tests ----

const kLabs = ['bits', 'ruler', 'error', 'window', 'delayed', 'blocks', 'adding', 'train', 'speed', 'memory', 'lower', 'four', 'transformer',
    'wide', 'gpus', 'clinic', 'serve', 'experts', 'workbench'];

const tests = {
    async 'every lab opens'(c, address) {
        await c.go(`${address}?probes`);
        await c.picture(join(out, 'home.png'));
        for (const lab of kLabs) {
            await c.value(`location.hash = 'lab=${lab}'`);
            await c.until(async () => (await c.probes()).lab === lab, `${lab} does not open`, 60);
            await c.until(async () => Object.keys((await c.probes()).metrics).length > 0, `${lab} has no numbers`, 60);
            await c.picture(join(out, `lab-${lab}.png`));
        }
    },
    async 'first exercises are passed, the submission is downloaded'(c, address) {
        await pass(c, address, 'L1', 'L1.1', async () => {
            await drag(c, 'predict.number', -80);
            for (const name of ['predict.commit', 'bits.bit6', 'bits.bit2', 'bits.bit1']) await c.click(name);
        });
        await pass(c, address, 'L3', 'L3.1', async () => {
            await drag(c, 'predict.knob0', 0, 80);
            await drag(c, 'predict.knob4', 0, -60);
            await c.click('predict.commit');
            await drag(c, 'error.marker', 40);
            for (const [name, words] of [['answer.e4m3', '1/16'], ['answer.e5m2', '11.1 %'], ['answer.e4m3', '1/17']]) await fill(c, name, words);
        });
        await pass(c, address, 'L5', 'L5.1', async () => {
            await drag(c, 'predict.number', 90);
            await c.click('predict.commit');
            await c.until(async () => (await metric(c, 'a.saturated_steps')) === 11, 'A does not saturate in 11 steps');
            await c.key('b');
            await c.key('b');
            await c.click('panel.Explore');
            await fill(c, 'margin.value', '1');
        });
        await pass(c, address, 'L8', 'L8.1', async () => {
            for (const name of ['predict.choice1', 'predict.commit', 'train.run']) await c.click(name);
        }, 240);
        await pass(c, address, 'L13', 'L13.1', async () => {
            for (const name of ['predict.choice1', 'predict.commit', 'transformer.run']) await c.click(name);
        }, 900);
        await c.key('e', { ctrl: true });
        await c.click('export.what.2');
        await c.click('export.save');
        const file = await c.until(() => readdirSync(c.downloads).find(name => name.endsWith('.f8lab')), 'no submission was downloaded');
        copyFileSync(join(c.downloads, file), join(out, 'submission.f8lab'));
    },
    async 'a reload keeps progress; a second tab only reads'(c, address) {
        await pass(c, address, 'L1', 'L1.1', async () => {
            await drag(c, 'predict.number', -80);
            for (const name of ['predict.commit', 'bits.bit6', 'bits.bit2', 'bits.bit1']) await c.click(name);
        });
        await pause(1000);
        await c.go(`${address}?probes`);
        check(await c.value('fp8lab_page.FS.analyzePath("/profile/exercises/L1.1.json").exists'), 'the evidence of L1.1 is gone after a reload');
        const first = c.session;
        await c.open_tab();
        await c.go(`${address}?probes`);
        const words = JSON.stringify((await c.probes()).words);
        check(/another tab/.test(words), 'the second tab does not say that it only reads');
        await c.picture(join(out, 'second-tab.png'));
        c.session = first;
    },
    async 'it opens without a server once it was loaded'(c, address, server) {
        await c.go(`${address}?probes`);
        await c.value('navigator.serviceWorker.ready.then(() => true)');
        await pause(500);
        server.close();
        await c.go(`${address}?probes#lab=L1`);
        check((await c.probes()).lab === 'bits', 'L1 does not open without the server');
    },
    async 'a training that a reload ends is told, with its step'(c, address) {
        await c.go(`${address}?probes#lab=L8`);
        await c.click('train.run');
        await c.until(async () => (await c.value('fp8lab_page.FS.readFile("/profile/journal.jsonl", {encoding: "utf8"})')).includes('"trained.train"'), 'no step is noted', 60);
        await pause(8000);
        await c.go(`${address}?probes`);
        const { words, lab } = await c.probes();
        check(/ended at step \d+00 or up to 99 later/.test(JSON.stringify(words)), `nothing is said of the training: ${JSON.stringify(words).slice(0, 300)}`);
        check(lab === 'train', `the lab that was open is not: ${lab}`);
        await c.picture(join(out, 'training-lost.png'));
    },
    async 'the picture has a pixel for each of the device, at every ratio'(c, address) {
        for (const ratio of [1, 1.5, 2, 3]) {
            await c.resize([1024, 640], ratio);
            await c.go(`${address}?probes#lab=L3`);
            const [width, height] = await c.value('[document.getElementById("canvas").width, document.getElementById("canvas").height]');
            check(width === 1024 * ratio && height === 640 * ratio, `at ratio ${ratio} the canvas has ${width}x${height} pixels`);
            await c.click('rail.ruler');
            check((await c.probes()).lab === 'ruler', `at ratio ${ratio} a click does not reach its control`);
            await c.picture(join(out, `ratio-${ratio}.png`));
        }
    },
    async 'fingers tap, drag and scroll'(c, address) {
        await c.go(`${address}?probes#lab=L1`);
        const tap = async at => {
            await c.touch('touchStart', [at]);
            await c.touch('touchEnd', []);
            await c.settled();
        };
        const before = await metric(c, 'code_hex');
        await tap(await c.place('bits.bit3'));
        check((await metric(c, 'code_hex')) !== before, 'a tap on a bit does not flip it');
        await tap(await c.place('rail.error'));
        check((await c.probes()).lab === 'error', 'a tap in the rail opens no lab');
        const slide = async (from, to) => {
            await c.touch('touchStart', [from]);
            await pause(200);
            for (let i = 1; i <= 8; ++i) {
                await c.touch('touchMove', [[from[0] + (to[0] - from[0]) * i / 8, from[1] + (to[1] - from[1]) * i / 8]]);
                await pause(40);
            }
            await c.touch('touchEnd', []);
            await c.settled();
        };
        const at = await metric(c, 'x');
        const marker = await c.place('error.marker');
        await slide(marker, [marker[0] + 60, marker[1]]);
        check((await c.place('error.marker'))[0] > marker[0] + 30, `a finger does not drag the marker (x ${at})`);
        const lesson = async () => Object.entries((await c.probes()).probes).filter(([name]) => name.startsWith('term.'));
        const first = JSON.stringify(await lesson());
        await slide([1300, 600], [1300, 300]);
        check(JSON.stringify(await lesson()) !== first, 'a finger does not scroll the lesson');
        await c.picture(join(out, 'touched.png'));
    },
    async 'chords arrive, and the browser does not take them'(c, address) {
        await c.go(`${address}?probes#lab=L1`);
        const opens = async (probe, key, more, said) => {
            await c.key(key, more);
            check((await c.probes()).probes[probe] !== undefined, said);
            await c.key('Escape');
        };
        await opens('palette', 'k', { ctrl: true }, 'Ctrl K opens nothing');
        await opens('glossary', 'g', { ctrl: true }, 'Ctrl G opens nothing');
        await opens('scene', 's', { ctrl: true }, 'Ctrl S opens nothing');
        await opens('export', 'e', { ctrl: true }, 'Ctrl E opens nothing');
        const theme = (await c.probes()).theme;
        await c.key('F8');
        check((await c.probes()).theme !== theme, 'F8 does not change the theme');
        await c.value('window.stayed = true');
        await c.key('r', { ctrl: true });
        await c.key('F5');
        await c.key('Escape');
        check((await c.value('window.stayed')) === true, 'Ctrl R or F5 reloaded the page');
    },
    async 'bad links are one sentence'(c, address) {
        for (const bad of ['lab=L99', 'lab=L5&history=x', 'nonsense', 'scene=nowhere', 'lab=%zz', 'lab=L1&scene=L05-b-ramp-real']) {
            await c.go(`${address}?probes#${bad}`);
            check(Object.keys((await c.probes()).probes).some(name => name.startsWith('toast')), `${bad}: nothing is said`);
        }
        await c.picture(join(out, 'bad-link.png'));
    },
};

const chosen = Object.entries(tests).filter(([name]) => names.length === 0 || names.some(part => name.includes(part)));
for (const [name, test] of chosen) {
    const server = await serve(page);
    const c = await Chromium.start();
    const began = Date.now();
    try {
        await test(c, server.address, server);
    } catch (error) {
        check(false, error.message);
        await c.picture(join(out, 'failed.png')).catch(() => {});
    }
    check(!c.log.some(line => line.startsWith('exception')), c.log.find(line => line.startsWith('exception')));
    await c.stop();
    server.close();
    console.log(`${name}: ${((Date.now() - began) / 1000).toFixed(1)} s`);
}
console.log(faults === 0 ? `page: ${chosen.length} tests passed` : `page: ${faults} faults`);
process.exit(faults === 0 ? 0 : 1);
