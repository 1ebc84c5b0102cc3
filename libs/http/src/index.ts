export * from './errors.ts';
export * from './http.ts';
export * from './inProgress.ts';
export * from './parse.ts';
export * from './retry.ts';
export * from './url.ts';
