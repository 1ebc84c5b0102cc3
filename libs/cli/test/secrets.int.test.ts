import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startNatsServer } from '@kronos/eventlog/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kronos } from './world.ts';

const PASSWORDS = { prometheus: 'prom-pw:<9>"x', nova: 'nova & pw/7', nats: 'nats-password-1' };

/** A proxy that answers every request with the request: as text, as a page, and as JSON whose form is right. */
const echo = createServer((request, response) => {
  let body = '';
  request.on('data', (part) => {
    body += part;
  });
  request.on('end', () => {
    const { authorization = '' } = request.headers;
    const given = Buffer.from(authorization.split(' ')[1] ?? '', 'base64').toString();
    // The credentials first: what follows is cut off.
    const said = `${body.slice(Math.max(0, body.lastIndexOf('"password":"')))} ${given} ${authorization} ${JSON.stringify(request.headers)}`;
    const form = request.url?.split('/')[1];
    if (form === 'text') response.end(said);
    else if (form === 'html')
      response
        .writeHead(502)
        .end(`<html>${said.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')}</html>`);
    else response.writeHead(400).end(JSON.stringify({ status: 'error', errorType: 'x', error: said, message: said }));
  });
});

describe('config check shows no secret that a proxy sends back', () => {
  let directory = '';
  let nats: Awaited<ReturnType<typeof startNatsServer>>;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kronos-secrets-'));
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
    nats = await startNatsServer();
    await writeFile(
      join(directory, 'policies.yaml'),
      'policies:\n  - { name: cpu, mode: spread, weight: 1, imbalance_query: up, vm_profile_query: up, vm_profile_label: instance_uuid, vm_profile_label_type: nova_instance_uuid, threshold: 0.2 }\n',
    );
  });
  afterAll(async () => {
    echo.close();
    await nats.stop();
    await rm(directory, { recursive: true, force: true });
  });

  it.each(['text', 'html', 'json'].flatMap((form) => [[form, ''] as const, [form, ' --json'] as const]))(
    'as %s%s',
    async (form, json) => {
      const url = `http://127.0.0.1:${(echo.address() as AddressInfo).port}/${form}`;
      const file = join(directory, 'kronos.conf');
      await writeFile(
        file,
        [
          `[engine]\naggregates = gpu\npolicies_file = ${join(directory, 'policies.yaml')}`,
          `[nats]\nservers = ${nats.url}\nuser = operator\npassword = ${PASSWORDS.nats}`,
          `[nova]\nauth_url = ${url}\nusername = admin-user\npassword = ${PASSWORDS.nova}\nproject_name = p\nuser_domain_id = default\nproject_domain_id = default\nconnect_retries = 0\nstatus_code_retries = 0`,
          `[prometheus]\nurl = ${url}\nusername = prom-user\npassword = ${PASSWORDS.prometheus}\nmax_retries = 0`,
          '',
        ].join('\n'),
      );
      const { status, out, err } = await kronos(`config check${json}`.split(' '), {
        env: { KRONOS_CONFIG: file },
        nowMs: 0,
      });
      expect(status, err).toBe(1);
      expect(out).toContain('Prometheus');
      const said = out + err;
      expect(said).toContain('[secret]');
      for (const password of Object.values(PASSWORDS)) {
        expect(said).not.toContain(password);
        expect(said).not.toContain(JSON.stringify(password).slice(1, -1));
        for (const part of [password.slice(0, 6), password.slice(-6)]) expect(said, part).not.toContain(part);
      }
      const header = Buffer.from(`prom-user:${PASSWORDS.prometheus}`).toString('base64');
      expect(said).not.toContain(header.slice(-12));
      if (json !== '') expect(JSON.parse(out)).toMatchObject({ ok: false });
    },
  );

  it('in an error', async () => {
    const file = join(directory, 'error.conf');
    await writeFile(
      file,
      `[engine]\naggregates = gpu\n[nats]\nservers = ${nats.url}\nuser = operator\npassword = ${PASSWORDS.nats}\n`,
    );
    const world = { env: { KRONOS_CONFIG: file }, nowMs: 0 };
    expect(await kronos(['provision'], world)).toMatchObject({ status: 0 });
    // An error that names what was given: it goes to stderr.
    const { status, out, err } = await kronos(['hosts', '-a', PASSWORDS.nats], world);
    expect(status).not.toBe(0);
    expect(err).toContain('[secret]');
    expect(out + err).not.toContain(PASSWORDS.nats);
  });
});
