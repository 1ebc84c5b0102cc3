import { until } from '@kronos/clock/testing';
import { streamNames } from '@kronos/contracts';
import { expect, test } from 'vitest';
import { nightly } from '../../../../test/nightly.ts';
import { all, failure } from '../../testing/async.ts';
import { bareConnection } from '../../testing/cluster.ts';
import { pausedEvent, testLimits } from '../../testing/messages.ts';
import { onEachServer } from '../../testing/suite.ts';
import type { EventLog } from '../index.ts';
import { freePorts } from '../local/ports.ts';
import type { NatsServer } from '../local/server.ts';
import { NatsRefused } from '../wire/errors.ts';
import { accountsConfiguration, loginVariable, permissionsOf, SYSTEM_USER, users } from './permissions.ts';

/** docs/nats.md, "One log per region": a server of each region as a leaf node of a hub that keeps nothing. */

const REGIONS = ['east', 'west'] as const;
type Region = (typeof REGIONS)[number];

const env = Object.fromEntries(
  [...Object.keys(users), SYSTEM_USER].map((user) => [loginVariable(user, 'password'), `of-${user}`]),
);

/** The account of a region on the hub: its leaf node, and a viewer with the rights of deploy/nats in the region's domain. */
function account(region: Region): string {
  const { publish, subscribe } = permissionsOf('viewer', users.viewer ?? expect.fail('there is no viewer'));
  const there = publish.map((subject) => subject.replace(/^\$JS\.API\./, `$JS.${region}.API.`));
  return `${region} {
    mappings: { "$JS.API.>": "$JS.${region}.API.>" }
    users: [
      { user: "leaf-${region}", password: "x" }
      { user: "viewer-${region}", password: "x", permissions: ${JSON.stringify({ publish: there, subscribe })} }
    ]
  }`;
}

const hubOf = (port: number) => `leafnodes { listen: "127.0.0.1:${port}" }
accounts {
  ${REGIONS.map(account).join('\n  ')}
}`;

const remote = (region: Region, port: number) =>
  `leafnodes { remotes: [ {
    url: "nats-leaf://leaf-${region}:x@127.0.0.1:${port}", account: KRONOS
    deny_imports: ["kronos.>", "$O.>"], deny_exports: ["kronos.>", "$O.>"]
  } ] }`;

onEachServer('leaf nodes', { concurrent: false, olderAtNight: true }, (bench) => {
  test.skipIf(!nightly)('each region has its own log, which its viewer reads at the hub', async () => {
    const [port = 0] = await freePorts(1);
    const hub = await bench.server({ config: hubOf(port) });
    const region = async (name: Region) => {
      const options = { config: `${accountsConfiguration('password')}\n${remote(name, port)}`, env };
      const server = await bench.server({ ...options, jetstream: `domain: ${name}` });
      const as = (user: string) => bench.connect(server, { name: user, user, password: `of-${user}` });
      await (await as('provisioner')).provision({ limits: testLimits, replicas: 1, aggregates: ['gpu'] });
      const operator = await as('operator');
      await operator.append(pausedEvent(name));
      return operator;
    };
    const viewer = (at: NatsServer, name: Region) =>
      bench.connect(at, { name: 'viewer', user: `viewer-${name}`, password: 'x' });
    const [east, west] = [await region('east'), await region('west')];

    // The same subjects, and nothing of the other region: an account of its own keeps the subjects of each apart.
    const ids = async (log: EventLog) =>
      (await all(log.replay())).map(({ event }) => ('id' in event ? event.id : event.type));
    const [eastern, western] = [await viewer(hub, 'east'), await viewer(hub, 'west')];
    await until(() => eastern.lastSequence(streamNames.log).catch(() => null));
    await until(() => western.lastSequence(streamNames.log).catch(() => null));
    expect(await ids(eastern)).toEqual([pausedEvent('east').id]);
    expect(await ids(western)).toEqual([pausedEvent('west').id]);
    expect(await failure(eastern.append(pausedEvent('forged')))).toBeInstanceOf(NatsRefused);

    // A message that an unlimited user of the hub publishes does not reach the log.
    const nc = bench.closing.add(await bareConnection(hub.url, { user: 'leaf-east', pass: 'x' }));
    nc.publish('kronos.controls.gpu', JSON.stringify(pausedEvent('forged')));
    await nc.flush();
    expect(await eastern.lastSequence(streamNames.log)).toBe(1);

    // A region does not need the hub.
    await hub.kill();
    await east.append(pausedEvent('alone'));
    expect(await ids(east)).toEqual([pausedEvent('east').id, pausedEvent('alone').id]);
    expect(await ids(west)).toEqual([pausedEvent('west').id]);
  });
});
