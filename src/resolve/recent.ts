/** What is remembered of each of many, by a key: of those that were used last. */

export type Recent<Value> = {
  /** Remembered, or made now; what was not used for the longest goes where there are more than the limit. */
  readonly get: (key: string) => Value;
  readonly peek: (key: string) => Value | undefined;
  readonly delete: (key: string) => void;
};

export function createRecent<Value>(limit: number, make: (key: string) => Value): Recent<Value> {
  const values = new Map<string, Value>();
  let latest = "";
  return {
    peek: (key) => values.get(key),
    delete: (key) => void values.delete(key),
    get: (key) => {
      const known = values.get(key);
      if (known !== undefined && key === latest) return known;
      const value = known ?? make(key);
      values.delete(key);
      values.set(key, value);
      latest = key;
      const [oldest] = values.keys();
      if (values.size > limit && oldest !== undefined) values.delete(oldest);
      return value;
    },
  };
}
