// Keeps what the page loads, for use without a network. pack.mjs writes the version of the files above these lines (kVersion).
// A new version is taken once no tab shows the old one.
const kCache = `fp8lab ${kVersion}`;

addEventListener('activate', event => event.waitUntil(take_over()));
addEventListener('fetch', event => {
    if (event.request.method === 'GET' && new URL(event.request.url).origin === location.origin)
        event.respondWith(answer(event.request));
});

async function take_over() {
    for (const name of await caches.keys())
        if (name.startsWith('fp8lab ') && name !== kCache) await caches.delete(name);
    await clients.claim();
}

// From what is kept; else from the network, and kept from then on.
async function answer(request) {
    const cache = await caches.open(kCache);
    const kept = await cache.match(request, { ignoreSearch: true });
    if (kept) return isolated(kept);
    const response = await fetch(request, { cache: 'no-cache' });
    if (response.ok) await cache.put(request, response.clone());
    return isolated(response);
}

// A page has threads only where no other site's page shares its process.
function isolated(response) {
    if (response.status === 0) return response;
    const headers = new Headers(response.headers);
    headers.set('Cross-Origin-Opener-Policy', 'same-origin');
    headers.set('Cross-Origin-Embedder-Policy', 'require-corp');
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}
