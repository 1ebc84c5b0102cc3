import { expect, it } from 'vitest';
import { clause } from './sentence.ts';

it.each([
  ['The VM is locked.', 'the VM is locked'],
  ['A proposed plan waits for an answer.', 'a proposed plan waits for an answer'],
  ['Nova cannot live-migrate a VM with a vGPU.', 'Nova cannot live-migrate a VM with a vGPU'],
  ['VM web-1 is gone', 'VM web-1 is gone'],
  ['', ''],
])('%j within a sentence', (text, expected) => expect(clause(text)).toBe(expected));
