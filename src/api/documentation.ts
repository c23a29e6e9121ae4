/** The documentation for a person at /api/docs: Swagger UI with the OpenAPI document, all of it from this server. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { ApiInstance } from "./serve.ts";

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

/** Adds the page and its files. */
export function addDocumentation(app: ApiInstance): void {
  const folder = join(dirname(createRequire(import.meta.url).resolve("@fastify/swagger-ui/package.json")), "static");
  const texts: readonly (readonly [path: string, type: string, text: string])[] = [
    [PREFIX, "text/html; charset=utf-8", PAGE],
    [`${PREFIX}/`, "text/html; charset=utf-8", PAGE],
    [`${PREFIX}/start.js`, "text/javascript; charset=utf-8", START],
  ];
  for (const [path, type, text] of texts) {
    app.get(path, async (_request, response) =>
      response.headers({ "content-type": type, "content-security-policy": POLICY }).send(text),
    );
  }
  for (const [name, type] of Object.entries(FILES)) {
    app.get(`${PREFIX}/${name}`, async (_request, response) =>
      response
        .headers({ "content-type": type, "content-security-policy": POLICY, "cache-control": "public, max-age=3600" })
        .send(await readFile(join(folder, name))),
    );
  }
}
