import { integer, list, SERVICES, text } from '../option.ts';

/** The options of the section `[http]`. */
export const http = {
  address: text('127.0.0.1', {
    by: SERVICES,
    help: 'Address on which each service serves /healthz, /readyz and /metrics, and the ledger its console. 0.0.0.0 or ::: all addresses. Reading needs no password: use a network policy or a firewall to limit who may connect.',
  }),
  allowed_hosts: list([], {
    by: SERVICES,
    help: 'Host names that clients may use, besides localhost, address and the address that they connect to: the name of a Kubernetes service or of a reverse proxy. A request with another Host header gets 421, so that no web page can read answers through its own DNS name (DNS rebinding).',
  }),
  scorer_port: integer(9781, {
    min: 0,
    max: 65535,
    by: ['scorer'],
    help: 'Port of the scorer. 0: any free port, which is logged.',
  }),
  planner_port: integer(9782, { min: 0, max: 65535, by: ['planner'], help: 'Port of the planner.' }),
  executor_port: integer(9783, { min: 0, max: 65535, by: ['executor'], help: 'Port of the executor.' }),
  ledger_port: integer(9784, { min: 0, max: 65535, by: ['ledger'], help: 'Port of the ledger.' }),
} as const;
