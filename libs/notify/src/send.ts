import { type Clock, systemClock } from '@kronos/clock';
import { type SinkOptions, sinkOrigin } from '@kronos/config';
import { errorText } from '@kronos/contracts';
import { createHttp, type Http, parseRetryAfter } from '@kronos/http';
import type { Notice } from './notice.ts';
import { alerts, type Post, postOf, signature } from './request.ts';
import type { DeliveryAttempt } from './retry.ts';

/** The outcome of one attempt, with the answer of the receiver. */
type Sent = DeliveryAttempt & { readonly body?: string };

/** Sends to one sink. */
export interface Sender {
  /** Posts one notice, once. Rejects only with the reason of the signal. */
  send(notice: Notice, signal?: AbortSignal): Promise<Sent>;
  /** Posts these alarms to an Alertmanager, once. */
  sendAlerts(notices: readonly Notice[], signal?: AbortSignal): Promise<Sent>;
  close(): Promise<void>;
}

/** Bytes of an answer that are read: it is for people. */
const MOST_ANSWER = 64 * 1024;

/** @throws BadHttpOptions when the CA file cannot be read */
export function openSender(
  name: string,
  sink: SinkOptions,
  userAgent: string,
  { clock = systemClock, http }: { readonly clock?: Clock; readonly http?: Http } = {},
): Sender {
  const limitMs = sink.timeout * 1000;
  const client =
    http ??
    createHttp({
      clock,
      userAgent,
      limits: { connectMs: limitMs, headersMs: limitMs, bodyMs: limitMs, totalMs: limitMs },
      connections: 1,
      maxBodyBytes: MOST_ANSWER,
      ...(sink.caCert === null ? {} : { tls: { caFile: sink.caCert } }),
    });
  const secret = sink.secret?.reveal();
  const target = sink.url?.reveal() ?? '';
  const url = sink.format === 'alertmanager' ? `${target.replace(/\/+$/, '')}/api/v2/alerts` : target;
  const authorization = sink.authorization?.reveal();

  async function post({ headers, json }: Post, id: string | null, signal: AbortSignal | undefined): Promise<Sent> {
    const signed =
      secret === undefined || id === null
        ? {}
        : signature(secret, { id, body: JSON.stringify(json), nowMs: clock.now() });
    try {
      const answer = await client.call({
        service: `[notify:${name}]`,
        method: 'POST',
        url,
        route: '/',
        json,
        headers: { ...headers, ...signed, ...(authorization === undefined ? {} : { authorization }) },
        signal,
      });
      const retryAfterMs = parseRetryAfter(answer.headers['retry-after'], clock.now());
      return { kind: 'answered', status: answer.status, retryAfterMs, body: answer.text };
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      // The error names the URL, whose path and query may be the secret of a webhook.
      const words = errorText(error);
      const { pathname, search } = new URL(url);
      const origin = sinkOrigin(sink) ?? '';
      const reason = [url, `${origin}${pathname}`, ...(search === '' ? [] : [search])].reduce(
        (text, part) => text.replaceAll(part, origin),
        words,
      );
      return { kind: 'failed', reason };
    }
  }

  return {
    send: (notice, signal) => post(postOf(sink.format, notice, clock.now()), notice.id, signal),
    sendAlerts: (notices, signal) => post(alerts(notices, clock.now()), null, signal),
    close: () => client.close(),
  };
}
