// The benchmark's peer with Fastify and pg, as one would write it by hand: `script/bench --peers` checks and measures it. It serves
// five operations of the service with the service's statements, which the benchmark passes in the file PEER_CONFIG.
import cluster from 'node:cluster';
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fastify from 'fastify';
import pg from 'pg';

const WORKERS = 2;
const CONNECTIONS = 16 / WORKERS;
const ROOT = '/api/v1/partner';
const config = JSON.parse(readFileSync(process.env.PEER_CONFIG, 'utf8'));

// pg returns amounts as text. Times would become dates, which have only milliseconds.
pg.types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, (text) => text);
const pool = new pg.Pool({
  host: config.host,
  user: config.user,
  database: config.database,
  max: CONNECTIONS,
  idleTimeoutMillis: 0,
  options: Object.entries(config.session).map(([name, value]) => `-c ${name}=${value}`).join(' '),
});
// A named statement is prepared once on each connection.
const query = async (name, values, rowMode) =>
  (await pool.query({ name, text: config.statements[name], values, rowMode })).rows;

class Failure extends Error {
  constructor(status, code) {
    super(code);
    this.statusCode = status;
  }
}
const missing = () => new Failure(401, 'missing_signature_headers');
const notFound = () => new Failure(404, 'not_found');
const invalid = () => new Failure(400, 'invalid_request');

const sha256 = (data) => createHash('sha256').update(data).digest();
const unhyphenated = (id) => Buffer.from(id.replaceAll('-', ''), 'hex');
const uuid = (bytes) => bytes.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');

function newId() {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = (bytes[6] & 0x0f) | 0x70;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return uuid(bytes);
}

// Percent-encodes bytes, given as Latin-1 text.
const encoded = (text) => {
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) throw invalid();
  const bytes = Buffer.from(text.replaceAll('+', ' ')).toString('latin1');
  const decoded = bytes.replace(/%(..)/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  return decoded.replace(/[^A-Za-z0-9._~-]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
};

function canonicalQuery(raw) {
  if (raw === '') return '';
  const pairs = raw.split('&').filter((piece) => piece !== '').map((piece) => {
    const at = piece.indexOf('=');
    return at < 0 ? [encoded(piece), ''] : [encoded(piece.slice(0, at)), encoded(piece.slice(at + 1))];
  });
  const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  pairs.sort((a, b) => order(a[0], b[0]) || order(a[1], b[1]));
  return pairs.map(([name, value]) => `${name}=${value}`).join('&');
}

const EMPTY = sha256('');
const isCurrent = (timestamp) => Math.abs(Math.floor(Date.now() / 1000) - Number(timestamp)) <= 300;

// Checks timestamp, nonce and signature, and consumes the nonce.
async function admit(request) {
  const headers = request.headers;
  const id = headers['x-partner-key-id'];
  const timestamp = headers['x-partner-timestamp'];
  const nonce = headers['x-partner-nonce'];
  const signature = headers['x-partner-signature'];
  if (!id || !timestamp || !nonce || !signature) throw missing();
  if (!/^[0-9]+$/.test(timestamp) || !/^[!-~]{16,128}$/.test(nonce)) throw missing();
  const key = Object.hasOwn(config.keys, id) ? config.keys[id] : undefined;
  if (!key) throw new Failure(401, 'invalid_key');
  if (!isCurrent(timestamp)) throw new Failure(401, 'expired_timestamp');
  const url = request.raw.url;
  const at = url.indexOf('?');
  const [path, query] = at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)];
  const body = request.rawBody ? sha256(request.rawBody) : EMPTY;
  const canonical = [request.method, path, canonicalQuery(query), timestamp, nonce, body.toString('hex')].join('\n');
  const expected = Buffer.from(`sha256=${createHmac('sha256', key.secret).update(canonical).digest('hex')}`);
  const sent = Buffer.from(signature, 'latin1');
  if (sent.length !== expected.length || !timingSafeEqual(sent, expected)) throw new Failure(401, 'invalid_signature');
  request.keyId = id;
  request.key = key;
  const digest = uuid(sha256(`${id}\0${nonce}`));
  if (request.routeOptions.config.inMemory) {
    if (memory.has(digest)) throw new Failure(401, 'replay_detected');
    memory.add(digest);
    waiting.push([id, digest]);
    recordLater();
  } else if ((await record([id], [digest])) !== 1) {
    throw new Failure(401, 'replay_detected');
  }
}

// Records nonces; returns the number of new ones.
const record = async (ids, digests) => (await query('admit', [ids, digests, ...config.nonces], 'array'))[0][0];

// The service keeps the nonces of `health` in memory, and records them after the response: all that arrived while the previous
// statement ran.
const memory = new Set();
let waiting = [];
let isRecording = false;
async function recordLater() {
  if (isRecording) return;
  isRecording = true;
  while (waiting.length > 0) {
    const batch = waiting.splice(0, 1000);
    await record(batch.map(([id]) => id), batch.map(([, digest]) => digest)).catch(console.error);
  }
  isRecording = false;
}

// "2026-06-15 09:30:00.4829+00" as the API writes it: without, with three, or with six decimals of the second.
function moment(text) {
  const fraction = text.slice(20, -3);
  if (fraction === '') return `${text.slice(0, 10)}T${text.slice(11, 19)}Z`;
  return `${text.slice(0, 10)}T${text.slice(11, 19)}.${fraction.padEnd(fraction.length > 3 ? 6 : 3, '0')}Z`;
}
const micros = (text) => BigInt(Date.parse(`${text.slice(0, 19).replace(' ', 'T')}Z`)) * 1000n + BigInt(text.slice(20, -3).padEnd(6, '0'));

const cursorKey = Buffer.from(config.cursor_key, 'hex');
function cursor(partner, created, id) {
  const time = Buffer.alloc(8);
  time.writeBigInt64BE(micros(created));
  const position = Buffer.concat([time, unhyphenated(id)]);
  // No filters are set.
  const mac = createHmac('sha256', cursorKey).update('partner-api cursor v1').update(unhyphenated(partner)).update(EMPTY);
  return Buffer.concat([position, mac.update(position).digest()]).toString('base64url');
}

// The privacy modes.

const PLATE = /^(0[1-9]|[1-7][0-9]|8[01])([A-Z]{1,3})([0-9]{2,5})$/;
const NUMBER = new RegExp(
  String.raw`\b[1-9][0-9]{2}[ .-]?[0-9]{3}[ .-]?[0-9]{3}[ .-]?[0-9]{2}\b|` +
    String.raw`(?:(?:\+|00)?90[ ().-]*|0[ ().-]*)?\(?[2-5][0-9]{2}\)?[ .-]*[0-9]{3}[ .-]*[0-9]{2}[ .-]*[0-9]{2}\b`,
  'g',
);

function plate(mode, stored) {
  if (mode === 'NONE') return '***';
  const parts = PLATE.exec(stored);
  if (mode === 'MASKED') return parts ? `${parts[1]}***${parts[3].slice(-2)}` : '***';
  return parts ? `${parts[1]} ${parts[2]} ${parts[3]}` : stored;
}

function vin(mode, stored) {
  if (mode === 'FULL') return stored;
  return mode === 'MASKED' && stored.length >= 14 ? `${stored.slice(0, 3)}***${stored.slice(-4)}` : '***';
}

const text = (mode, stored) => (mode === 'FULL' ? stored : stored.replace(NUMBER, '[removed]'));

// Schemas, from which Fastify compiles the serializers and the check of the body.

const object = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const texts = (...names) => Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
const integers = (...names) => Object.fromEntries(names.map((name) => [name, { type: 'integer' }]));
const list = (items) => ({ type: 'array', items });
const vehicleSchema = object({
  ...texts('plate_masked', 'vin_masked', 'brand', 'model'),
  ...integers('year'),
  ...texts('type', 'fuel_type', 'transmission', 'color'),
  ...integers('mileage_km'),
});
const schemas = {
  health: object(texts('status', 'partner', 'environment', 'server_time')),
  organizations: object({ data: list(object({ ...texts('id', 'slug', 'name'), ...integers('branch_count'), ...texts('pii_mode') })) }),
  list: object({
    data: list(
      object({
        ...texts('id', 'report_number', 'organization_id', 'branch_id', 'status', 'package_name'),
        ...integers('overall_score'),
        ...texts('final_price_try'),
        vehicle: vehicleSchema,
        ...texts('published_at', 'created_at', 'updated_at'),
      }),
    ),
    page: object({ next_cursor: { type: 'string' }, has_more: { type: 'boolean' } }, ['has_more']),
  }),
  detail: object({
    ...texts('id', 'report_number'),
    organization: object(texts('id', 'slug', 'name')),
    branch: object(texts('id', 'name', 'city')),
    ...texts('status'),
    package: object(texts('name', 'base_price_try')),
    pricing: object(texts('base_price_try', 'discount_percent', 'discount_name', 'final_price_try', 'payment_type', 'currency')),
    vehicle: vehicleSchema,
    snapshot: object({ ...texts('vin_masked'), ...integers('mileage_km') }),
    ...texts('summary', 'recommendation'),
    ...integers('overall_score'),
    ...texts('updated_at'),
    links: object(texts('forms', 'photos', 'pdf')),
  }),
  measurement: object({
    data: object({
      ...texts('measurement_id', 'status', 'plate'),
      inspection_id: { type: 'string', nullable: true },
      applied_points: list({ type: 'string' }),
      idempotent_replay: { type: 'boolean' },
    }),
  }),
};
const printable = { type: 'string', maxLength: 120, pattern: '^[^\\x00-\\x1F\\x7F]*$' };
const body = object(
  {
    branch_code: { ...printable, minLength: 1, maxLength: 64 },
    plate: { type: 'string', minLength: 1, maxLength: 32 },
    external_id: { ...printable, minLength: 1 },
    device_serial: printable,
    measured_at: { type: 'string', format: 'date-time' },
    measurements: {
      type: 'object',
      minProperties: 1,
      maxProperties: 50,
      patternProperties: { '^[A-Z][A-Z0-9_]{0,63}$': { type: 'number' } },
      additionalProperties: false,
    },
  },
  ['branch_code', 'plate', 'measurements'],
);

// The operations.

const health = async ({ key }) => ({
  status: 'ok',
  partner: key.partner,
  environment: 'test',
  server_time: new Date().toISOString(),
});

async function organizations({ key }) {
  return { data: await query('organizations', [key.organizations, key.organizations, []]) };
}

// The vehicle in ten columns of a row from `first`.
const vehicle = (row, first, mode) => ({
  plate_masked: plate(mode, row[first]),
  vin_masked: vin(mode, row[first + 1]),
  brand: row[first + 2],
  model: row[first + 3],
  year: row[first + 4],
  type: row[first + 5],
  fuel_type: row[first + 6],
  transmission: row[first + 7],
  color: row[first + 8],
  mileage_km: row[first + 9],
});

async function inspections({ key, query: parameters }) {
  const { limit: sent = '25', ...others } = parameters;
  const limit = /^[0-9]{1,3}$/.test(sent) ? Number(sent) : 0;
  if (limit < 1 || limit > 100 || Object.keys(others).length > 0) throw invalid();
  const bounds = ['10000-01-01 00:00:00+00', '00000000-0000-0000-0000-000000000000', '0001-01-01 00:00:00+00'];
  const rows = await query('list', [key.organizations, ...bounds, limit + 1], 'array');
  // Times as text in the same zone, whose fractions have no trailing zeros, have the order of the times: "+" sorts before "." and
  // the digits.
  rows.sort((a, b) => (a[9] > b[9] ? -1 : a[9] < b[9] ? 1 : a[0] > b[0] ? -1 : 1));
  const page = { has_more: rows.length > limit };
  rows.splice(limit);
  if (page.has_more) page.next_cursor = cursor(key.partner, rows.at(-1)[9], rows.at(-1)[0]);
  const data = rows.map((row) => ({
    id: row[0],
    report_number: row[1],
    organization_id: row[2],
    branch_id: row[3],
    status: row[4].toLowerCase(),
    package_name: text(row[20], row[5]),
    overall_score: row[6],
    final_price_try: row[7],
    vehicle: vehicle(row, 10, row[20]),
    published_at: moment(row[8]),
    created_at: moment(row[9]),
    updated_at: moment(row[21]),
  }));
  return { data, page };
}

async function inspection({ key, params: { id } }) {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) throw notFound();
  const [row] = await query('detail', [id, key.organizations, []], 'array');
  if (!row) throw notFound();
  const mode = row[3];
  const link = `${config.public_url}${ROOT}/inspections/${id}`;
  return {
    id,
    report_number: row[1],
    organization: { id: row[4], slug: row[5], name: row[6] },
    branch: { id: row[7], name: row[8], city: row[9] },
    status: row[2].toLowerCase(),
    package: { name: text(mode, row[10]), base_price_try: row[11] },
    pricing: {
      base_price_try: row[12],
      discount_percent: row[13],
      discount_name: text(mode, row[14]),
      final_price_try: row[15],
      payment_type: row[16],
      currency: row[17],
    },
    vehicle: vehicle(row, 18, mode),
    snapshot: { vin_masked: vin(mode, row[28]), mileage_km: row[29] },
    summary: text(mode, row[30]),
    recommendation: text(mode, row[31]),
    overall_score: row[32],
    updated_at: moment(row[33]),
    links: { forms: `${link}/forms`, photos: `${link}/photos`, pdf: `${link}/pdf` },
  };
}

const folded = (sent) => sent.replace(/[iıİ]/g, 'I').replaceAll('I\u0307', 'I').toUpperCase();

async function measurement({ key, keyId, body, rawBody }, reply) {
  const normal = folded(body.plate.replace(/[\s.-]/g, ''));
  const measuredAt = body.measured_at ?? null;
  if (!PLATE.test(normal) || (measuredAt && Date.parse(measuredAt) - Date.now() > 300_000)) throw invalid();
  const id = newId();
  const codes = Object.keys(body.measurements).sort();
  const [row] = await query('pending', [
    [id],
    [key.partner],
    [keyId],
    [folded(body.branch_code)],
    [normal],
    [body.external_id ?? null],
    [body.device_serial ?? null],
    [measuredAt],
    [rawBody],
    [sha256(rawBody)],
    [`{${codes.join(',')}}`],
    // JSON.parse does not keep trailing zeros of a value.
    [`{${codes.map((code) => body.measurements[code]).join(',')}}`],
  ]);
  if (row.branches === 0) throw notFound();
  if (row.branches > 1) throw invalid();
  if (!row.recorded) throw new Failure(501, 'only_new_pending_measurements');
  reply.code(201);
  const data = { measurement_id: id, status: 'pending', plate: normal, inspection_id: null, applied_points: [], idempotent_replay: false };
  return { data };
}

if (cluster.isPrimary) {
  for (let worker = 0; worker < WORKERS; worker += 1) cluster.fork();
  process.on('SIGTERM', () => {
    for (const worker of Object.values(cluster.workers)) worker.kill();
    process.exit();
  });
} else {
  const app = fastify();
  app.decorateRequest('rawBody', null);
  app.decorateRequest('keyId', '');
  app.decorateRequest('key', null);
  // The signature covers the exact bytes of the body.
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, raw, done) => {
    request.rawBody = raw;
    try {
      done(null, JSON.parse(raw));
    } catch {
      done(invalid());
    }
  });
  app.addHook('preValidation', admit);
  app.setErrorHandler((error, _request, reply) => {
    const status = error.validation ? 400 : error.statusCode ?? 503;
    if (status === 503) console.error(error);
    reply.code(status).send({ error: { code: error instanceof Failure ? error.message : status === 400 ? 'invalid_request' : 'error' } });
  });
  const answers = (schema, status = 200) => ({ response: { [status]: schema } });
  app.get(`${ROOT}/health`, { schema: answers(schemas.health), config: { inMemory: true } }, health);
  app.get(`${ROOT}/organizations`, { schema: answers(schemas.organizations) }, organizations);
  app.get(`${ROOT}/inspections`, { schema: answers(schemas.list) }, inspections);
  app.get(`${ROOT}/inspections/:id`, { schema: answers(schemas.detail) }, inspection);
  app.post(`${ROOT}/test-line/measurements`, { schema: { body, ...answers(schemas.measurement, 201) } }, measurement);
  await app.listen({ host: '127.0.0.1', port: Number(process.env.PEER_PORT) });
}
