#!/usr/bin/env php
<?php

// Signed requests to the partner API, with only PHP (8.0 or newer) and no extension.

declare(strict_types=1);

const ATTEMPTS = 4;
const LONGEST_WAIT = 120; // seconds; a response with a longer Retry-After is returned instead

/** A `%` in a query that is not followed by two hexadecimal digits. The exception's code is the byte offset. */
class MalformedQuery extends InvalidArgumentException
{
    public function __construct(int $offset)
    {
        parent::__construct("the query's % at byte $offset is not followed by two hexadecimal digits; write it as %25", $offset);
    }
}

/** An invalid environment variable or argument, or a missing response. */
class PartnerError extends RuntimeException
{
}

/** Returns the CANONICAL_QUERY of a raw query (the bytes after the first `?`): decoded, encoded canonically, sorted as pairs. */
function canonical_query(string $raw): string
{
    if (preg_match('/%(?![0-9A-Fa-f]{2})/', $raw, $found, PREG_OFFSET_CAPTURE)) {
        throw new MalformedQuery($found[0][1]);
    }
    $pairs = [];
    foreach (explode('&', $raw) as $piece) {
        if ($piece !== '') {
            // rawurlencode escapes all but A-Z a-z 0-9 - . _ ~. parse_str would rename and merge parameters.
            $parts = array_map(fn ($part) => rawurlencode(urldecode($part)), explode('=', $piece, 2));
            $pairs[] = [$parts[0], $parts[1] ?? ''];
        }
    }
    // strcmp, because `<=>` compares numeric strings as numbers.
    usort($pairs, fn ($a, $b) => strcmp($a[0], $b[0]) ?: strcmp($a[1], $b[1]));
    return implode('&', array_map(fn ($pair) => "$pair[0]=$pair[1]", $pairs));
}

/** Returns the text that is signed. `$target` is the path and query as sent, `$body` the exact bytes. */
function canonical_string(string $method, string $target, string $timestamp, string $nonce, string $body): string
{
    [$path, $query] = explode('?', $target, 2) + [1 => ''];
    $digest = hash('sha256', $body);
    return implode("\n", [strtoupper($method), $path, canonical_query($query), $timestamp, $nonce, $digest]);
}

/** Returns the value of the signature header. The HMAC key is the secret's 32 characters, not decoded. */
function sign(string $secret, string $canonical): string
{
    return 'sha256=' . hash_hmac('sha256', $canonical, $secret);
}

/** Returns whether a request can be retried safely when its outcome is unknown. A measurement needs an external_id. */
function is_repeatable(string $method, string $body): bool
{
    return strtoupper($method) === 'GET' || preg_match('/"external_id"\s*:\s*"[^"]/', $body) === 1;
}

/** A response. The names of its headers are in lower case. */
class Response
{
    public function __construct(public int $status, public string $reason, public array $headers, public string $body)
    {
    }
}

/** A client with a key of the partner API. `$base_url` is a scheme and a host, as in http://127.0.0.1:8080. */
class Partner
{
    private string $base_url;

    public function __construct(string $base_url, private string $key_id, private string $secret)
    {
        if (!preg_match('{^https?://[^/?#]+/?$}', $base_url)) {
            throw new PartnerError('the base URL must be a scheme and a host, as in http://127.0.0.1:8080');
        }
        $this->base_url = rtrim($base_url, '/');
    }

    public static function from_environment(): self
    {
        $names = ['PARTNER_BASE_URL', 'PARTNER_KEY_ID', 'PARTNER_SECRET'];
        $missing = array_filter($names, fn ($name) => !getenv($name));
        if ($missing) {
            throw new PartnerError('set ' . implode(', ', $missing));
        }
        return new self(...array_map('getenv', $names));
    }

    /** Returns the headers of one attempt. Each attempt needs a new nonce and signature. */
    public function signed_headers(string $method, string $target, string $body): array
    {
        $timestamp = (string) time();
        $nonce = bin2hex(random_bytes(16));
        return [
            "X-Partner-Key-Id: $this->key_id",
            "X-Partner-Timestamp: $timestamp",
            "X-Partner-Nonce: $nonce",
            'X-Partner-Signature: ' . sign($this->secret, canonical_string($method, $target, $timestamp, $nonce, $body)),
        ];
    }

    /** Signs and sends a request once. */
    private function attempt(string $method, string $target, string $body): Response
    {
        $headers = $this->signed_headers($method, $target, $body);
        if ($body !== '') {
            array_push($headers, 'Content-Type: application/json', 'Content-Length: ' . strlen($body));
        }
        $context = stream_context_create(['http' => [
            'method' => strtoupper($method), 'header' => [...$headers, 'Connection: close'], 'content' => $body,
            'protocol_version' => 1.1, 'ignore_errors' => true, 'follow_location' => 0, 'timeout' => 60,
        ]]);
        $http_response_header = [];
        $content = @file_get_contents($this->base_url . $target, false, $context);
        if ($content === false || !preg_match('{^HTTP/\S+ (\d{3}) ?(.*)$}', $http_response_header[0] ?? '', $line)) {
            throw new PartnerError(error_get_last()['message'] ?? 'no response');
        }
        $named = [];
        foreach (array_slice($http_response_header, 1) as $header) {
            [$name, $value] = explode(':', $header, 2) + [1 => ''];
            $named[strtolower($name)] = trim($value);
        }
        if (isset($named['content-length']) && (int) $named['content-length'] !== strlen($content)) {
            throw new PartnerError('the response is incomplete');
        }
        return new Response((int) $line[1], $line[2], $named, $content);
    }

    /**
     * Sends a request at most four times. After 408 or 429 it always retries, because the request was not processed. After 500,
     * 502, 503, 504 or without a response it retries only if that is safe.
     */
    public function send(string $method, string $target, string $body = '', ?callable $log = null): Response
    {
        // Encodes spaces, control characters, `#` and non-ASCII bytes, so that the signed and the sent target are equal.
        $target = preg_replace_callback('/[^!-~]|#/', fn ($found) => sprintf('%%%02X', ord($found[0])), $target);
        if ($target === '' || $target[0] !== '/') {
            throw new PartnerError('the target must begin with a slash and have no host');
        }
        $repeatable = is_repeatable($method, $body);
        for ($attempt = 1; ; $attempt++) {
            $wait = (0.5 + lcg_value() / 2) * 2 ** ($attempt - 1);
            try {
                $response = $this->attempt($method, $target, $body);
                $again = in_array($response->status, [408, 429], true)
                    || ($repeatable && in_array($response->status, [500, 502, 503, 504], true));
                $retry_after = $response->headers['retry-after'] ?? '';
                $wait = ctype_digit($retry_after) ? (float) $retry_after : $wait;
                if ($attempt === ATTEMPTS || !$again || $wait > LONGEST_WAIT) {
                    return $response;
                }
                $problem = "$response->status $response->reason";
            } catch (PartnerError $error) {
                if ($attempt === ATTEMPTS || !$repeatable) {
                    throw $error;
                }
                $problem = 'no response (' . $error->getMessage() . ')';
            }
            if ($log) {
                $log(sprintf('%s; retrying in %.1f s', $problem, $wait));
            }
            usleep((int) ($wait * 1e6));
        }
    }
}

/** Checks the functions above with signing-vectors.json and prints each vector that does not match. */
function check(string $path): int
{
    $octets = fn (array $vector, string $field) => isset($vector["{$field}_base64"])
        ? base64_decode($vector["{$field}_base64"], true) : $vector[$field];
    $checks = [
        'query_vectors' => fn ($vector) => ['canonical_query' => canonical_query($octets($vector, 'raw'))],
        'rejected_queries' => function ($vector) use ($octets) {
            try {
                return ['offset' => 'no error, but ' . canonical_query($octets($vector, 'raw'))];
            } catch (MalformedQuery $error) {
                return ['offset' => $error->getCode()];
            }
        },
        'request_vectors' => function ($vector) use ($octets) {
            ['method' => $method, 'target' => $target, 'timestamp' => $timestamp, 'nonce' => $nonce] = $vector;
            $canonical = canonical_string($method, $target, $timestamp, $nonce, $octets($vector, 'body'));
            return ['canonical_string' => $canonical, 'signature' => sign($vector['secret'], $canonical)];
        },
    ];
    $failures = 0;
    $vectors = json_decode(file_get_contents($path), true, 512, JSON_THROW_ON_ERROR);
    foreach ($checks as $list => $got) {
        foreach ($vectors[$list] as $vector) {
            foreach ($got($vector) as $field => $value) {
                if ($value !== $vector[$field]) {
                    $failures++;
                    [$got_text, $expected] = [json_encode($value), json_encode($vector[$field])];
                    fwrite(STDERR, "{$vector['name']}: $field: got $got_text, expected $expected\n");
                }
            }
        }
        echo "$list: ", count($vectors[$list]), " checked\n";
    }
    return $failures > 0 ? 1 : 0;
}

/** Returns the points of a measurement that were not written to the report: their `code`, `reason` and perhaps `hint`. */
function skipped_points(string $body): array
{
    return str_contains($body, '"skipped_points"') ? json_decode($body, true, 512, JSON_THROW_ON_ERROR)['data']['skipped_points'] : [];
}

function main(array $arguments): int
{
    if (count($arguments) === 2 && $arguments[0] === '--check') {
        return check($arguments[1]);
    }
    if (!in_array(count($arguments), [2, 3], true) || $arguments[0][0] === '-') {
        fwrite(STDERR, "usage: partner.php METHOD TARGET [BODY-FILE]   (- reads the body from standard input)\n");
        fwrite(STDERR, "       partner.php --check signing-vectors.json\n");
        return 2;
    }
    $body = '';
    if (isset($arguments[2])) {
        $body = @file_get_contents($arguments[2] === '-' ? 'php://stdin' : $arguments[2]);
        if ($body === false) {
            throw new PartnerError("failed to read $arguments[2]");
        }
    }
    $log = fn ($text) => fwrite(STDERR, "$text\n");
    $response = Partner::from_environment()->send($arguments[0], $arguments[1], $body, $log);
    $request_id = $response->headers['x-request-id'] ?? '-';
    fwrite(STDERR, "HTTP/1.1 $response->status $response->reason\nX-Request-Id: $request_id\n");
    echo $response->body;
    foreach (skipped_points($response->body) as $point) {
        fwrite(STDERR, "not written: $point[code] ($point[reason])\n");
    }
    if (($response->headers['x-idempotency-payload-mismatch'] ?? '') === 'true') {
        fwrite(STDERR, "not recorded: this external_id was already used for another measurement; send it with a new one\n");
        return 1;
    }
    return $response->status >= 200 && $response->status < 300 ? 0 : 1;
}

// Only if this file is run directly.
if (realpath($_SERVER['SCRIPT_FILENAME']) === __FILE__) {
    try {
        exit(main(array_slice($argv, 1)));
    } catch (PartnerError | MalformedQuery | JsonException $error) {
        fwrite(STDERR, 'partner.php: ' . $error->getMessage() . "\n");
        exit(2);
    }
}
