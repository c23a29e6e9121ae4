/** What the dying thread writes in each transaction. */
export const DOCUMENTS = 40;

export function documentName(index: number): string {
  return `document-${index}`;
}
