import {
  bool,
  choice,
  headers,
  integer,
  optionalPath,
  optionalText,
  optionalUrl,
  SCORER,
  seconds,
  secret,
  secretFile,
} from '../option.ts';

/** The options of the section `[prometheus]`. */
export const prometheus = {
  url: optionalUrl({
    by: SCORER,
    help: 'URL of Prometheus or of a server with its API, with the path before /api/v1 if there is one. Needed unless [engine] balance=false or auth=keystone.',
  }),
  auth: choice(['static', 'keystone'], 'static', {
    by: SCORER,
    help: 'static: the credentials and headers below. keystone: the Keystone token of [nova], and without url the server that the catalog has for the service type metric-storage (OpenStack Aetos).',
  }),
  headers: headers({
    by: SCORER,
    help: 'Headers of every request, as a comma list of NAME: VALUE, such as X-Scope-OrgID: TENANT of Mimir. Values are never shown.',
  }),
  headers_file: secretFile('headers', { by: SCORER }),
  timeout: seconds(30, { min: 0.1, by: SCORER, help: 'Limit of one query.' }),
  max_retries: integer(3, { min: 0, max: 20, by: SCORER, help: 'How often a failed query is repeated.' }),
  retry_backoff: seconds(1, { min: 0, by: SCORER, help: 'Wait before the first retry; it doubles each time.' }),
  staleness_threshold: seconds(300, {
    min: 1,
    by: SCORER,
    help: 'An answer is stale if a series disappeared within this time, or if a sample is older than this.',
  }),
  ca_cert: optionalPath({ by: SCORER, help: 'CA certificates (PEM) to verify the server with.' }),
  client_cert: optionalPath({ by: SCORER, help: 'Client certificate (PEM).' }),
  client_key: optionalPath({ by: SCORER, help: 'Key of the client certificate (PEM).' }),
  verify_ssl: bool(true, { by: SCORER, help: "Verify the server's certificate." }),
  bearer_token: secret({ by: SCORER, help: 'Bearer token.' }),
  bearer_token_file: secretFile('bearer_token', { by: SCORER }),
  username: optionalText({ by: SCORER, help: 'User, for basic authentication.' }),
  password: secret({ by: SCORER, help: 'Password, for basic authentication.' }),
  password_file: secretFile('password', { by: SCORER }),
} as const;
