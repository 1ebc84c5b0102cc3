import { parseRegion } from '../kinds.ts';
import {
  bool,
  integer,
  LEDGER,
  list,
  listOf,
  optionalPath,
  optionalText,
  optionalUrl,
  seconds,
  secret,
  secretFile,
  text,
} from '../option.ts';

/** The options of the section `[console]`. */
export const console = {
  acting: bool(false, {
    by: LEDGER,
    help: 'People can log in to the console with their OpenStack credentials and give commands: approve plans, pause, drain and so on. Needs auth_url, project_name and a NATS user of its own.',
  }),
  regions: listOf('a comma list of NAME=URL', parseRegion, {
    by: LEDGER,
    help: 'Installations of Kronos in other regions, by the addresses of their consoles, such as west=https://kronos.west.example.org. The view of all aggregates shows what needs a person there. The ledger must reach these addresses without a login.',
  }),
  auth_url: optionalUrl({ by: LEDGER, help: 'Keystone, where people log in.' }),
  cafile: optionalPath({
    by: LEDGER,
    help: 'CA certificates (PEM) to verify Keystone, and the consoles of regions, with.',
  }),
  insecure: bool(false, { by: LEDGER, help: "Do not verify Keystone's certificate." }),
  user_domain_name: text('Default', { by: LEDGER, help: 'Domain of the people who name none when they log in.' }),
  project_name: optionalText({
    by: LEDGER,
    help: 'Project on which a person needs one of roles. A role on another project does not count.',
  }),
  project_domain_name: text('Default', { by: LEDGER, help: 'Domain of the project.' }),
  roles: list(['kronos_operator'], {
    by: LEDGER,
    help: 'Roles of Keystone that may give commands; one of them is enough.',
  }),
  custodian_roles: list([], {
    by: LEDGER,
    help: 'Roles of Keystone that may skip unreadable events (kronos log skip), beside one of roles. Empty: nobody skips them from the console. Needs a NATS user of its own.',
  }),
  idle_timeout: seconds(900, {
    min: 60,
    max: 86400,
    by: LEDGER,
    help: 'A session ends after this time without a command. It never outlives its Keystone token.',
  }),
  max_sessions: integer(64, { min: 1, max: 1000, by: LEDGER, help: 'Limit of concurrent sessions.' }),
  nats_user: optionalText({
    by: LEDGER,
    help: 'User with which the console writes commands; deploy/nats names it console. The user of the ledger may not write them.',
  }),
  nats_password: secret({ by: LEDGER, help: 'Password of nats_user.' }),
  nats_password_file: secretFile('nats_password', { by: LEDGER }),
  nats_nkey_seed_file: optionalPath({ by: LEDGER, help: 'File with the nkey seed of that user.' }),
  nats_credentials_file: optionalPath({ by: LEDGER, help: 'Credentials file (JWT and seed) of that user.' }),
  custodian_user: optionalText({
    by: LEDGER,
    help: 'User with which the console skips events; deploy/nats names it custodian. The user nats_user may not skip them.',
  }),
  custodian_password: secret({ by: LEDGER, help: 'Password of custodian_user.' }),
  custodian_password_file: secretFile('custodian_password', { by: LEDGER }),
  custodian_nkey_seed_file: optionalPath({ by: LEDGER, help: 'File with the nkey seed of that user.' }),
  custodian_credentials_file: optionalPath({ by: LEDGER, help: 'Credentials file (JWT and seed) of that user.' }),
} as const;
