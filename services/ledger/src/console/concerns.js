/** Which aggregates an event concerns. Pure. */

/** The address of all aggregates together. */
export const ALL = '_all_';

/** Whether a change concerns an aggregate. */
export const isAbout = ({ aggregate }, name) => aggregate === name || aggregate === ALL;
