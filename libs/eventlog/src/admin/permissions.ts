import {
  ACCOUNT_MAX_CONSUMERS,
  actorSchema,
  bucketNames,
  type Family,
  familiesOf,
  logFamilies,
  streamNames,
  subjectsOf,
} from '@kronos/contracts';
import { z } from 'zod';
import table from '../../../../deploy/nats/accounts.json' with { type: 'json' };
import { streamOf } from '../log/iterate.ts';
import { bucketStream, NOTIFY_STREAMS, TASK_STREAM } from '../wire/definitions.ts';
import { inboxPrefixOf } from '../wire/link.ts';

/** The rights of one NATS user, in Kronos's own words. `deploy/nats/accounts.json` holds one per user. */
const rightsSchema = z.strictObject({
  /** The service as which it writes messages: the table of authority says on which subjects. */
  writesAs: actorSchema.shape.service.optional(),
  /** To publish a copy of the log again, whatever author its events have. */
  restores: z.boolean().optional(),
  /** Streams it may read. */
  reads: z.array(z.enum(Object.values(streamNames))),
  /** Buckets it may write to, and read from. */
  puts: z.array(z.enum(Object.values(bucketNames))),
  gets: z.array(z.enum(Object.values(bucketNames))),
  /** The durables of the work queue: to look whether they are there, or to take tasks and answer. */
  tasks: z.enum(['none', 'check', 'serve']),
  /** The durables of sinks: to look whether they are there, or to take messages and answer. */
  notifies: z.enum(['check', 'serve']).optional(),
  /** To make and change streams, durables and buckets. */
  provisions: z.boolean().optional(),
});
export type Rights = z.infer<typeof rightsSchema>;
export type Permissions = { readonly publish: readonly string[]; readonly subscribe: readonly string[] };

/** The users of an installation. Each may listen under the inbox prefix of its own name only. */
export const users = z.record(z.string(), rightsSchema).parse(table);

const unique = (subjects: readonly string[]): string[] => [...new Set(subjects)];

const look = (stream: string): string => `$JS.API.STREAM.INFO.${stream}`;

/** To read messages one by one: all that the work queue and the buckets need. */
const get = (stream: string): string[] => [look(stream), `$JS.API.STREAM.MSG.GET.${stream}`];

/**
 * To read a stream through consumers of one's own, and to delete them. Their names are random and nobody may list them,
 * so nobody deletes another's.
 */
const read = (stream: string): string[] => [
  ...get(stream),
  ...(stream === TASK_STREAM
    ? []
    : [
        `$JS.API.CONSUMER.CREATE.${stream}.>`,
        `$JS.API.CONSUMER.MSG.NEXT.${stream}.*`,
        `$JS.API.CONSUMER.DELETE.${stream}.*`,
      ]),
];

/** Answers for one stream, in both forms of their subjects. */
const answers = (stream: string): string[] => [
  `$JS.ACK.${stream}.*.>`,
  // With domain and account before the stream: what newer servers can be told to use, and will use by default.
  `$JS.ACK.*.*.${stream}.*.>`,
];

const tasks = (right: Rights['tasks']): string[] => {
  if (right === 'none') return [];
  const check = [look(TASK_STREAM), `$JS.API.CONSUMER.INFO.${TASK_STREAM}.*`];
  if (right === 'check') return check;
  return [...check, `$JS.API.CONSUMER.MSG.NEXT.${TASK_STREAM}.*`, ...answers(TASK_STREAM)];
};

/** Gives the limits and the usage of the account. */
const ACCOUNT = '$JS.API.INFO';

/**
 * Durables of sinks: only they are acked on these streams. A permission cannot name a part of a token (`notify-*`), and a sink
 * is named in kronos.conf, which the server does not read.
 */
const notify = (right: NonNullable<Rights['notifies']>): string[] =>
  NOTIFY_STREAMS.flatMap((stream) => [
    `$JS.API.CONSUMER.INFO.${stream}.*`,
    ...(right === 'serve' ? [`$JS.API.CONSUMER.MSG.NEXT.${stream}.*`, ...answers(stream)] : []),
  ]);

const PROVISION = [
  ...['CREATE', 'UPDATE', 'INFO'].flatMap((act) => [`$JS.API.STREAM.${act}.*`]),
  '$JS.API.STREAM.NAMES',
  '$JS.API.STREAM.LIST',
  ...[TASK_STREAM, ...NOTIFY_STREAMS].flatMap((stream) => [
    `$JS.API.CONSUMER.CREATE.${stream}.>`,
    `$JS.API.CONSUMER.INFO.${stream}.*`,
    `$JS.API.CONSUMER.LIST.${stream}`,
  ]),
];

/** The families on whose subjects a user may publish. */
export const appends = ({ writesAs, restores }: Pick<Rights, 'writesAs' | 'restores'>): Family[] => [
  ...new Set([...(writesAs === undefined ? [] : familiesOf(writesAs)), ...(restores === true ? logFamilies : [])]),
];

/** The subjects behind a user's rights. */
export function permissionsOf(user: string, rights: Rights): Permissions {
  const publish = [
    ACCOUNT,
    // A service reports on itself alone.
    ...appends(rights).flatMap((family) => [
      family === 'services' ? `kronos.services.${user}.*` : subjectsOf(family),
      look(streamOf[family]),
    ]),
    ...rights.reads.flatMap(read),
    ...rights.puts.flatMap((bucket) => [`$O.${bucket}.C.*`, `$O.${bucket}.M.*`, ...get(bucketStream(bucket))]),
    ...rights.gets.flatMap((bucket) => get(bucketStream(bucket))),
    ...tasks(rights.tasks),
    ...(rights.notifies === undefined ? [] : notify(rights.notifies)),
    ...(rights.provisions === true ? PROVISION : []),
  ];
  return { publish: unique(publish), subscribe: [`${inboxPrefixOf(user)}.>`] };
}

/** The user of the system account: for `nats server list` and `nats server report`. */
export const SYSTEM_USER = 'sys';

/** To ask all servers what they do. What changes a server (reload, lame duck mode, closing connections) names one, and is refused. */
const systemPermissions: Permissions = {
  publish: ['$SYS.REQ.SERVER.PING', '$SYS.REQ.SERVER.PING.*'],
  subscribe: ['_INBOX.>'],
};

/** How users prove who they are: by what the environment of the server holds for each. */
export type Login = 'password' | 'nkey';

export const loginVariable = (user: string, login: Login): string =>
  `KRONOS_NATS_${user.toUpperCase()}_${login.toUpperCase()}`;

const quoted = (subjects: readonly string[], indent: string): string =>
  `[\n${subjects.map((subject) => `${indent}  "${subject}"\n`).join('')}${indent}]`;

/** The accounts of a server: one for Kronos with its users, and the system's. */
export function accountsConfiguration(login: Login): string {
  const entry = (user: string, { publish, subscribe }: Permissions): string => {
    const proof =
      login === 'password'
        ? `user: "${user}", password: $${loginVariable(user, login)}`
        : `nkey: $${loginVariable(user, login)}`;
    return [
      `      # ${user}`,
      `      { ${proof}`,
      '        permissions: {',
      `          publish: ${quoted(publish, '          ')}`,
      `          subscribe: ${quoted(subscribe, '          ')}`,
      '        }',
      '      }',
    ].join('\n');
  };
  const entries = Object.entries(users).map(([user, rights]) => entry(user, permissionsOf(user, rights)));
  return [
    'accounts {',
    '  KRONOS {',
    // Per stream, also for streams that older servers made without a limit and cannot change. The rest has no limit here.
    `    jetstream: { max_mem: -1, max_file: -1, max_streams: -1, max_consumers: ${ACCOUNT_MAX_CONSUMERS} }`,
    '    users: [',
    entries.join('\n'),
    '    ]',
    '  }',
    '  SYS {',
    '    users: [',
    entry(SYSTEM_USER, systemPermissions),
    '    ]',
    '  }',
    '}',
    'system_account: SYS',
    '',
  ].join('\n');
}

/**
 * A script that makes the same account and users with `nsc`, for servers that trust an operator. Where they are there already,
 * the users get the rights of this release and keep their keys; what a site has limited stays.
 */
export function accountsByNsc(): string {
  const quotedList = (subjects: readonly string[]): string => `'${subjects.join(',')}'`;
  const ensure = (user: string, { publish, subscribe }: Permissions): string =>
    `user ${user} \\\n  ${quotedList(publish)} \\\n  ${quotedList(subscribe)}`;
  return [
    'set -eu',
    'usage="usage: accounts-nsc.sh DIRECTORY [ACCOUNT]: writes a credentials file for each user into the directory"',
    '[ $# -ge 1 ] || { echo "$usage" >&2; exit 2; }',
    'directory=$1',
    'account=KRONOS',
    '[ $# -lt 2 ] || account=$2',
    '',
    'user() {',
    '  if nsc describe user --account "$account" --name "$1" >/dev/null 2>&1; then',
    '    pub=$(nsc describe user --account "$account" --name "$1" --field nats.pub.allow)',
    '    sub=$(nsc describe user --account "$account" --name "$1" --field nats.sub.allow)',
    '    # JSON: ["kronos.plans.*","_INBOX_planner.\\u003e"]',
    "    former=$(printf '%s\\n' \"$pub\" \"$sub\" | tr -d '[]\"' | tr , '\\n' | sed 's/\\\\u003e/>/g' |",
    '      grep -vxF -e "$(printf \'%s\\n\' "$2" "$3" | tr , \'\\n\')" | paste -sd , -)',
    '    nsc edit user --account "$account" --name "$1" --allow-pub "$2" --allow-sub "$3" --rm "$former"',
    '  else',
    '    nsc add user --account "$account" --name "$1" --allow-pub "$2" --allow-sub "$3"',
    '  fi',
    '  (umask 077 && nsc generate creds --account "$account" --name "$1" > "$directory/$1.creds.new")',
    '  mv "$directory/$1.creds.new" "$directory/$1.creds"',
    '}',
    '',
    'mkdir -p "$directory"',
    'nsc describe account --name "$account" >/dev/null 2>&1 || nsc add account --name "$account"',
    'claims=$(nsc describe account --name "$account" --json)',
    'case $claims in',
    '  # An account that has storage keeps its limits.',
    '  *disk_storage*) ;;',
    '  *)',
    '    nsc edit account --name "$account" --js-mem-storage -1 --js-disk-storage -1 --js-streams -1 \\',
    `      --js-consumer ${ACCOUNT_MAX_CONSUMERS}`,
    '    ;;',
    'esac',
    ...Object.entries(users).map(([user, rights]) => ensure(user, permissionsOf(user, rights))),
    '',
  ].join('\n');
}
