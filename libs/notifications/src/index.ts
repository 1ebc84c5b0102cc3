export * from './consume.ts';
export * from './parse.ts';
