// Checks the parts of this page, and then runs its own core and view out of them. Nothing is loaded from elsewhere.
const PARTS = ['recording', 'snapshots', 'core', 'view'];
const state = document.getElementById('state');
const packed = (id) => document.getElementById(id)?.textContent ?? '';
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const decode = (bytes) => new TextDecoder('utf-8', { fatal: true }).decode(bytes);
const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
const sha256 = async (text) => `sha256:${hex(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))}`;

async function unpack(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream('gzip'));
  return decode(await new Response(stream).arrayBuffer());
}

async function signatureOf(manifestText) {
  const text = packed('signature');
  if (text === '') return { kind: 'none' };
  try {
    const { publicKey, signature } = JSON.parse(decode(bytesOf(text)));
    const key = await crypto.subtle.importKey('raw', bytesOf(publicKey), { name: 'Ed25519' }, false, ['verify']);
    const signed = new TextEncoder().encode(manifestText);
    const ok = await crypto.subtle.verify({ name: 'Ed25519' }, key, bytesOf(signature), signed);
    return { kind: ok ? 'signed' : 'wrong', publicKey };
  } catch (error) {
    return error instanceof DOMException && error.name === 'NotSupportedError' ? { kind: 'unable' } : { kind: 'wrong' };
  }
}

async function open() {
  const problems = [];
  let manifestText;
  let manifest;
  try {
    manifestText = await unpack(packed('manifest'));
    manifest = JSON.parse(manifestText);
  } catch {
    return { problems: ['manifest: was changed: it cannot be read'] };
  }
  const parts = {};
  for (const name of PARTS) {
    try {
      parts[name] = await unpack(packed(name));
      if ((await sha256(parts[name])) !== manifest.parts?.[name]) problems.push(`${name}: was changed`);
    } catch {
      problems.push(`${name}: was changed: it cannot be unpacked`);
    }
  }
  const signature = await signatureOf(manifestText);
  if (signature.kind === 'wrong') problems.push('signature: is not of this manifest');
  return { problems, manifest, parts, signature };
}

const script = (text) => URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));

/** The address of each module of the views, whose imports lead to the addresses of the others. */
function linked({ modules, inPlace, core }, coreUrl) {
  const urls = new Map([[core, coreUrl]]);
  const urlOf = (name) => {
    const known = urls.get(name);
    if (known !== undefined) return known;
    const text = modules[name].replaceAll(
      /((?:\bfrom|\bimport)\s*)(["'])(\.{1,2}\/[^"']+)\2/g,
      (_, before, quote, spec) => {
        const asked = new URL(spec, `file:///${name}`).pathname.slice(1);
        return `${before}${quote}${urlOf(inPlace[asked] ?? asked)}${quote}`;
      },
    );
    const url = script(text);
    urls.set(name, url);
    return url;
  };
  return urlOf;
}

/** In the worker: links its modules from the first message, and hands them the ones that came meanwhile. */
function atWork() {
  const early = [];
  const start = async ({ views, core }) => {
    await import(linked(views, script(core))(views.worker));
    removeEventListener('message', keep);
    for (const message of early.slice(1)) dispatchEvent(new MessageEvent('message', { data: message }));
  };
  const keep = ({ data }) => {
    early.push(data);
    if (early.length === 1) void start(data);
  };
  addEventListener('message', keep);
}

try {
  const { problems, manifest, parts, signature } = await open();
  if (problems.length > 0) {
    state.textContent = `This file was changed after it was made. ${problems.join('. ')}.`;
    state.className = 'bad';
    document.documentElement.dataset.state = 'changed';
  } else {
    const views = JSON.parse(parts.view);
    const coreUrl = script(parts.core);
    const urlOf = linked(views, coreUrl);
    // The console starts its worker by the address that it has there. A worker of a file may load only what it made itself, and may be no module.
    const start = script(`${linked}\nconst script = ${script};\n(${atWork})();`);
    const { Worker } = globalThis;
    globalThis.Worker = class extends Worker {
      constructor() {
        super(start);
        this.postMessage({ views, core: parts.core });
      }
    };
    const [core, view] = [await import(coreUrl), await import(urlOf(views.entry))];
    await view.show({ manifest, signature, parts, core, sha256, state });
  }
} catch (error) {
  state.textContent = `This page cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
  state.className = 'bad';
  document.documentElement.dataset.state = 'failed';
}
