import { describe, expect, it, test } from 'vitest';
import { type Attempt, endOf, readPubAck, unsureAfter } from './append.ts';
import { apiCodes, fullCodes, transientCodes } from './codes.ts';

const error = (err_code: number | undefined, description?: string, code = 400) =>
  readPubAck(JSON.stringify({ stream: 'S', seq: 0, error: { code, err_code, description } }));

describe("the server's answer to a publish", () => {
  it('names what was stored, and whether it was stored before', () => {
    expect(readPubAck('{"stream":"S","seq":7}')).toEqual({ kind: 'stored', sequence: 7, duplicate: false });
    expect(readPubAck('{"stream":"S","seq":7,"duplicate":true}')).toMatchObject({ sequence: 7, duplicate: true });
  });

  it.each(['', 'hello', '{"stream":"S"}', '{"seq":7}', '{"stream":1,"seq":7}', '{"stream":"S","seq":"7"}', '{}'])(
    'that names no stream and sequence leaves open whether it was stored: %s',
    (text) => {
      expect(readPubAck(text)).toMatchObject({ kind: 'retry', unsure: true, text: expect.stringMatching(/\w/) });
    },
  );

  it('of another sequence is a conflict, with the number that it names', () => {
    expect(error(apiCodes.wrongLastSequence, 'wrong last sequence: 42')).toEqual({ kind: 'conflict', actual: 42 });
    expect(error(apiCodes.wrongLastSequence, 'wrong last sequence')).toEqual({ kind: 'conflict', actual: null });
    expect(error(apiCodes.wrongLastSequence)).toEqual({ kind: 'conflict', actual: null });
  });

  it('of an append in flight is a conflict without a number', () => {
    expect(error(apiCodes.wrongLastSequenceInFlight, 'wrong last sequence: 42')).toEqual({
      kind: 'conflict',
      actual: null,
    });
  });

  it.each(fullCodes)('%i: there is no room', (code) => {
    expect(error(code, 'maximum bytes exceeded')).toEqual({ kind: 'full', text: `maximum bytes exceeded (${code})` });
  });

  it.each(transientCodes)('%i: not stored, and to be asked again', (code) => {
    expect(error(code, 'not yet')).toEqual({ kind: 'retry', unsure: false, text: `not yet (${code})` });
  });

  it('503 without a code of JetStream: not stored, and to be asked again', () => {
    expect(error(undefined, 'JetStream is not available', 503)).toEqual({
      kind: 'retry',
      unsure: false,
      text: 'JetStream is not available (0)',
    });
  });

  it('with any other error is a refusal in its words', () => {
    expect(error(apiCodes.streamNotFound, 'stream not found')).toEqual({
      kind: 'refused',
      text: `stream not found (${apiCodes.streamNotFound})`,
    });
    expect(error(undefined)).toEqual({ kind: 'refused', text: 'no description (0)' });
  });
});

test.each([
  [false, 'this', 'stored'],
  [true, 'this', 'stored'],
  [false, 'another', 'notStored'],
  [true, 'another', 'notStored'],
  [false, 'nothing', 'notStored'],
  [true, 'nothing', 'unknown'],
] as const)('an append that may have been stored: %s, and the log has %s: %s', (unsure, found, end) => {
  expect(endOf(unsure, found)).toBe(end);
});

test('what one attempt left open stays open', () => {
  const stored: Attempt = { kind: 'stored', sequence: 1, duplicate: false };
  const retry = (unsure: boolean): Attempt => ({ kind: 'retry', unsure, text: '' });
  expect([unsureAfter(false, stored), unsureAfter(false, retry(false)), unsureAfter(false, retry(true))]).toEqual([
    false,
    false,
    true,
  ]);
  expect([unsureAfter(true, stored), unsureAfter(true, retry(false))]).toEqual([true, true]);
});
