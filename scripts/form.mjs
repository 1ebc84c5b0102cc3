#!/usr/bin/env node
// The form of the code: how large it is, and which functions are longer, more branched or wider than the limits of
// scripts/lint/form.json.
//   node scripts/form.mjs            prints the figures as JSON: lines by package, functions over the limits, arrows between packages and rooms; shapes of
//                                    the walk of the data and files for each kind of change, as CONTRIBUTING.md records them
//   node scripts/form.mjs --check    fails for a function over a limit that scripts/lint/formExceptions.json does not list, for an
//                                    exception that no function needs any more, for imports that point up or in a circle, and for
//                                    imports of packages of the project that a package.json does not declare
//   node scripts/form.mjs --record   writes the exceptions of today; new ones need a reason
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { roomOf, undeclaredImports, wrongArrows } from './arrows.mjs';
import { exportsOf, homonymsOf } from './exports.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const LIST = join(root, 'scripts/lint/formExceptions.json');

const SOURCE = /\.(ts|js|mjs)$/;
const TEST = /\.test\.ts$/;

/** Paths of all source files below a directory, relative to the root. */
function* sources(directory) {
  for (const entry of readdirSync(join(root, directory), { withFileTypes: true })) {
    if (entry.name === 'node_modules') continue;
    const path = `${directory}/${entry.name}`;
    if (entry.isDirectory()) yield* sources(path);
    else if (SOURCE.test(entry.name)) yield path;
  }
}

const packages = ['libs', 'services'].flatMap((parent) =>
  readdirSync(join(root, parent)).map((name) => `${parent}/${name}`),
);

const kindOf = (path) => (TEST.test(path) ? 'tests' : /\/testing\//.test(path) ? 'testing' : 'source');
/** Whether the images and the packages of a release have a file of a package. */
const ships = (path) => kindOf(path) === 'source' && !/^[^/]+\/[^/]+\/test\//.test(path);
const linesOf = (path) => readFileSync(join(root, path), 'utf8').split('\n').length - 1;

/** Lines of one place by kind. */
function sizeOf(directory) {
  const lines = { source: 0, tests: 0, testing: 0 };
  for (const path of sources(directory)) lines[kindOf(path)] += linesOf(path);
  return lines;
}

/** The imports of a file by their names, types included. */
const importsOf = (path) =>
  [...readFileSync(join(root, path), 'utf8').matchAll(/\b(?:from|import)\s*\(?\s*'([^']+)'/g)].map(([, name]) => name);

/**
 * The rooms of a package: the directories below src, and each file in src itself. Each with the rooms that it imports. The console's
 * modules are one page, and left out.
 */
function roomsOf(directory) {
  const src = `${directory}/src`;
  const rooms = {};
  for (const path of existsSync(join(root, src)) ? sources(src) : []) {
    if (kindOf(path) !== 'source' || !path.endsWith('.ts')) continue;
    const room = roomOf(relative(src, path));
    rooms[room] ??= new Set();
    for (const name of importsOf(path)) {
      const to = relative(src, join(dirname(path), name));
      if (name.startsWith('.') && !to.startsWith('..') && roomOf(to) !== room) rooms[room].add(roomOf(to));
    }
  }
  return Object.fromEntries(Object.entries(rooms).map(([room, to]) => [room, [...to].sort()]));
}

const manifestOf = (directory) => JSON.parse(readFileSync(join(root, directory, 'package.json'), 'utf8'));
const directoryOf = new Map(packages.map((directory) => [manifestOf(directory).name, directory]));
/** The packages of the project that a file imports, by name. */
const packagesOf = (path) =>
  importsOf(path).flatMap((name) => /^@kronos\/[a-z-]+/.exec(name)?.filter((own) => directoryOf.has(own)) ?? []);

/** The packages that the sources of a package import, as directories. */
function arrowsOf(directory) {
  const to = new Set();
  for (const path of sources(directory)) {
    if (kindOf(path) !== 'source') continue;
    for (const name of packagesOf(path)) to.add(directoryOf.get(name));
  }
  to.delete(directory);
  return [...to].sort();
}

/** The imports of a package that its package.json does not declare, in words. */
function undeclaredOf(directory) {
  const files = [...sources(directory)].map((path) => ({ path, ships: ships(path), names: packagesOf(path) }));
  return undeclaredImports(directory, manifestOf(directory), files);
}

/** Functions over a limit as `path: function: rule` with the value. Tests are lists of cases, and are left out. */
function overLimits() {
  const oxlint = join(root, 'node_modules/.bin/oxlint');
  const args = ['-c', 'scripts/lint/form.json', '-f', 'json', 'libs', 'services', 'scripts', 'test'];
  const { stdout, error } = spawnSync(oxlint, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 });
  if (error) throw error;
  const found = new Map();
  for (const { message, code, filename } of JSON.parse(stdout).diagnostics) {
    const path = relative(root, join(root, filename));
    if (TEST.test(path)) continue;
    const name = /[`']([^`']+)[`']/.exec(message)?.[1] ?? 'a function without a name';
    const value = Number(/\((\d+)\)/.exec(message)?.[1] ?? /complexity of (\d+)/.exec(message)?.[1]);
    const key = `${path}: ${name}: ${/\((.*)\)/.exec(code)?.[1] ?? code}`;
    found.set(key, Math.max(found.get(key) ?? 0, value));
  }
  for (const [key, value] of exportProblems()) found.set(key, value);
  return found;
}

/** Names that several files export: things of a cloud, as Nova answers and in the simulated cloud; and two deciders, planner and executor. */
const SEVERAL_MEANINGS = ['Aggregate', 'decide', 'evolve', 'Flavor', 'Group', 'Migration', 'Port', 'Server'];

/** Boolean parameters of exports, and names that several files export, in the same form. */
function exportProblems() {
  const problems = [];
  const names = new Map();
  for (const path of packages.flatMap((directory) => [...sources(directory)])) {
    if (kindOf(path) !== 'source' || !path.includes('/src/') || !path.endsWith('.ts')) continue;
    const exported = exportsOf(path, readFileSync(join(root, path), 'utf8'));
    names.set(path, exported.names);
    for (const { name, parameters } of exported.booleans)
      problems.push([`${path}: ${name}: boolean-parameter`, parameters.length]);
  }
  const homonyms = homonymsOf(names);
  for (const [name, files] of homonyms)
    if (!SEVERAL_MEANINGS.includes(name)) problems.push([`${files.join(' and ')}: ${name}: homonym`, files.length]);
  for (const name of SEVERAL_MEANINGS)
    if (!homonyms.has(name))
      problems.push([`scripts/form.mjs: ${name}: one file exports it: delete it from the list`, 1]);
  return problems;
}

const listed = () => JSON.parse(readFileSync(LIST, 'utf8'));

function check() {
  const exceptions = listed();
  const found = overLimits();
  const problems = [];
  for (const [key, value] of found) {
    const most = exceptions[key]?.most;
    if (most === undefined)
      problems.push(`${key}: ${value}: split it, or list it in scripts/lint/formExceptions.json with the reason`);
    else if (value > most) problems.push(`${key}: ${value}, and its exception allows ${most}: split it`);
  }
  for (const key of Object.keys(exceptions))
    if (!ships(key.split(':')[0]) || key.startsWith('test/'))
      problems.push(`${key}: tests have no exceptions: split it`);
    else if (!found.has(key))
      problems.push(`${key}: no exception is needed any more: delete it (node scripts/form.mjs --record)`);
    else if (exceptions[key].why === '') problems.push(`${key}: give the reason in scripts/lint/formExceptions.json`);
  const arrows = Object.fromEntries(packages.map((directory) => [directory, arrowsOf(directory)]));
  const rooms = Object.fromEntries(packages.map((directory) => [directory, roomsOf(directory)]));
  problems.push(...wrongArrows(arrows, rooms), ...packages.flatMap(undeclaredOf));
  for (const problem of problems) console.error(problem);
  return problems.length === 0;
}

function record() {
  const before = listed();
  const found = [...overLimits()].sort(([a], [b]) => (a < b ? -1 : 1));
  const after = Object.fromEntries(found.map(([key, most]) => [key, { most, why: before[key]?.why ?? '' }]));
  writeFileSync(LIST, `${JSON.stringify(after, null, 2)}\n`);
}

/** The directories of the code that decides. */
const CORE = ['facts', 'rules', 'placement', 'projections', 'cycle'].map((name) => `libs/${name}/src`);

/** How often the code of decisions turns text into a time or a time into text: by the codecs of contracts, and past them. */
function timeConversions() {
  const found = { timeMs: 0, iso: 0, besides: 0 };
  for (const path of CORE.flatMap((directory) => [...sources(directory)])) {
    if (kindOf(path) !== 'source') continue;
    const text = readFileSync(join(root, path), 'utf8');
    found.timeMs += text.match(/\btimeMs\(/g)?.length ?? 0;
    found.iso += text.match(/\biso(OrNull)?\(/g)?.length ?? 0;
    found.besides += text.match(/Date\.parse\(|\.toISOString\(/g)?.length ?? 0;
  }
  return found;
}

/** The shapes of the walk of the data, and the files that each kind of change needs, as CONTRIBUTING.md has them. */
function recordedFigures() {
  const costs = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8').split('## What a change costs')[1] ?? '';
  const [table = '', out = '', back = ''] = costs.split(/^\| shape.*\n/m);
  const shapesOf = (rows) => rows.match(/^\| `\w+` \| `/gm)?.length ?? 0;
  const rows = [...table.matchAll(/^\| ([^|]+) \| (\d+) \|/gm)];
  let kind = '';
  const changes = {};
  for (const [, name, files] of rows) {
    if (!name.startsWith('...')) kind = name;
    changes[name.startsWith('...') ? `${kind} ${name}` : name] = Number(files);
  }
  return { shapes: { out: shapesOf(out), back: shapesOf(back) }, changes };
}

function figures() {
  const over = {};
  for (const key of overLimits().keys()) {
    const rule = key.split(': ').at(-1);
    over[rule] = (over[rule] ?? 0) + 1;
  }
  const lines = Object.fromEntries([...packages, 'test', 'scripts'].map((directory) => [directory, sizeOf(directory)]));
  const total = { source: 0, tests: 0, testing: 0 };
  for (const size of Object.values(lines)) for (const kind of Object.keys(total)) total[kind] += size[kind];
  const arrows = Object.fromEntries(packages.map((directory) => [directory, arrowsOf(directory)]));
  const rooms = Object.fromEntries(packages.map((directory) => [directory, roomsOf(directory)]));
  const times = timeConversions();
  const npmScripts = Object.keys(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts).length;
  return { total, over, times, npmScripts, ...recordedFigures(), lines, arrows, rooms };
}

const [mode] = process.argv.slice(2);
if (mode === '--check') process.exitCode = check() ? 0 : 1;
else if (mode === '--record') record();
else console.log(JSON.stringify(figures(), null, 2));
