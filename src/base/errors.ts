/** An Error that carries a `code`: an errno's name, or a word that a caller tells cases apart by. */
export type CodedError = Error & { readonly code: string };

export function codedError(code: string, message: string): CodedError {
  return Object.assign(new Error(message), { code });
}

/** The `code` of whatever was thrown, where it has one. */
export function errorCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}

/** What was thrown, in one line without a stack. */
export function errorText(thrown: unknown): string {
  return (thrown instanceof Error ? thrown.message : String(thrown)).replace(/\s*\n\s*/g, " ");
}

/**
 * A fault of the set-up that the operator can mend. The message is one line and no stack goes with it; `details` are
 * lines shown before it.
 */
export class OperatorError extends Error {
  override readonly name = "OperatorError";
  readonly details: readonly string[];

  constructor(message: string, details: readonly string[] = []) {
    super(message);
    this.details = details;
  }
}
