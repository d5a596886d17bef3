// Runs the commands of same_as_desktop.txt in Node and holds what they say to what the desktop said: DESKTOP/1.out and
// 1.status are of the first command, ...
//   node same_as_desktop.mjs PROGRAM DESKTOP
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [program, desktop] = process.argv.slice(2);
const text = readFileSync(join(dirname(fileURLToPath(import.meta.url)), 'same_as_desktop.txt'), 'utf8');

const commands = [];  // {words, may: [{field, most, seen}]}
for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    if (!line.startsWith(' ')) {
        commands.push({ words: line, may: [] });
        continue;
    }
    const [field, most] = line.trim().split(' ');
    commands.at(-1).may.push({ field, most: most === 'any' ? Infinity : Number(most), seen: false });
}
const always = commands.shift().may;
const fits = (field, path) => (field.endsWith('*') ? path.startsWith(field.slice(0, -1)) : field === path);

// The places where two values of JSON differ: [path, ours, theirs].
function* differences(ours, theirs, path = '') {
    if (ours === theirs) return;
    const both = [ours, theirs].every(value => value !== null && typeof value === 'object');
    if (!both) return yield [path, ours, theirs];
    for (const key of new Set([...Object.keys(ours), ...Object.keys(theirs)]))
        yield* differences(ours[key], theirs[key], path === '' ? key : `${path}.${key}`);
}

const relative = (a, b) =>
    typeof a === 'number' && typeof b === 'number' ? Math.abs(a - b) / Math.max(Math.abs(a), Math.abs(b)) : Infinity;

// What is wrong, a sentence each.
function* faults({ may }, ours, theirs) {
    if (ours === theirs) return;
    let parsed;
    try {
        parsed = [JSON.parse(ours), JSON.parse(theirs)];
    } catch {
        const [a, b] = [ours.split('\n'), theirs.split('\n')];
        const at = a.findIndex((line, i) => line !== b[i]);
        return yield `line ${at + 1} is '${a[at]}', on the desktop '${b[at]}'`;
    }
    for (const [path, a, b] of differences(...parsed)) {
        const row = [...may, ...always].find(({ field }) => fits(field, path));
        if (row === undefined || !(row.most === Infinity || relative(a, b) <= row.most))
            yield `${path} is ${JSON.stringify(a)}, on the desktop ${JSON.stringify(b)} (relative difference ${relative(a, b)})`;
        else row.seen = true;
    }
}

let bad = 0;
const say = (words, fault) => (console.error(`web: ${words}: ${fault}`), ++bad);
for (const [i, command] of commands.entries()) {
    const run = spawnSync(process.execPath, [program, ...command.words.split(' ')], { maxBuffer: 1 << 30 });
    const status = Number(readFileSync(join(desktop, `${i + 1}.status`), 'utf8'));
    if (run.status !== status) say(command.words, `ends with ${run.status}, on the desktop with ${status}: ${run.stderr}`);
    else
        for (const fault of faults(command, run.stdout.toString(), readFileSync(join(desktop, `${i + 1}.out`), 'utf8')))
            say(command.words, fault);
    for (const { field, seen } of command.may)
        if (!seen) say(command.words, `'${field}' does not differ any more: remove its line`);
}
console.error(`web: ${commands.length} commands, ${bad === 0 ? 'all as on the desktop' : `${bad} differences`}`);
process.exit(bad === 0 ? 0 : 1);
