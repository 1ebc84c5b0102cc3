import { describe, expect, it } from 'vitest';
import { animatedWebp } from './webp.ts';

/** A file with one lossy frame of that size; the bits of the picture are not looked at. */
function still(width: number, height: number, bits: string): Buffer {
  const body = Buffer.concat([Buffer.alloc(10), Buffer.from(bits)]);
  body.writeUInt16LE(width, 6);
  body.writeUInt16LE(height, 8);
  const head = Buffer.from('RIFF....WEBPVP8 ....');
  head.writeUInt32LE(12 + body.length, 4);
  head.writeUInt32LE(body.length, 16);
  return Buffer.concat([head, body, Buffer.alloc(body.length % 2)]);
}

describe('an animated WebP', () => {
  it('has each picture as a frame, of the size of the first, with its time; it has no end', () => {
    const file = animatedWebp([
      { picture: still(640, 480, 'odd'), ms: 100 },
      { picture: still(640, 480, 'even'), ms: 2000 },
    ]);
    expect(file.readUInt32LE(4)).toBe(file.length - 8);
    expect(file.toString('latin1', 8, 16)).toBe('WEBPVP8X');
    expect([file.readUIntLE(24, 3) + 1, file.readUIntLE(27, 3) + 1]).toEqual([640, 480]);
    const frames = [...file.toString('latin1').matchAll(/ANMF/g)].map(({ index }) => index);
    expect(frames.map((at) => [at % 2, file.readUIntLE(at + 20, 3)])).toEqual([
      [0, 100],
      [0, 2000],
    ]);
  });

  it('is not made of nothing, nor of another format', () => {
    expect(() => animatedWebp([])).toThrow('needs a picture');
    expect(() => animatedWebp([{ picture: Buffer.from('\x89PNG\r\n\x1a\n'), ms: 1 }])).toThrow('is not WebP');
  });
});
