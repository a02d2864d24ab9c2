// Holds every request of the page against spec/inspector-api.yaml: its path, query and body have to be valid, and by the end of the
// tests the page has to have sent every operation.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import Ajv from "ajv";
import addFormats from "ajv-formats";
import { load } from "js-yaml";

const document = load(readFileSync(new URL("../../../spec/inspector-api.yaml", import.meta.url), "utf8"));
const METHODS = ["get", "post", "put", "patch", "delete"];

const ajv = new Ajv({ strict: false, allErrors: true });
addFormats(ajv);

/** A validator of a schema of the document. Members that the schema does not name are invalid. */
function validator(schema) {
  return ajv.compile(withRefs(schema));
}

/** Replaces references by their schemas, and closes objects. */
function withRefs(schema) {
  if (Array.isArray(schema)) return schema.map(withRefs);
  if (schema === null || typeof schema !== "object") return schema;
  if (schema.$ref) return withRefs(schema.$ref.replace("#/", "").split("/").reduce((node, name) => node[name], document));
  const copy = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, withRefs(value)]));
  if (copy.type === "object" && copy.properties) copy.additionalProperties = false;
  // JSON Schema has no such formats.
  if (["decimal", "binary", "int32", "int64"].includes(copy.format)) delete copy.format;
  return copy;
}

const operations = Object.entries(document.paths).flatMap(([path, item]) => METHODS.filter((method) => item[method]).map((method) => {
  const { operationId: id, parameters = [], requestBody } = item[method];
  const json = requestBody?.content["application/json"]?.schema;
  return {
    id, method: method.toUpperCase(),
    pattern: new RegExp(`^${path.replace(/\{\w+\}/g, "([^/]+)")}$`),
    parameters: parameters.map((parameter) => ({ ...parameter, isValid: validator(parameter.schema) })),
    hasBody: Boolean(requestBody), isValid: json && validator(json),
  };
}));

/** A parameter's value as its schema's type. */
const typed = (text, { schema }) => (schema.type === "integer" ? Number(text) : text);

/** What is wrong with a request; empty if it is valid. */
export function problems(method, url, body) {
  const { pathname, searchParams } = new URL(url);
  const operation = operations.find((one) => one.method === method && one.pattern.test(pathname));
  if (!operation) return { found: ["the contract has no such operation"] };
  const found = [];
  for (const [name, value] of searchParams) {
    const parameter = operation.parameters.find((one) => one.in === "query" && one.name === name);
    if (!parameter) found.push(`${name} is not a parameter`);
    else if (!parameter.isValid(typed(value, parameter))) found.push(`${name}: ${ajv.errorsText(parameter.isValid.errors)}`);
  }
  for (const { name, in: place, required } of operation.parameters) if (place === "query" && required && !searchParams.has(name)) found.push(`${name} is missing`);
  const values = operation.pattern.exec(pathname).slice(1);
  operation.parameters.filter((one) => one.in === "path").forEach((parameter, index) => {
    if (!parameter.isValid(decodeURIComponent(values[index]))) found.push(`${parameter.name}: ${ajv.errorsText(parameter.isValid.errors)}`);
  });
  if (body && !operation.hasBody) found.push("it has a body");
  if (operation.isValid) {
    const isJson = body !== null && body !== undefined;
    if (!isJson || !operation.isValid(JSON.parse(body))) found.push(isJson ? ajv.errorsText(operation.isValid.errors) : "it has no body");
  }
  return { id: operation.id, found };
}

const sent = new Set();
const invalid = [];

/** Checks the requests of the page in a browser context. Those that a test sends itself have the header `X-Sent-By`. */
export function watchRequests(context) {
  context.on("request", (request) => {
    const url = request.url();
    if (!new URL(url).pathname.startsWith("/inspector/v1/") || request.headers()["x-sent-by"]) return;
    const method = request.method();
    const isJson = request.headers()["content-type"] === "application/json";
    const { id, found } = problems(method, url, isJson ? request.postData() : null);
    if (id) sent.add(id);
    for (const problem of found) invalid.push(`${method} ${url}: ${problem}`);
  });
}

/** Asserts that all requests were valid, and, after a whole run, that the page has sent every operation. */
export function checkAllSent() {
  assert.deepEqual(invalid, []);
  // Some of the tests do not send everything.
  if (process.execArgv.some((option) => option.startsWith("--test-name-pattern"))) return;
  assert.deepEqual(operations.map(({ id }) => id).filter((id) => !sent.has(id)), [], "operations that no test of the page sends");
}
