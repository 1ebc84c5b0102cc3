#!/usr/bin/env node
// Builds the nats command with Go, for the test of docs/nats.md, into the cache where that test looks for it. Where it cannot
// be built it says why and fails nothing.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const MODULE = 'github.com/nats-io/natscli@v0.3.0';
const TEN_MINUTES = 600_000;

const place = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'kronos', 'gobin');
const command = join(place, 'nats');
const go = (args, cwd) => spawnSync('go', args, { cwd, encoding: 'utf8', timeout: TEN_MINUTES });
const skip = (why) => {
  console.log(`skipped: the nats command is not built. ${why}`);
  process.exit(0);
};

if (existsSync(command)) {
  console.log(`the nats command is there: ${command}`);
  process.exit(0);
}
if (go(['version']).status !== 0) skip('There is no Go.');
mkdirSync(place, { recursive: true });
// Built from the module's own folder: `go install` would ask for the list of all versions, which not every proxy has.
const fetched = go(['mod', 'download', '-json', MODULE]);
if (fetched.status !== 0) skip(fetched.stderr || fetched.stdout);
const built = go(['build', '-o', command, './nats'], JSON.parse(fetched.stdout).Dir);
if (built.status !== 0) skip(built.stderr);
console.log(`built the nats command: ${command}`);
