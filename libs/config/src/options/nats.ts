import { parseInboxPrefix } from '../kinds.ts';
import {
  bool,
  bytes,
  EVERYONE,
  HTTP_URL,
  integer,
  make,
  optionalPath,
  optionalText,
  SERVICES,
  seconds,
  secret,
  secretFile,
  urls,
} from '../option.ts';

/** The options of the section `[nats]`. */
export const nats = {
  servers: urls(['nats://127.0.0.1:4222'], ['nats', 'tls', 'ws', 'wss'], {
    by: EVERYONE,
    help: 'The NATS servers: one, or all of a cluster.',
  }),
  monitoring: urls([], HTTP_URL, {
    by: ['ledger', 'cli'],
    help: 'Monitoring addresses of the NATS servers, e.g. http://nats-1:8222. The ledger at its start and kronos config check ask each whether acknowledged events are on disk (sync_interval: always).',
  }),
  user: optionalText({ by: EVERYONE, help: 'User. {service} stands for the name of the service.' }),
  password: secret({ by: EVERYONE, help: 'Password of user.' }),
  password_file: secretFile('password', { by: EVERYONE }),
  nkey_seed_file: optionalPath({
    by: EVERYONE,
    help: 'File with the nkey seed. {service} stands for the name of the service, as in /etc/kronos/nats/{service}.nk.',
  }),
  credentials_file: optionalPath({
    by: EVERYONE,
    help: 'Credentials file (JWT and seed). {service} stands for the name of the service.',
  }),
  inbox_prefix: make('text', null, {
    takes: 'the beginning of a NATS subject, e.g. _INBOX_viewer',
    parse: parseInboxPrefix,
    by: EVERYONE,
    help: 'Prefix of the subjects on which answers arrive; the NATS user may subscribe to no other. Not set: _INBOX_ and the name of the service; for the kronos command, _INBOX_ and user (_INBOX_operator if no user is set, as with an nkey). {service} stands for the name of the service.',
  }),
  tls_ca: optionalPath({ by: EVERYONE, help: 'CA certificates (PEM) to verify the servers with; turns TLS on.' }),
  tls_cert: optionalPath({
    by: EVERYONE,
    help: 'Client certificate (PEM). {service} stands for the name of the service.',
  }),
  tls_key: optionalPath({ by: EVERYONE, help: 'Key of the client certificate (PEM). {service} as above.' }),
  tls_handshake_first: bool(false, {
    by: EVERYONE,
    help: 'Start the connection with TLS, for servers with handshake_first.',
  }),
  request_timeout: seconds(10, { min: 0.1, by: EVERYONE, help: 'Limit of one request to JetStream.' }),
  ack_wait: seconds(30, {
    min: 1,
    max: 3600,
    by: ['executor', 'provision'],
    help: 'JetStream redelivers a task to another executor after its executor has been silent for this long.',
  }),
  replicas: integer(1, {
    min: 1,
    max: 5,
    by: [...SERVICES, 'provision'],
    help: 'Copies of each stream: 1, 3 or 5. Use 3 in production, which needs a cluster of at least three servers of 2.11 or later.',
  }),
  log_max_bytes: bytes(8 * 1024 ** 3, {
    min: 1024 ** 2,
    by: [...SERVICES, 'provision'],
    help: 'Limit of the event log, which is never deleted. Services warn at 80 %. When it is full, nothing is planned.',
  }),
  snapshot_max_age: seconds(259200, {
    min: 60,
    by: [...SERVICES, 'provision'],
    help: 'How long snapshots are kept, and how far back a replay reaches.',
  }),
  snapshot_max_bytes: bytes(2 * 1024 ** 3, {
    min: 1024 ** 2,
    by: [...SERVICES, 'provision'],
    help: 'Limit of the kept snapshots; the oldest are dropped first.',
  }),
} as const;
