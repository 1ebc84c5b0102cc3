export { AGGREGATE, type Bed, SPEED, smallCloud, startBed } from './bed.ts';
export { breaches, type CapLimits } from './breaches.ts';
export { type Final, isFinal, type Move, openPlans, type Plans, type ReleaseOptions, type Result } from './plans.ts';
