import { describe, expect, it } from 'vitest';
import { providers } from './providers.ts';

describe('the resource provider of a host', () => {
  const hypervisor = (host: string, id: string) => ({ id, service: { host } });
  const cloud = (lists: ReturnType<typeof hypervisor>[][]) => {
    let calls = 0;
    let mono = 0;
    const nova = {
      listHypervisors: async () => lists[Math.min(calls++, lists.length - 1)] ?? [],
    } as unknown as Parameters<typeof providers>[0];
    const clock = { read: () => ({ mono, wall: 0 }) };
    return { of: providers(nova, clock), calls: () => calls, pass: (ms: number) => (mono += ms) };
  };
  const never = new AbortController().signal;

  it('is read once for all hosts, also when many ask at once', async () => {
    const { of, calls } = cloud([[hypervisor('h1', 'u1'), hypervisor('h2', 'u2')]]);
    expect(await Promise.all([of('h1', never), of('h2', never), of('h1', never)])).toEqual(['u1', 'u2', 'u1']);
    expect(calls()).toBe(1);
  });

  it('is read again for a host that is new, and after ten minutes', async () => {
    const { of, calls, pass } = cloud([[hypervisor('h1', 'u1')], [hypervisor('h1', 'u1'), hypervisor('h2', 'u2')]]);
    expect(await of('h2', never)).toBeNull();
    expect(await of('h2', never)).toBe('u2');
    pass(600_001);
    await of('h1', never);
    expect(calls()).toBe(3);
  });

  it('is none where a host has several', async () => {
    const { of } = cloud([[hypervisor('h1', 'u1'), hypervisor('h1', 'u2')]]);
    expect(await of('h1', never)).toBeNull();
  });
});
