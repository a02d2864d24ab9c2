// Reduces photos in the browser to the size that the service keeps, and finds files that cannot be photos.

const MAX_BYTES = 10_485_760;
/** The longer side of the photos that the service keeps, in pixels (INS-9). */
const MAX_SIDE = 2_560;
const QUALITY = 0.9;

/** Returns the file to send, and the error code of a file that cannot be sent. */
export async function reduced(file) {
  if (file.size === 0) return { file, errorCode: "photo_truncated" };
  if (!["image/jpeg", "image/png"].includes(file.type)) return { file, errorCode: "unsupported_photo" };
  // A file that ends too early is sent unchanged: the service rejects it, but a reduced copy would be accepted.
  const smaller = (await isWhole(file)) ? await scaled(file) : null;
  const sent = smaller ?? file;
  return { file: sent, errorCode: sent.size > MAX_BYTES ? "payload_too_large" : null };
}

const isWhole = async (file) => file.type !== "image/jpeg" || hasEnd(new Uint8Array(await file.arrayBuffer()));

const [START_OF_SCAN, END_OF_IMAGE] = [0xda, 0xd9];
/** Markers without a segment: 0 stands for a byte 0xFF of a scan, and the others are for restarts within a scan and the start. */
const isBare = (marker) => marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd8);

/**
 * Whether a JPEG has its end marker. Segments are skipped as a whole, because a photo's Exif segment has a thumbnail with an end marker
 * of its own. Some cameras append data after the end.
 */
export function hasEnd(bytes) {
  let at = bytes.indexOf(0xff);
  while (at >= 0 && at + 1 < bytes.length) {
    const marker = bytes[at + 1];
    if (marker === END_OF_IMAGE) return true;
    if (marker === 0xff) at += 1;
    else if (isBare(marker)) at = bytes.indexOf(0xff, at + 2);
    else if (at + 3 >= bytes.length) return false;
    else {
      at += 2 + (bytes[at + 2] << 8) + bytes[at + 3];
      // The data of a scan follow its segment, up to the next marker.
      if (marker === START_OF_SCAN || bytes[at] !== 0xff) at = bytes.indexOf(0xff, at);
    }
  }
  return false;
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
