import { accountsByNsc, accountsConfiguration, loginVariable, SYSTEM_USER, users } from './permissions.ts';

/** The server configurations in deploy/nats, written by `npm run generate` and kept equal by a test. */

const NOTE = '# Generated from deploy/nats/accounts.json by `npm run generate`: change that, not this.';

type Node = { readonly name: string; readonly zone?: string };

const HOSTS: readonly Required<Node>[] = [
  { name: 'nats-1', zone: 'a' },
  { name: 'nats-2', zone: 'b' },
  { name: 'nats-3', zone: 'c' },
];

const TLS_DIR = '/etc/nats/tls';
const tls = (indent: string, more: string): string =>
  [
    'tls {',
    `  cert_file: "${TLS_DIR}/server.crt"`,
    `  key_file: "${TLS_DIR}/server.key"`,
    `  ca_file: "${TLS_DIR}/ca.crt"`,
    ...(more === '' ? [] : [`  ${more}`]),
    '}',
  ]
    .map((line) => indent + line)
    .join('\n');

const jetstream = (more: readonly string[]): string =>
  [
    'jetstream {',
    '  store_dir: "/data"',
    '  max_file: 40GB',
    '  max_mem: 256MB',
    '  # Every message is on disk before it is acknowledged. The default syncs every two minutes, and what a power failure',
    '  # takes in between was acknowledged already. A few hundred messages a second remain, far above what Kronos writes.',
    '  sync_interval: always',
    ...more.map((line) => `  ${line}`),
    '}',
  ].join('\n');

const common = (node: Node): string[] => [
  NOTE,
  `server_name: "${node.name}"`,
  'listen: "0.0.0.0:4222"',
  'http: "127.0.0.1:8222"',
  'max_payload: 1MB',
];

const single = (): string => [...common({ name: 'nats' }), jetstream([]), 'include accounts.conf', ''].join('\n');

const clustered = (node: Required<Node>): string =>
  [
    ...common(node),
    `server_tags: ["az:${node.zone}"]`,
    '# Others are told this name and not an address, which no certificate holds.',
    `client_advertise: "${node.name}:4222"`,
    tls('', ''),
    jetstream(['# Copies of a stream go to servers of different zones.', 'unique_tag: "az"']),
    'cluster {',
    '  name: "kronos"',
    '  listen: "0.0.0.0:6222"',
    `  advertise: "${node.name}:6222"`,
    `  routes: [${HOSTS.map((host) => `"nats://${host.name}:6222"`).join(', ')}]`,
    '  # Only a server with a certificate of our authority may join.',
    tls('  ', 'verify: true'),
    '}',
    'include accounts-nkeys.conf',
    '',
  ].join('\n');

const list = (login: 'password' | 'nkey'): string =>
  [...Object.keys(users), SYSTEM_USER].map((user) => `#   ${loginVariable(user, login)}`).join('\n');

/** Path (from the repository's root) -> content. */
export const natsFiles = (): Map<string, string> =>
  new Map([
    [
      'deploy/nats/accounts.conf',
      `${NOTE}\n# Passwords come from the server's environment; one that is all digits, or holds special characters, in double quotes:\n${list('password')}\n${accountsConfiguration('password')}`,
    ],
    [
      'deploy/nats/accounts-nkeys.conf',
      `${NOTE}\n# Public keys (U...) come from the server's environment:\n${list('nkey')}\n${accountsConfiguration('nkey')}`,
    ],
    ['deploy/nats/accounts-nsc.sh', `#!/bin/sh\n${NOTE}\n${accountsByNsc()}`],
    ['deploy/nats/single.conf', single()],
    ...HOSTS.map((host): [string, string] => [`deploy/nats/${host.name}.conf`, clustered(host)]),
  ]);
