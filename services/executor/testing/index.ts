export { AGGREGATE, type Bed, smallCloud, startBed } from './bed.ts';
export { breaches } from './breaches.ts';
export { openParts, type Started, startExecutor } from './parts.ts';
export { type Final, type Move, openPlans, type Plans, type Result } from './plans.ts';
