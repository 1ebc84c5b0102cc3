import { choice, LEDGER, list, make, optionalPath, seconds, secret, secretFile } from '../option.ts';
import type { Secret } from '../secret.ts';
import { parseSigningSecret, parseSinkUrl } from '../webhook.ts';

/** The options of a section `[notify:NAME]`. */
export const sinkOptions = {
  url: make('secret', null as Secret | null, {
    takes: 'a URL (http, https)',
    parse: parseSinkUrl,
    by: LEDGER,
    help: 'URL to which the ledger posts notifications. It is a secret, because the URL of an incoming webhook is one. Redirects are not followed. format = alertmanager: the address of Alertmanager; /api/v2/alerts is appended.',
  }),
  url_file: secretFile('url', { by: LEDGER }),
  format: choice(['cloudevents', 'slack', 'alertmanager'], 'cloudevents', {
    by: LEDGER,
    help: 'cloudevents: CloudEvents 1.0 in structured mode, as JSON. slack: the format of the incoming webhooks of Slack, Mattermost and Rocket.Chat. alertmanager: alarms, which Alertmanager groups and sends on.',
  }),
  types: list(['alarm.*'], {
    by: LEDGER,
    help: 'The notifications that are sent: types of events and alarm.CAUSE, where * stands for any characters: alarm.*, migration.failed, host.*',
  }),
  aggregates: list(['*'], {
    by: LEDGER,
    help: 'Aggregates whose events and alarms are sent, where * stands for any characters. Events and alarms that concern all aggregates are always sent.',
  }),
  secret: make('secret', null as Secret | null, {
    takes: 'a secret',
    parse: parseSigningSecret,
    by: LEDGER,
    help: 'Signs each notification as Standard Webhooks does: 24 to 64 bytes in base64, usually behind whsec_. Not set: no signature.',
  }),
  secret_file: secretFile('secret', { by: LEDGER }),
  authorization: secret({ by: LEDGER, help: 'Value of the header Authorization, e.g. Bearer TOKEN.' }),
  authorization_file: secretFile('authorization', { by: LEDGER }),
  ca_cert: optionalPath({ by: LEDGER, help: 'CA certificates (PEM) to verify the receiver with.' }),
  timeout: seconds(10, { min: 0.1, max: 25, by: LEDGER, help: 'Limit of one attempt.' }),
} as const;
