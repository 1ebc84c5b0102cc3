import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { imageConfigs } from './dockerfile.ts';

describe('the configurations of a Dockerfile', () => {
  const own = readFileSync(new URL('../deploy/images/Dockerfile', import.meta.url), 'utf8');
  const configs = imageConfigs(own, { VERSION: '1.2.3', REVISION: 'abc' });

  it('has one for each image of Kronos, with what its parents say', () => {
    expect(configs.get('scorer')).toEqual({
      WorkingDir: '/app',
      User: '65532:65532',
      StopSignal: 'SIGTERM',
      Env: [
        'NODE_ENV=production',
        'PATH=/usr/local/bin:/usr/bin:/bin',
        'OS_HTTP__SCORER_PORT=9781',
        'KRONOS_HEALTH=http://127.0.0.1:9781/healthz',
      ],
      Labels: {
        'org.opencontainers.image.title': 'Kronos scorer',
        'org.opencontainers.image.description':
          'Keeps the hosts of an OpenStack cloud balanced, and can explain and replay every move',
        'org.opencontainers.image.licenses': 'Apache-2.0',
        'org.opencontainers.image.version': '1.2.3',
        'org.opencontainers.image.revision': 'abc',
      },
      ExposedPorts: { '9781/tcp': {} },
      Healthcheck: {
        Test: ['CMD', 'node', '/app/health.mjs'],
        Interval: 15_000_000_000,
        Timeout: 5_000_000_000,
        StartPeriod: 20_000_000_000,
        Retries: 3,
      },
      Entrypoint: ['node', '--import', '/app/init.mjs', '/app/services/scorer/src/main.ts'],
    });
    expect(configs.get('kronos')).toMatchObject({ Cmd: ['--help'], User: '65532:65532' });
    expect(configs.get('kronos')?.Healthcheck).toBeUndefined();
  });

  it('refuses an option of a health check that it does not know', () => {
    expect(() => imageConfigs('FROM a AS b\nHEALTHCHECK --start-interval=5s CMD ["x"]\n', {})).toThrow(
      /--start-interval=5s is not known/,
    );
  });
});
