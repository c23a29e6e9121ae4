/** Bounds of what a node asks of its cluster. */

/** How long a node that stops waits for the others to hear that it leaves. */
export const LEAVE_MS = 2_000;
/** Members that are heard of within this time after the start were there before this node: no event tells of them. */
export const SETTLING_MS = 10_000;
/** A node that is removed while it lives writes itself anew so long after that, and so not more often. */
export const RETURN_MS = 1_000;
