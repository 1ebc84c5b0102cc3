/** The form of an evidence file: one HTML page, its parts compressed, each with its digest. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';
import { EvidenceInvalid } from './errors.ts';
import { viewStyle } from './view.ts';

/** The parts, in the order of the page. `core` and `view` are programs; `files` and `snapshots` are the recording. */
const PARTS = ['recording', 'snapshots', 'core', 'view'] as const;
type PartName = (typeof PARTS)[number];

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);
const manifestSchema = z.strictObject({
  kronosEvidence: z.literal(1),
  madeBy: z.string(),
  madeAt: z.iso.datetime(),
  plannerVersion: z.string(),
  anonymized: z.boolean(),
  aggregates: z.array(z.string()),
  since: z.iso.datetime(),
  until: z.iso.datetime(),
  /** Of the text of each part, before it is compressed. */
  parts: z.strictObject({ recording: digest, snapshots: digest, core: digest, view: digest }),
  /** Of each decision, as the core of this file makes it from what is in this file: by the snapshot's id. */
  decisions: z.record(z.string(), digest),
});
export type Manifest = z.infer<typeof manifestSchema>;

/** Who signed a file: a signature of the manifest's text. */
const signatureSchema = z.strictObject({
  algorithm: z.literal('Ed25519'),
  /** Raw public key and signature, base64. */
  publicKey: z.string(),
  signature: z.string(),
});
export type Signature = z.infer<typeof signatureSchema>;

export type Evidence = {
  /** As it is signed. */
  readonly manifestText: string;
  readonly manifest: Manifest;
  readonly signature: Signature | null;
  readonly parts: Readonly<Record<PartName, string>>;
};

export const sha256 = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`;
const pack = (text: string): string => gzipSync(text, { level: 9 }).toString('base64');
const unpack = (packed: string): string => gunzipSync(Buffer.from(packed, 'base64')).toString('utf8');
const page = (name: string): string => readFileSync(new URL(`../page/${name}`, import.meta.url), 'utf8');

const PART = (name: string): RegExp => new RegExp(`<script type="text/plain" id="${name}">([^<]*)</script>`);
const cspHash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** The page. It loads nothing: its own program checks the parts, and then runs the core and the view out of them. */
export function htmlOf({ manifestText, signature, parts }: Omit<Evidence, 'manifest'>): string {
  const { recording, snapshots, core, view } = parts;
  const packed = { recording: pack(recording), snapshots: pack(snapshots), core: pack(core), view: pack(view) };
  return pageOf(manifestText, signature, packed);
}

function pageOf(manifestText: string, signature: Signature | null, packed: Evidence['parts']): string {
  const boot = page('boot.js');
  const style = viewStyle();
  const csp = [
    "default-src 'none'",
    `script-src ${cspHash(boot)} blob:`,
    'worker-src blob:',
    `style-src ${cspHash(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  const data = (name: string, text: string): string => `<script type="text/plain" id="${name}">${text}</script>`;
  return [
    '<!doctype html>',
    '<html lang="en"><head><meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${csp}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<title>Kronos: evidence</title>',
    `<style>${style}</style>`,
    '</head><body>',
    '<h1>Kronos: evidence</h1>',
    '<main id="main"><p id="state" role="status">The program of this page did not run. Open the file in a browser with scripts; where that does not help, the file was changed: kronos evidence verify FILE names the place.</p></main>',
    // The console's parts expect it.
    '<dialog id="dialog" aria-labelledby="dialog-title"></dialog>',
    data('manifest', pack(manifestText)),
    data('signature', signature === null ? '' : Buffer.from(JSON.stringify(signature)).toString('base64')),
    ...PARTS.map((name) => data(name, packed[name])),
    `<script type="module">${boot}</script>`,
    '</body></html>',
    '',
  ].join('\n');
}

/** The evidence of a file, and its problems: one sentence each, with the part. */
export type ReadEvidence = { readonly evidence: Evidence | null; readonly problems: readonly string[] };

/** Reads a file and compares each part with its digest. @throws EvidenceInvalid when it is no evidence at all */
export function readEvidence(file: string, html: string): ReadEvidence {
  const raw = (name: string): string => {
    const found = PART(name).exec(html)?.[1];
    if (found === undefined) throw new EvidenceInvalid(file, `is no evidence of Kronos: it has no part ${name}`);
    return found;
  };
  const problems: string[] = [];
  const packedManifest = raw('manifest');
  let manifestText: string;
  let manifest: Manifest;
  try {
    manifestText = unpack(packedManifest);
    manifest = manifestSchema.parse(JSON.parse(manifestText));
  } catch {
    return { evidence: null, problems: ['manifest: was changed: it cannot be read'] };
  }
  const parts: Partial<Record<PartName, string>> = {};
  const packed = { recording: raw('recording'), snapshots: raw('snapshots'), core: raw('core'), view: raw('view') };
  for (const name of PARTS) {
    try {
      const text = unpack(packed[name]);
      if (sha256(text) !== manifest.parts[name] || pack(text) !== packed[name]) problems.push(`${name}: was changed`);
      parts[name] = text;
    } catch {
      problems.push(`${name}: was changed: it cannot be unpacked`);
    }
  }
  const signature = signatureIn(raw('signature'), problems);
  if (!complete(parts)) return { evidence: null, problems };
  const evidence: Evidence = { manifestText, manifest, signature, parts };
  if (problems.length === 0 && pageOf(manifestText, signature, packed) !== html)
    problems.push('page: was changed, or another version of Kronos made it: its program, style or policy differs');
  return { evidence, problems };
}

const complete = (parts: Partial<Record<PartName, string>>): parts is Record<PartName, string> =>
  PARTS.every((name) => parts[name] !== undefined);

function signatureIn(packed: string, problems: string[]): Signature | null {
  if (packed === '') return null;
  try {
    return signatureSchema.parse(JSON.parse(Buffer.from(packed, 'base64').toString('utf8')));
  } catch {
    problems.push('signature: was changed: it cannot be read');
    return null;
  }
}
