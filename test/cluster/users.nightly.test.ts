import { availableServers } from '@kronos/eventlog/testing';
import { it } from 'vitest';
import { runUnderUsers, titleOf } from './underUsers.ts';

const { servers, missing } = await availableServers();
if (missing !== null) console.warn(`skipped: a current nats-server; ${missing}`);

it.each(servers.map((server) => [titleOf(server), server] as const))('%s', (_, server) => runUnderUsers(server));
