/** Whom a path belongs to and who else may use it: a file that somebody else can write is somebody else's file. */

/** Of `fs.Stats`. */
export type Ownership = { readonly uid: number; readonly mode: number };

/** The user this process acts as; undefined where the system knows no such numbers. */
function ownUserId(): number | undefined {
  return process.geteuid?.();
}

/**
 * What is wrong where `path` belongs neither to this process's user nor to root. Root itself may use the paths of root only:
 * another owner could change what it trusts, and could not read what it leaves there.
 */
export function ownerFault(path: string, { uid }: Ownership, userId = ownUserId()): string | undefined {
  if (userId === undefined || uid === userId || uid === 0) return undefined;
  return `${path} belongs to user ${uid}, and this runs as user ${userId}; run it as that user, or chown it`;
}

/** As `ownerFault`, or others may write. */
export function writableFault(path: string, stat: Ownership, userId = ownUserId()): string | undefined {
  const fault = ownerFault(path, stat, userId);
  if (fault !== undefined || userId === undefined || (stat.mode & 0o022) === 0) return fault;
  return `other users may write to ${path}; when all in it is as it should be, chmod go-w ${path}`;
}

/** As `writableFault`, or others may read. */
export function readableFault(path: string, stat: Ownership, userId = ownUserId()): string | undefined {
  const fault = ownerFault(path, stat, userId);
  if (fault !== undefined || userId === undefined || (stat.mode & 0o077) === 0) return fault;
  return `other users may read or write it, and it is secret; chmod 600 ${path}`;
}
