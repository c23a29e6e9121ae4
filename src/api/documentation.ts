/** The documentation for a person at /api/docs: Swagger UI with the OpenAPI document, all of it from this server. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { takeToken } from "./admission.ts";
import { ANSWER_PIECE_BYTES } from "./limits.ts";
import { rateKey } from "./rate-limiter.ts";
import { type ApiInstance, addressOf, type Counter, type Request } from "./serve.ts";

const PREFIX = "/api/docs";
const FILES: Readonly<Record<string, string>> = {
  "swagger-ui.css": "text/css; charset=utf-8",
  "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
  "favicon-32x32.png": "image/png",
};

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Signpost API</title>
<link rel="stylesheet" href="${PREFIX}/swagger-ui.css">
<link rel="icon" type="image/png" href="${PREFIX}/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="${PREFIX}/swagger-ui-bundle.js"></script>
<script src="${PREFIX}/start.js"></script>
</body>
</html>
`;

const START = `SwaggerUIBundle({
  url: "/api/v1/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "none",
  validatorUrl: null,
});
`;

/** Nothing from anywhere else. Swagger UI sets styles of its own on elements, and its icons are data URLs. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Adds the page and its files. They count as reads of their address. */
export function addDocumentation(app: ApiInstance, counter: Counter): void {
  const folder = join(dirname(createRequire(import.meta.url).resolve("@fastify/swagger-ui/package.json")), "static");
  const texts: readonly (readonly [path: string, type: string, text: string])[] = [
    [PREFIX, "text/html; charset=utf-8", PAGE],
    [`${PREFIX}/`, "text/html; charset=utf-8", PAGE],
    [`${PREFIX}/start.js`, "text/javascript; charset=utf-8", START],
  ];
  const onRequest = async (request: Request): Promise<void> =>
    takeToken(counter.door.limiter, "read", rateKey(addressOf(counter, request)));
  for (const [path, type, text] of texts) {
    app.get(path, { onRequest }, async (_request, response) =>
      response.headers({ "content-type": type, "content-security-policy": POLICY }).send(text),
    );
  }
  for (const [name, type] of Object.entries(FILES)) {
    const bytes = readOnce(join(folder, name));
    app.get(`${PREFIX}/${name}`, { onRequest }, async (_request, response) => {
      const file = await bytes();
      return response
        .headers({
          "content-type": type,
          "content-length": file.length,
          "content-security-policy": POLICY,
          "cache-control": "public, max-age=3600",
        })
        .send(Readable.from(piecesOf(file), { objectMode: false }));
    });
  }
}

/** The file's bytes, read when they are first asked for and shared by all who ask. */
function readOnce(path: string): () => Promise<Buffer> {
  let reading: Promise<Buffer> | undefined;
  return () => {
    reading ??= readFile(path).catch((error: unknown) => {
      reading = undefined;
      throw error;
    });
    return reading;
  };
}

/** Views of the bytes, not copies. */
function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += ANSWER_PIECE_BYTES) {
    yield bytes.subarray(start, start + ANSWER_PIECE_BYTES);
  }
}
