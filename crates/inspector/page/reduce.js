// Reduces photos in the browser to the size that the service keeps, and finds files that cannot be photos.

const MAX_BYTES = 10_485_760;
/** The longer side of the photos that the service keeps, in pixels (INS-9). */
const MAX_SIDE = 2_560;
const QUALITY = 0.9;
/** How far from its end a JPEG is searched for its end marker, in bytes. Some cameras append data of their own. */
const TAIL = 65_536;

/** Returns the file to send, and the error code of a file that cannot be sent. */
export async function reduced(file) {
  if (file.size === 0) return { file, errorCode: "photo_truncated" };
  if (!["image/jpeg", "image/png"].includes(file.type)) return { file, errorCode: "unsupported_photo" };
  // A file that ends too early is sent unchanged: the service rejects it, but a reduced copy would be accepted.
  const smaller = (await isWhole(file)) ? await scaled(file) : null;
  const sent = smaller ?? file;
  return { file: sent, errorCode: sent.size > MAX_BYTES ? "payload_too_large" : null };
}

async function isWhole(file) {
  if (file.type !== "image/jpeg") return true;
  const tail = new Uint8Array(await file.slice(-TAIL).arrayBuffer());
  return tail.some((byte, index) => byte === 0xff && tail[index + 1] === 0xd9);
}

/** Returns a smaller copy of a large photo, or `null` if it is small or the browser cannot read it. */
async function scaled(file) {
  try {
    const bitmap = await createImageBitmap(file);
    const { width, height } = bitmap;
    const share = MAX_SIDE / Math.max(width, height);
    if (share >= 1 && file.size <= MAX_BYTES) return null;
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(width * Math.min(share, 1));
    canvas.height = Math.round(height * Math.min(share, 1));
    canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((resolve) => {
      canvas.toBlob(resolve, "image/jpeg", QUALITY);
    });
    return blob && new File([blob], file.name, { type: "image/jpeg" });
  } catch {
    return null;
  }
}
