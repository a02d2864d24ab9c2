// The photos to upload, in the browser's IndexedDB, so that they survive a reload. Without IndexedDB they last as long as the page.

const NAME = "inspector";
const STORE = "photos";

/** Runs `work` on the object store. Returns the result of its request, or `undefined` if the browser allows no storage. */
async function run(mode, work) {
  try {
    const database = await opened();
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(STORE, mode);
      const request = work(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request?.result);
      transaction.onerror = transaction.onabort = () => reject(transaction.error);
    });
  } catch {
    return undefined;
  }
}

let connection = null;

function opened() {
  connection ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "key" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return connection;
}

/** Stores a photo, `{ key, report, owner, file, … }`, or replaces the one with its key. */
export const put = (photo) => run("readwrite", (photos) => photos.put(photo));

export const remove = (key) => run("readwrite", (photos) => photos.delete(key));

export const clear = () => run("readwrite", (photos) => photos.clear());

/** Returns the photos of an inspector, and deletes those of others. */
export async function load(owner) {
  const all = (await run("readonly", (photos) => photos.getAll())) ?? [];
  for (const photo of all) if (photo.owner !== owner) await remove(photo.key);
  return all.filter((photo) => photo.owner === owner);
}
