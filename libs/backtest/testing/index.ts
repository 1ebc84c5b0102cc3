export * from './forward.ts';
export * from './scripted.ts';
