/** Animated WebP from still pictures in WebP, without touching their bits. Format: RFC 9649. */

/** Chunks that hold the picture itself. */
const IMAGE = ['ALPH', 'VP8 ', 'VP8L'];
const HEADER = 12;
const CHUNK_HEADER = 8;

type Chunk = { readonly kind: string; readonly body: Buffer };

/** @param stills of the same size, at least one; each is shown for its `ms` */
export function animatedWebp(stills: readonly { readonly picture: Buffer; readonly ms: number }[]): Buffer {
  const pictures = stills.map(({ picture, ms }) => {
    return { ms, chunks: chunksOf(picture).filter(({ kind }) => IMAGE.includes(kind)) };
  });
  const first = pictures[0]?.chunks;
  if (first === undefined) throw new Error('an animation needs a picture');
  const { width, height } = sizeOf(first);
  const frames = pictures.map(({ ms, chunks }) => {
    const head = Buffer.alloc(16);
    head.writeUIntLE(width - 1, 6, 3);
    head.writeUIntLE(height - 1, 9, 3);
    head.writeUIntLE(Math.round(ms), 12, 3);
    // The frame covers the one before it and is not blended with it.
    head.writeUInt8(0b10, 15);
    return chunk('ANMF', Buffer.concat([head, ...chunks.map(({ kind, body }) => chunk(kind, body))]));
  });
  const canvas = Buffer.alloc(10);
  canvas.writeUInt8(0b10, 0);
  canvas.writeUIntLE(width - 1, 4, 3);
  canvas.writeUIntLE(height - 1, 7, 3);
  // A white background, and no end.
  const animation = Buffer.from([255, 255, 255, 255, 0, 0]);
  const body = Buffer.concat([Buffer.from('WEBP'), chunk('VP8X', canvas), chunk('ANIM', animation), ...frames]);
  return Buffer.concat([Buffer.from('RIFF'), uint32(body.length), body]);
}

function chunksOf(file: Buffer): Chunk[] {
  if (file.toString('latin1', 0, 4) !== 'RIFF' || file.toString('latin1', 8, HEADER) !== 'WEBP')
    throw new Error('a picture is not WebP');
  const chunks: Chunk[] = [];
  for (let at = HEADER; at + CHUNK_HEADER <= file.length; ) {
    const length = file.readUInt32LE(at + 4);
    const from = at + CHUNK_HEADER;
    chunks.push({ kind: file.toString('latin1', at, at + 4), body: file.subarray(from, from + length) });
    at = from + length + (length % 2);
  }
  return chunks;
}

function sizeOf(chunks: readonly Chunk[]): { readonly width: number; readonly height: number } {
  const lossy = chunks.find(({ kind }) => kind === 'VP8 ');
  // After the frame tag and the start code of a key frame: 14 bits each.
  if (lossy !== undefined)
    return { width: lossy.body.readUInt16LE(6) & 0x3fff, height: lossy.body.readUInt16LE(8) & 0x3fff };
  throw new Error('a picture has no lossy WebP frame');
}

/** Chunks begin at even places. */
const chunk = (kind: string, body: Buffer): Buffer =>
  Buffer.concat([Buffer.from(kind, 'latin1'), uint32(body.length), body, Buffer.alloc(body.length % 2)]);

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
