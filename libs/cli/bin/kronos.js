#!/usr/bin/env node
// Plain JavaScript for any Node from 20 on: goes on with Node 24, the bundled one when the running one is older.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const bundled = fileURLToPath(new URL('../../../node_modules/.bin/node', import.meta.url));
// kronos-scorer and the like are the same program: `kronos scorer`.
const alias = basename(process.argv[1] ?? '', '.js').match(/^kronos-(.+)$/)?.[1];
const args = [
  ...(alias ? [alias === 'test-config' ? ['config', 'check'] : [alias]].flat() : []),
  ...process.argv.slice(2),
];

if (Number.parseInt(process.versions.node, 10) >= 24) {
  process.argv = [process.argv[0], main, ...args];
  await import(main);
} else if (existsSync(bundled)) {
  const child = spawnSync(bundled, [main, ...args], { stdio: 'inherit' });
  if (child.signal) process.kill(process.pid, child.signal);
  process.exit(child.status ?? 1);
} else {
  console.error(`kronos: Node 24 is needed, this is ${process.versions.node}; run npm ci, which brings it`);
  process.exit(1);
}
