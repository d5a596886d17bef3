// Packs the page's files into the folder PAGE, which has the program already: fp8lab.data, the assets one behind the other;
// files.json, which names them; sw.js, which keeps them in the browser. What is large and not always needed stays a file of
// its own, which the program asks for.
//   node pack.mjs ASSETS FONTS SOURCES PAGE
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const [assets, fonts, sources, page] = process.argv.slice(2);
const kAsked = /^models\//;
const kLeftOut = /^docs\/(?!manual\/)/;

function* below(folder, name = '') {
    for (const entry of readdirSync(join(folder, name), { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
        const path = name === '' ? entry.name : `${name}/${entry.name}`;
        if (entry.isDirectory()) yield* below(folder, path);
        else yield path;
    }
}

const packed = [], asked = [], parts = [];
function pack(path, bytes) {
    packed.push([path, bytes.length]);
    parts.push(bytes);
}
rmSync(join(page, 'assets'), { recursive: true, force: true });
for (const path of below(assets)) {
    if (kLeftOut.test(path)) continue;
    const bytes = readFileSync(join(assets, path));
    if (!kAsked.test(path)) {
        pack(path, bytes);
        continue;
    }
    const target = join(page, 'assets', path);
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(join(assets, path), target);
    asked.push([path, bytes.length, createHash('sha256').update(bytes).digest('hex').slice(0, 8)]);
}
for (const path of below(fonts)) pack(`fonts/${path}`, readFileSync(join(fonts, path)));
const data = Buffer.concat(parts);
writeFileSync(join(page, 'fp8lab.data'), data);
writeFileSync(join(page, 'files.json'), JSON.stringify({ data: data.length, packed, asked }));

for (const path of below(sources)) if (path !== 'sw.js') copyFileSync(join(sources, path), join(page, path));
const kept = readdirSync(page).filter(name => name !== 'sw.js' && statSync(join(page, name)).isFile()).sort();
const hash = createHash('sha256');
for (const name of kept) hash.update(name).update(readFileSync(join(page, name)));
const version = hash.update(readFileSync(join(sources, 'sw.js'))).digest('hex').slice(0, 16);
writeFileSync(join(page, 'sw.js'),
    `const kVersion = '${version}';\nconst kFiles = ${JSON.stringify(['./', ...kept])};\n${readFileSync(join(sources, 'sw.js'), 'utf8')}`);
