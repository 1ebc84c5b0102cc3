#!/usr/bin/env node
// Plain JavaScript for any Node from 20 on: goes on with Node 24, the bundled one when the running one is older.
import { spawn } from 'node:child_process';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));
// kronos-scorer and the like are the same program: `kronos scorer`.
const alias = basename(process.argv[1] ?? '', '.js').match(/^kronos-(.+)$/)?.[1];
const first = alias === 'test-config' ? ['config', 'check'] : alias === undefined ? [] : [alias];
const args = [...first, ...process.argv.slice(2)];

if (Number.parseInt(process.versions.node, 10) >= 24) {
  process.argv = [process.argv[0], main, ...args];
  await import(main);
} else {
  const { bundledNode } = await import('../../../scripts/bundledNode.mjs');
  const node = bundledNode(fileURLToPath(new URL('../../..', import.meta.url)));
  if (node === null) {
    console.error(`kronos: Node 24 is needed, this is ${process.versions.node}; run npm ci, which brings it`);
    process.exit(1);
  }
  const child = spawn(node, [main, ...args], { stdio: 'inherit' });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}
