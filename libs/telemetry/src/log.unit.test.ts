import { forgetSecrets, Secret } from '@kronos/config/secret';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { activeCorrelation, createLogger, type LogInput, lineRenderer, withCorrelation } from './log.ts';

/** A logger and the lines it has written. */
function capture(input: Partial<LogInput> = {}) {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLogger({
    service: 'planner',
    version: '1.2.3',
    level: 'info',
    destination,
    ...input,
  });
  return { log, lines, last: (): Record<string, unknown> => JSON.parse(lines.at(-1) ?? 'null') };
}

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
});
afterAll(() => {
  context.disable();
});

describe('a line of the log', () => {
  it('is one JSON object with time, level, service and version', () => {
    const { log, last } = capture();
    log.info({ aggregate: 'gpu' }, 'decided');
    expect(last()).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      service: 'planner',
      version: '1.2.3',
      aggregate: 'gpu',
      message: 'decided',
    });
  });

  it('is written at its level and above', () => {
    const { log, lines } = capture({ level: 'warn' });
    log.info('no');
    log.warn('yes');
    expect(lines).toHaveLength(1);
  });

  it('shows an error with its stack, cause and code', () => {
    const { log, last } = capture();
    log.error(
      { err: Object.assign(new RangeError('boom', { cause: new Error('why') }), { code: 'KRONOS_X' }) },
      'failed',
    );
    expect(last()).toMatchObject({
      err: {
        type: 'RangeError',
        message: 'boom',
        code: 'KRONOS_X',
        stack: expect.stringContaining('log.unit.test'),
        cause: { message: 'why' },
      },
    });
    log.error(new Error('bare'));
    expect(last()).toMatchObject({ message: 'bare', err: { message: 'bare' } });
  });

  it('carries the active span and the correlation id', async () => {
    const { log, last } = capture();
    const spanContext = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 };
    const span = trace.wrapSpanContext(spanContext);
    await context.with(trace.setSpan(context.active(), span), () =>
      withCorrelation('gpu-7', async () => {
        await Promise.resolve();
        expect(activeCorrelation()).toBe('gpu-7');
        log.info('inside');
      }),
    );
    expect(last()).toMatchObject({
      trace_id: spanContext.traceId,
      span_id: spanContext.spanId,
      correlationId: 'gpu-7',
    });
    log.info('outside');
    expect(last()).not.toHaveProperty('trace_id');
    expect(last()).not.toHaveProperty('correlationId');
    expect(activeCorrelation()).toBeNull();
  });

  it('is readable on a terminal', async () => {
    const { log, lines } = capture({ render: await lineRenderer('auto', { terminal: true }) });
    log.warn({ aggregate: 'gpu' }, 'log is nearly full');
    expect(lines.join('')).toMatch(/WARN.*planner log is nearly full[\s\S]*aggregate.*"gpu"/);
    const piped = capture({ render: await lineRenderer('auto', { terminal: false }) });
    piped.log.warn('x');
    expect(piped.last()).toMatchObject({ level: 'warn' });
  });

  it('never shows a secret, wherever it turns up', async () => {
    const pretty = await lineRenderer('pretty', { terminal: false });
    const secrets = fc
      .oneof(
        fc.string({ minLength: 6, maxLength: 30, unit: 'grapheme' }),
        fc.stringMatching(/^[!-~]{6,30}$/),
        fc.stringMatching(/^["\\\n\t'$%@:/ ]{6,12}$/),
      )
      .filter((s) => s.length >= 6 && s.isWellFormed() && s.trim() === s && new Set(s).size > 3);
    const around = fc.tuple(fc.string({ maxLength: 5 }), fc.string({ maxLength: 5 }));
    fc.assert(
      fc.property(secrets, around, fc.constantFrom(null, pretty), (value, [before, after], render) => {
        const text = `${before}${value}${after}`;
        forgetSecrets();
        new Secret(value);
        const { log, lines } = capture({ render });
        log.info(text);
        log.info({ text, deep: [{ text }], [text]: 1, password: value }, 'x');
        log.error({ err: new Error(text, { cause: new Error(text) }) }, text);
        log.error(new Error(text));
        log.child({ text, token: value }).info('x');
        log.info({ body: JSON.stringify({ text }) }, '%s %o', text, { text });
        for (const line of lines) {
          expect(line).not.toContain(value);
          expect(line).not.toContain(JSON.stringify(value).slice(1, -1));
        }
      }),
      { numRuns: 300 },
    );
  });
});
