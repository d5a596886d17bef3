// Keeps the page's files, for use without a network. pack.mjs writes above these lines their names (kFiles) and their version
// (kVersion). A new version is taken once no tab shows the old one. All else of the server is none of its business.
const kName = `fp8lab ${registration.scope} `, kCache = kName + kVersion;
const kept = new Set(kFiles.map(file => new URL(file, registration.scope).href));

addEventListener('install', event => event.waitUntil(
    caches.open(kCache).then(cache => cache.addAll(kFiles.map(file => new Request(file, { cache: 'no-cache' }))))));
addEventListener('activate', event => event.waitUntil(take_over()));
addEventListener('fetch', event => {
    const address = new URL(event.request.url);
    address.search = address.hash = '';
    if (event.request.method === 'GET' && kept.has(address.href)) event.respondWith(answer(event.request));
});

async function take_over() {
    for (const name of await caches.keys()) if (name.startsWith(kName) && name !== kCache) await caches.delete(name);
    await clients.claim();
}

async function answer(request) {
    const cache = await caches.open(kCache);
    return (await cache.match(request, { ignoreSearch: true })) ?? fetch(request);
}
