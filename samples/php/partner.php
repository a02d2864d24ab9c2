#!/usr/bin/env php
<?php

// Signed requests to the partner API, with nothing but PHP itself (8.0 or newer, no extension needed).

declare(strict_types=1);

const ATTEMPTS = 4;
const LONGEST_WAIT = 120; // seconds; who is told to wait longer gets the answer instead

/** A `%` in a query that is not followed by two hexadecimal digits; its code is the byte's offset. */
class MalformedQuery extends InvalidArgumentException
{
    public function __construct(int $offset)
    {
        parent::__construct("the query's % at byte $offset is not followed by two hexadecimal digits; write it as %25", $offset);
    }
}

/** Where the API is, or what the command line says, cannot be used; or there was no answer. */
class PartnerError extends RuntimeException
{
}

/** CANONICAL_QUERY of a raw query (the bytes after the first `?`): decoded once, encoded one way, sorted as pairs. */
function canonical_query(string $raw): string
{
    if (preg_match('/%(?![0-9A-Fa-f]{2})/', $raw, $found, PREG_OFFSET_CAPTURE)) {
        throw new MalformedQuery($found[0][1]);
    }
    $pairs = [];
    foreach (explode('&', $raw) as $piece) {
        if ($piece !== '') {
            // rawurlencode leaves exactly A-Z a-z 0-9 - . _ ~; parse_str would rename and join parameters.
            $parts = array_map(fn ($part) => rawurlencode(urldecode($part)), explode('=', $piece, 2));
            $pairs[] = [$parts[0], $parts[1] ?? ''];
        }
    }
    // strcmp, for `<=>` compares texts that look like numbers as numbers.
    usort($pairs, fn ($a, $b) => strcmp($a[0], $b[0]) ?: strcmp($a[1], $b[1]));
    return implode('&', array_map(fn ($pair) => "$pair[0]=$pair[1]", $pairs));
}

/** The text that is signed. `$target` is the path and query exactly as sent, `$body` the exact bytes. */
function canonical_string(string $method, string $target, string $timestamp, string $nonce, string $body): string
{
    [$path, $query] = explode('?', $target, 2) + [1 => ''];
    $digest = hash('sha256', $body);
    return implode("\n", [strtoupper($method), $path, canonical_query($query), $timestamp, $nonce, $digest]);
}

/** The signature header's value. The HMAC key is the secret's 32 characters themselves, not their decoding. */
function sign(string $secret, string $canonical): string
{
    return 'sha256=' . hash_hmac('sha256', $canonical, $secret);
}

/** Whether a request may be sent again when nobody knows what became of it: a measurement only with an external_id. */
function is_repeatable(string $method, string $body): bool
{
    return strtoupper($method) === 'GET' || preg_match('/"external_id"\s*:\s*"[^"]/', $body) === 1;
}

/** An answer. Names of headers are in lower case. */
class Answer
{
    public function __construct(public int $status, public string $reason, public array $headers, public string $body)
    {
    }
}

/** A key of the partner API. `$base_url` is a scheme and a host, as in http://127.0.0.1:8080. */
class Partner
{
    private string $base_url;

    public function __construct(string $base_url, private string $key_id, private string $secret)
    {
        if (!preg_match('{^https?://[^/?#]+/?$}', $base_url)) {
            throw new PartnerError('the base URL is a scheme and a host, as in http://127.0.0.1:8080');
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

    /** The four headers of one attempt: a nonce is good for one, so each is signed anew. */
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

    /** Signs and sends once. */
    private function attempt(string $method, string $target, string $body): Answer
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
        $answered = @file_get_contents($this->base_url . $target, false, $context);
        if ($answered === false || !preg_match('{^HTTP/\S+ (\d{3}) ?(.*)$}', $http_response_header[0] ?? '', $line)) {
            throw new PartnerError(error_get_last()['message'] ?? 'no answer');
        }
        $named = [];
        foreach (array_slice($http_response_header, 1) as $header) {
            [$name, $value] = explode(':', $header, 2) + [1 => ''];
            $named[strtolower($name)] = trim($value);
        }
        if (isset($named['content-length']) && (int) $named['content-length'] !== strlen($answered)) {
            throw new PartnerError('the answer broke off');
        }
        return new Answer((int) $line[1], $line[2], $named, $answered);
    }

    /**
     * Sends a request, up to four times: what was not processed (408, 429) again in any case, what may have been (500,
     * 502, 503, 504, no answer) only if it is repeatable.
     */
    public function send(string $method, string $target, string $body = '', ?callable $log = null): Answer
    {
        // What is signed must be what is sent: spaces, controls, `#` and bytes that are not ASCII are encoded here.
        $target = preg_replace_callback('/[^!-~]|#/', fn ($found) => sprintf('%%%02X', ord($found[0])), $target);
        if ($target === '' || $target[0] !== '/') {
            throw new PartnerError('the target begins with a slash and has no host');
        }
        $repeatable = is_repeatable($method, $body);
        for ($attempt = 1; ; $attempt++) {
            $wait = (0.5 + lcg_value() / 2) * 2 ** ($attempt - 1);
            try {
                $answer = $this->attempt($method, $target, $body);
                $again = in_array($answer->status, [408, 429], true)
                    || ($repeatable && in_array($answer->status, [500, 502, 503, 504], true));
                $told = $answer->headers['retry-after'] ?? '';
                $wait = ctype_digit($told) ? (float) $told : $wait;
                if ($attempt === ATTEMPTS || !$again || $wait > LONGEST_WAIT) {
                    return $answer;
                }
                $problem = "$answer->status $answer->reason";
            } catch (PartnerError $error) {
                if ($attempt === ATTEMPTS || !$repeatable) {
                    throw $error;
                }
                $problem = 'no answer (' . $error->getMessage() . ')';
            }
            if ($log) {
                $log(sprintf('%s; again in %.1f s', $problem, $wait));
            }
            usleep((int) ($wait * 1e6));
        }
    }
}

/** Runs the functions above over signing-vectors.json; names each vector that does not match. */
function check(string $path): int
{
    $octets = fn (array $vector, string $field) => isset($vector["{$field}_base64"])
        ? base64_decode($vector["{$field}_base64"], true) : $vector[$field];
    $checks = [
        'query_vectors' => fn ($vector) => ['canonical_query' => canonical_query($octets($vector, 'raw'))],
        'rejected_queries' => function ($vector) use ($octets) {
            try {
                return ['offset' => 'none, but ' . canonical_query($octets($vector, 'raw'))];
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
                    fwrite(STDERR, "{$vector['name']}: $field: got " . json_encode($value) . ', not ' . json_encode($vector[$field]) . "\n");
                }
            }
        }
        echo "$list: ", count($vectors[$list]), " checked\n";
    }
    return $failures > 0 ? 1 : 0;
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
            throw new PartnerError("cannot read $arguments[2]");
        }
    }
    $log = fn ($text) => fwrite(STDERR, "$text\n");
    $answer = Partner::from_environment()->send($arguments[0], $arguments[1], $body, $log);
    $request_id = $answer->headers['x-request-id'] ?? '-';
    fwrite(STDERR, "HTTP/1.1 $answer->status $answer->reason\nX-Request-Id: $request_id\n");
    echo $answer->body;
    return $answer->status >= 200 && $answer->status < 300 ? 0 : 1;
}

// Not when it is required by another file.
if (realpath($_SERVER['SCRIPT_FILENAME']) === __FILE__) {
    try {
        exit(main(array_slice($argv, 1)));
    } catch (PartnerError | MalformedQuery | JsonException $error) {
        fwrite(STDERR, 'partner.php: ' . $error->getMessage() . "\n");
        exit(2);
    }
}
