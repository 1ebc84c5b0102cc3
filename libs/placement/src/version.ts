/** Names the rules by which decisions are made. It changes with every change that can make a decision differ. */
export const plannerVersion = '4';
