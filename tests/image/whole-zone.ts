/** What the test of whole zones and its readers agree on. */
export const ZONE_NAME = "whole.test.";
/** Names that every incarnation has. */
export const NAMES_MIN = 60;
