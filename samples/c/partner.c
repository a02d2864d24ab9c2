/*
 * Signed requests to the partner API, with libcurl and OpenSSL. On Windows it uses WinHTTP and BCrypt, which are part of Windows.
 * The kit is one file, so that it can be copied into a project.
 *
 *     cc -o partner partner.c -lcurl -lcrypto
 *     cl /utf-8 partner.c                                                          (Visual Studio)
 *     x86_64-w64-mingw32-gcc -o partner.exe partner.c -lwinhttp -lbcrypt           (MinGW)
 *
 * To call it from a program, define PARTNER_LIBRARY and include this file: see partner_from_environment and partner_send.
 */
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#define _CRT_SECURE_NO_WARNINGS
#include <windows.h>
#include <winhttp.h>
#include <bcrypt.h>
#include <shellapi.h>
#include <fcntl.h>
#include <io.h>
#ifdef _MSC_VER
#pragma comment(lib, "winhttp")
#pragma comment(lib, "bcrypt")
#pragma comment(lib, "shell32")
#endif
#else
#define _POSIX_C_SOURCE 200809L
#include <curl/curl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ATTEMPTS = 4, LONGEST_WAIT = 120 /* s; a response with a longer Retry-After is returned instead */, TIMEOUT = 60 /* s */ };

/* Bytes, followed by a NUL. */
struct text {
    char *bytes;
    size_t length;
};

/* A key of the API. The base URL is a scheme and a host, as in http://127.0.0.1:8080. */
struct partner {
    const char *base_url, *key_id, *secret;
};

/* A response. The status is 0 if none arrived. */
struct response {
    int status;
    long retry_after; /* in seconds; -1 without the header */
    int is_mismatch;  /* whether the external_id was already used for another measurement */
    char request_id[64];
    struct text body;
};

static void fail(const char *message)
{
    fprintf(stderr, "partner: %s\n", message);
    exit(2);
}

static void append(struct text *text, const void *bytes, size_t length)
{
    char *grown = realloc(text->bytes, text->length + length + 1);
    if (!grown) fail("out of memory");
    if (length) memcpy(grown + text->length, bytes, length);
    text->bytes = grown;
    text->length += length;
    grown[text->length] = '\0';
}

static void append_string(struct text *text, const char *string)
{
    append(text, string, strlen(string));
}

static void append_hex(struct text *text, const unsigned char *bytes, size_t length)
{
    char digits[3];
    for (size_t at = 0; at < length; at++) {
        snprintf(digits, sizeof digits, "%02x", bytes[at]);
        append(text, digits, 2);
    }
}

/* ---- The system's cryptography, clock and HTTP client. ---- */

static void set_header(struct response *response, const char *name, const char *value)
{
    if (!strcmp(name, "x-request-id")) snprintf(response->request_id, sizeof response->request_id, "%s", value);
    if (!strcmp(name, "x-idempotency-payload-mismatch")) response->is_mismatch = !strcmp(value, "true");
    if (!strcmp(name, "retry-after") && *value && strspn(value, "0123456789") == strlen(value))
        response->retry_after = atol(value);
}

#ifdef _WIN32

static void fill_random(unsigned char *bytes, size_t length)
{
    if (BCryptGenRandom(NULL, bytes, (ULONG)length, BCRYPT_USE_SYSTEM_PREFERRED_RNG)) fail("the system has no random numbers");
}

/* Computes HMAC-SHA256, or SHA-256 without a key. */
static void digest(const char *key, const void *data, size_t length, unsigned char result[32])
{
    BCRYPT_ALG_HANDLE algorithm;
    BCRYPT_HASH_HANDLE hash;
    size_t key_length = key ? strlen(key) : 0;
    if (BCryptOpenAlgorithmProvider(&algorithm, BCRYPT_SHA256_ALGORITHM, NULL, key ? BCRYPT_ALG_HANDLE_HMAC_FLAG : 0) ||
        BCryptCreateHash(algorithm, &hash, NULL, 0, (PUCHAR)key, (ULONG)key_length, 0) ||
        BCryptHashData(hash, (PUCHAR)data, (ULONG)length, 0) || BCryptFinishHash(hash, result, 32, 0))
        fail("the system has no SHA-256");
    BCryptDestroyHash(hash);
    BCryptCloseAlgorithmProvider(algorithm, 0);
}

static void pause_for(double seconds)
{
    Sleep((DWORD)(seconds * 1000));
}

/* Returns a text in UTF-16. The caller frees it. */
static wchar_t *wide(const char *text)
{
    int length = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
    wchar_t *result = calloc((size_t)length + 1, sizeof *result);
    if (!result) fail("out of memory");
    MultiByteToWideChar(CP_UTF8, 0, text, -1, result, length);
    return result;
}

static FILE *open_file(const char *path)
{
    wchar_t *name = wide(path);
    FILE *file = _wfopen(name, L"rb");
    free(name);
    return file;
}

static void read_header(HINTERNET request, const wchar_t *header, const char *name, struct response *response)
{
    wchar_t value[128];
    char narrow[256];
    DWORD size = sizeof value;
    if (WinHttpQueryHeaders(request, WINHTTP_QUERY_CUSTOM, header, value, &size, WINHTTP_NO_HEADER_INDEX) &&
        WideCharToMultiByte(CP_UTF8, 0, value, -1, narrow, sizeof narrow, NULL, NULL))
        set_header(response, name, narrow);
}

static int receive(HINTERNET request, struct response *response)
{
    DWORD status, announced, number = sizeof status;
    const DWORD as_number = WINHTTP_QUERY_FLAG_NUMBER;
    if (!WinHttpQueryHeaders(request, WINHTTP_QUERY_STATUS_CODE | as_number, WINHTTP_HEADER_NAME_BY_INDEX, &status, &number,
                             NULL))
        return 0;
    response->status = (int)status;
    read_header(request, L"X-Request-Id", "x-request-id", response);
    read_header(request, L"Retry-After", "retry-after", response);
    read_header(request, L"X-Idempotency-Payload-Mismatch", "x-idempotency-payload-mismatch", response);
    for (;;) {
        char buffer[8192];
        DWORD received;
        if (!WinHttpReadData(request, buffer, sizeof buffer, &received)) return 0;
        if (received == 0) break;
        append(&response->body, buffer, received);
    }
    number = sizeof announced;
    int has_length = WinHttpQueryHeaders(request, WINHTTP_QUERY_CONTENT_LENGTH | as_number, WINHTTP_HEADER_NAME_BY_INDEX,
                                         &announced, &number, NULL);
    SetLastError(ERROR_WINHTTP_CONNECTION_ERROR);
    return !has_length || announced == response->body.length; /* otherwise the connection broke */
}

/* Sends a request once. `headers` are lines that end in CR LF. Returns whether a whole response arrived; otherwise sets `problem`. */
static int exchange(const char *base_url, const char *method, const char *target, const char *headers, const void *body,
                    size_t length, struct response *response, char problem[200])
{
    int is_https = !strncmp(base_url, "https://", 8);
    wchar_t *host = wide(strstr(base_url, "://") + 3), *verb = wide(method), *path = wide(target), *lines = wide(headers);
    wchar_t *colon = wcsrchr(host, L':');
    INTERNET_PORT port = is_https ? INTERNET_DEFAULT_HTTPS_PORT : INTERNET_DEFAULT_HTTP_PORT;
    if (colon && !wcschr(colon, L']')) {
        *colon = L'\0';
        port = (INTERNET_PORT)_wtoi(colon + 1);
    }
    DWORD disabled =
        WINHTTP_DISABLE_REDIRECTS | WINHTTP_DISABLE_COOKIES | WINHTTP_DISABLE_AUTHENTICATION | WINHTTP_DISABLE_KEEP_ALIVE;
    DWORD flags = WINHTTP_FLAG_ESCAPE_DISABLE | WINHTTP_FLAG_ESCAPE_DISABLE_QUERY | (is_https ? WINHTTP_FLAG_SECURE : 0);
    HINTERNET session =
        WinHttpOpen(L"partner.c", WINHTTP_ACCESS_TYPE_DEFAULT_PROXY, WINHTTP_NO_PROXY_NAME, WINHTTP_NO_PROXY_BYPASS, 0);
    HINTERNET connection = session ? WinHttpConnect(session, host, port, 0) : NULL;
    HINTERNET request =
        connection ? WinHttpOpenRequest(connection, verb, path, NULL, WINHTTP_NO_REFERER, WINHTTP_DEFAULT_ACCEPT_TYPES, flags)
                   : NULL;
    int is_complete = request && WinHttpSetTimeouts(request, TIMEOUT * 1000, TIMEOUT * 1000, TIMEOUT * 1000, TIMEOUT * 1000) &&
                      WinHttpSetOption(request, WINHTTP_OPTION_DISABLE_FEATURE, &disabled, sizeof disabled) &&
                      WinHttpSendRequest(request, lines, (DWORD)-1, (void *)body, (DWORD)length, (DWORD)length, 0) &&
                      WinHttpReceiveResponse(request, NULL) && receive(request, response);
    if (!is_complete) snprintf(problem, 200, "no response (WinHTTP error %lu)", GetLastError());
    if (request) WinHttpCloseHandle(request);
    if (connection) WinHttpCloseHandle(connection);
    if (session) WinHttpCloseHandle(session);
    free(host), free(verb), free(path), free(lines);
    return is_complete;
}

#else

static void fill_random(unsigned char *bytes, size_t length)
{
    if (RAND_bytes(bytes, (int)length) != 1) fail("the system has no random numbers");
}

/* Computes HMAC-SHA256, or SHA-256 without a key. */
static void digest(const char *key, const void *data, size_t length, unsigned char result[32])
{
    int is_done = key ? HMAC(EVP_sha256(), key, (int)strlen(key), data, length, result, NULL) != NULL
                      : EVP_Digest(data, length, result, NULL, EVP_sha256(), NULL);
    if (!is_done) fail("OpenSSL has no SHA-256");
}

static void pause_for(double seconds)
{
    struct timespec span = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&span, NULL);
}

static FILE *open_file(const char *path)
{
    return fopen(path, "rb");
}

static size_t on_body(char *bytes, size_t size, size_t count, void *body)
{
    append(body, bytes, size * count);
    return size * count;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *response)
{
    char line[256], *value;
    snprintf(line, sizeof line, "%.*s", (int)(size * count), bytes);
    line[strcspn(line, "\r\n")] = '\0';
    if ((value = strchr(line, ':'))) {
        *value++ = '\0';
        for (char *at = line; *at; at++)
            if (*at >= 'A' && *at <= 'Z') *at += 'a' - 'A';
        set_header(response, line, value + strspn(value, " \t"));
    }
    return size * count;
}

/* Sends a request once. `headers` are lines that end in CR LF. Returns whether a whole response arrived; otherwise sets `problem`. */
static int exchange(const char *base_url, const char *method, const char *target, const char *headers, const void *body,
                    size_t length, struct response *response, char problem[200])
{
    CURL *curl =
        curl_easy_init(); /* one for each attempt, because libcurl itself resends a request if a reused connection breaks */
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    struct text url = {0}, line = {0};
    long status = 0;
    if (!curl || !list) fail("failed to start libcurl");
    for (const char *end; (end = strstr(headers, "\r\n")); headers = end + 2) {
        line.length = 0;
        append(&line, headers, (size_t)(end - headers));
        list = curl_slist_append(list, line.bytes);
    }
    append_string(&url, base_url);
    append_string(&url, target);
    curl_easy_setopt(curl, CURLOPT_URL, url.bytes);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)TIMEOUT);
    if (length || strcmp(method, "GET")) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)length);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, length ? body : "");
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &response->body);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, response);
    CURLcode result = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    response->status = (int)status;
    if (result) snprintf(problem, 200, "no response (%s)", curl_easy_strerror(result));
    curl_slist_free_all(list);
    curl_easy_cleanup(curl);
    free(url.bytes), free(line.bytes);
    return result == CURLE_OK;
}

#endif

/* ---- Signatures. ---- */

static int is_hex(char digit)
{
    return digit && strchr("0123456789abcdefABCDEF", digit);
}

static unsigned char from_hex(const char *digits)
{
    char both[] = {digits[0], digits[1], '\0'};
    return (unsigned char)strtoul(both, NULL, 16);
}

static void append_octet(struct text *text, unsigned char octet, int is_allowed)
{
    char escape[4];
    snprintf(escape, sizeof escape, is_allowed ? "%c" : "%%%02X", octet);
    append_string(text, escape);
}

/* Decodes a part of a query, and encodes it canonically. */
static struct text recoded(const char *part, size_t length)
{
    static const char KEPT[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    struct text result = {0};
    append(&result, "", 0);
    for (size_t at = 0; at < length; at++) {
        unsigned char octet = (unsigned char)(part[at] == '+' ? ' ' : part[at]);
        if (octet == '%') {
            octet = from_hex(part + at + 1);
            at += 2;
        }
        append_octet(&result, octet, octet && strchr(KEPT, octet));
    }
    return result;
}

struct pair {
    struct text name, value;
};

static int by_name(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;
    int order = strcmp(a->name.bytes, b->name.bytes);
    return order ? order : strcmp(a->value.bytes, b->value.bytes);
}

/* Appends the CANONICAL_QUERY of a raw query (the bytes after the first `?`): decoded, encoded canonically, sorted as pairs.
 * Returns the offset of a `%` that is not followed by two hexadecimal digits, or -1. */
static long canonical_query(const char *raw, size_t length, struct text *result)
{
    struct pair *pairs = calloc(length + 1, sizeof *pairs);
    size_t count = 0;
    if (!pairs) fail("out of memory");
    append(result, "", 0);
    for (size_t at = 0; at < length; at++)
        if (raw[at] == '%' && (at + 2 >= length || !is_hex(raw[at + 1]) || !is_hex(raw[at + 2]))) {
            free(pairs);
            return (long)at;
        }
    for (size_t at = 0, end; at < length; at = end + 1) {
        for (end = at; end < length && raw[end] != '&';) end++;
        if (end == at) continue;
        const char *equals = memchr(raw + at, '=', end - at);
        size_t name = equals ? (size_t)(equals - raw) : end, value = equals ? name + 1 : end;
        pairs[count++] = (struct pair){recoded(raw + at, name - at), recoded(raw + value, end - value)};
    }
    qsort(pairs, count, sizeof *pairs, by_name);
    for (size_t at = 0; at < count; at++) {
        if (at) append(result, "&", 1);
        append(result, pairs[at].name.bytes, pairs[at].name.length);
        append(result, "=", 1);
        append(result, pairs[at].value.bytes, pairs[at].value.length);
        free(pairs[at].name.bytes), free(pairs[at].value.bytes);
    }
    free(pairs);
    return -1;
}

/* Returns the text that is signed. `target` is the path and query as sent, `body` the exact bytes. */
static struct text canonical_string(const char *method, const char *target, const char *timestamp, const char *nonce,
                                    const void *body, size_t length)
{
    struct text result = {0};
    unsigned char hash[32];
    const char *query = strchr(target, '?');
    append_string(&result, method);
    append(&result, "\n", 1);
    append(&result, target, query ? (size_t)(query - target) : strlen(target));
    append(&result, "\n", 1);
    if (query && canonical_query(query + 1, strlen(query + 1), &result) >= 0)
        fail("a % in the query is not followed by two hexadecimal digits; write it as %25");
    const char *lines[] = {"\n", timestamp, "\n", nonce, "\n"};
    for (size_t at = 0; at < sizeof lines / sizeof *lines; at++) append_string(&result, lines[at]);
    digest(NULL, body, length, hash);
    append_hex(&result, hash, sizeof hash);
    return result;
}

/* Returns the value of the signature header. The HMAC key is the secret's 32 characters, not decoded. */
static struct text signature(const char *secret, struct text canonical)
{
    struct text result = {0};
    unsigned char hash[32];
    digest(secret, canonical.bytes, canonical.length, hash);
    append_string(&result, "sha256=");
    append_hex(&result, hash, sizeof hash);
    return result;
}

/* Returns the headers of one attempt. Each attempt needs a new nonce and signature. */
static struct text signed_headers(const struct partner *partner, const char *method, const char *target, const void *body,
                                  size_t length)
{
    char timestamp[24];
    unsigned char random[16];
    struct text nonce = {0}, headers = {0};
    snprintf(timestamp, sizeof timestamp, "%lld", (long long)time(NULL));
    fill_random(random, sizeof random);
    append_hex(&nonce, random, sizeof random);
    struct text canonical = canonical_string(method, target, timestamp, nonce.bytes, body, length);
    struct text signed_with = signature(partner->secret, canonical);
    const char *parts[] = {"X-Partner-Key-Id: ",
                           partner->key_id,
                           "\r\nX-Partner-Timestamp: ",
                           timestamp,
                           "\r\nX-Partner-Nonce: ",
                           nonce.bytes,
                           "\r\nX-Partner-Signature: ",
                           signed_with.bytes,
                           length ? "\r\nContent-Type: application/json\r\n" : "\r\n"};
    for (size_t at = 0; at < sizeof parts / sizeof *parts; at++) append_string(&headers, parts[at]);
    free(nonce.bytes), free(canonical.bytes), free(signed_with.bytes);
    return headers;
}

/* ---- Requests. ---- */

/* Returns whether a request can be retried safely when its outcome is unknown. A measurement needs an external_id. */
static int is_repeatable(const char *method, const char *body, size_t length)
{
    static const char NAME[] = "\"external_id\"";
    struct text copy = {0};
    int found = !strcmp(method, "GET");
    append(&copy, body, length);
    for (const char *at = copy.bytes; !found && (at = strstr(at, NAME)); at++) {
        const char *next = at + sizeof NAME - 1;
        next += strspn(next, " \t\r\n");
        if (*next++ != ':') continue;
        next += strspn(next, " \t\r\n");
        found = next[0] == '"' && next[1] && next[1] != '"';
    }
    free(copy.bytes);
    return found;
}

/* Reads the base URL and the key from PARTNER_BASE_URL, PARTNER_KEY_ID and PARTNER_SECRET. */
static struct partner partner_from_environment(void)
{
    struct partner partner = {getenv("PARTNER_BASE_URL"), getenv("PARTNER_KEY_ID"), getenv("PARTNER_SECRET")};
    if (!partner.base_url || !partner.key_id || !partner.secret) fail("set PARTNER_BASE_URL, PARTNER_KEY_ID and PARTNER_SECRET");
    const char *host = strstr(partner.base_url, "://");
    if ((strncmp(partner.base_url, "http://", 7) && strncmp(partner.base_url, "https://", 8)) || !host[3] ||
        strpbrk(host + 3, "/?#@"))
        fail("the base URL must be a scheme and a host, as in http://127.0.0.1:8080");
    return partner;
}

/* Sends a request at most four times. After 408 or 429 it always retries, because the request was not processed. After 500, 502,
 * 503, 504 or without a response it retries only if that is safe. */
static struct response partner_send(const struct partner *partner, const char *verb, const char *path_and_query, const char *body,
                                    size_t length)
{
    struct text target = {0}, method = {0};
    for (const char *at = verb; *at; at++) append(&method, (char[]){(char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at)}, 1);
    /* Encodes spaces, control characters, `#` and non-ASCII bytes, so that the signed and the sent target are equal. */
    for (const char *at = path_and_query; *at; at++)
        append_octet(&target, (unsigned char)*at, *at > ' ' && *at < 127 && *at != '#');
    if (path_and_query[0] != '/') fail("the target must begin with a slash and have no host");
    int is_safe = is_repeatable(method.bytes, body, length);
    for (int attempt = 1;; attempt++) {
        struct response response = {.retry_after = -1, .request_id = "-"};
        char problem[200];
        unsigned char random;
        fill_random(&random, 1);
        double wait = (0.5 + random / 512.0) * (1 << (attempt - 1));
        append(&response.body, "", 0);
        struct text headers = signed_headers(partner, method.bytes, target.bytes, body, length);
        int is_complete =
            exchange(partner->base_url, method.bytes, target.bytes, headers.bytes, body, length, &response, problem);
        free(headers.bytes);
        int status = response.status, again = is_safe;
        if (is_complete) {
            again = status == 408 || status == 429 || (is_safe && (status == 500 || (status >= 502 && status <= 504)));
            if (response.retry_after >= 0) wait = (double)response.retry_after;
            snprintf(problem, sizeof problem, "HTTP status %d", status);
        }
        if (attempt == ATTEMPTS || !again || wait > LONGEST_WAIT) {
            if (!is_complete) {
                fprintf(stderr, "partner: %s\n", problem);
                response.status = 0;
            }
            free(target.bytes), free(method.bytes);
            return response;
        }
        fprintf(stderr, "%s; retrying in %.1f s\n", problem, wait);
        free(response.body.bytes);
        pause_for(wait);
    }
}

#ifndef PARTNER_LIBRARY

/* ---- The command line and the check. ---- */

static struct text read_file(const char *path)
{
    FILE *file = strcmp(path, "-") ? open_file(path) : stdin;
    struct text result = {0};
    char buffer[8192];
    size_t count;
    if (!file) fail("failed to open the file");
    append(&result, "", 0);
    while ((count = fread(buffer, 1, sizeof buffer, file)) > 0) append(&result, buffer, count);
    if (ferror(file)) fail("failed to read the file");
    if (file != stdin) fclose(file);
    return result;
}

static void append_utf8(struct text *text, unsigned long code)
{
    unsigned char octets[] = {(unsigned char)(0xf0 | code >> 18), (unsigned char)(0x80 | (code >> 12 & 63)),
                              (unsigned char)(0x80 | (code >> 6 & 63)), (unsigned char)(0x80 | (code & 63))};
    size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (count == 1) octets[3] = (unsigned char)code;
    if (count == 2) octets[2] = (unsigned char)(0xc0 | code >> 6);
    if (count == 3) octets[1] = (unsigned char)(0xe0 | code >> 12);
    append(text, octets + 4 - count, count);
}

/* Returns a text in UTF-8 and without a byte-order mark, as the API requires. UTF-16 is recognized by its mark. */
static struct text in_utf8(struct text file)
{
    const unsigned char *bytes = (const unsigned char *)file.bytes;
    struct text result = {0};
    append(&result, "", 0);
    if (file.length >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3)) {
        append(&result, file.bytes + 3, file.length - 3);
        return result;
    }
    int is_little = file.length >= 2 && bytes[0] == 0xff && bytes[1] == 0xfe;
    if (!is_little && !(file.length >= 2 && bytes[0] == 0xfe && bytes[1] == 0xff)) return file;
    unsigned long first = 0; /* the first half of a character, or 0 */
    for (size_t at = 2; at + 1 < file.length; at += 2) {
        unsigned long unit = (unsigned long)bytes[at + is_little] << 8 | bytes[at + !is_little];
        if (unit >= 0xd800 && unit < 0xdc00) first = unit;
        else if (first) {
            append_utf8(&result, 0x10000 + ((first - 0xd800) << 10) + (unit - 0xdc00));
            first = 0;
        } else append_utf8(&result, unit);
    }
    return result;
}

/* Reads the JSON text or number at `at`, and returns what follows. */
static const char *read_scalar(const char *at, struct text *result)
{
    append(result, "", 0);
    if (*at != '"') {
        size_t length = strcspn(at, ",}] \r\n");
        append(result, at, length);
        return at + length;
    }
    for (at++; *at && *at != '"'; at++) {
        const char *escape;
        if (*at != '\\') append(result, at, 1);
        else if (*++at == 'u') {
            unsigned long code = (unsigned long)from_hex(at + 1) << 8 | from_hex(at + 3);
            at += 4;
            if (code >= 0xd800 && code < 0xdc00) { /* the next escape is the second half of the character */
                code = 0x10000 + ((code - 0xd800) << 10) + (((unsigned long)from_hex(at + 3) << 8 | from_hex(at + 5)) - 0xdc00);
                at += 6;
            }
            append_utf8(result, code);
        } else append(result, (escape = strchr("b\bf\fn\nr\rt\t", *at)) ? escape + 1 : at, 1);
    }
    return *at ? at + 1 : at;
}

/* Prints the points of a measurement that were not written to the report. */
static void print_skipped_points(const char *body)
{
    const char *at = strstr(body, "\"skipped_points\""), *end = at ? strchr(at, ']') : NULL;
    struct text code = {0}, reason = {0};
    for (at = end ? strchr(at, '[') : NULL; at && at < end;) {
        if (*at == '}') fprintf(stderr, "not written: %s (%s)\n", code.bytes ? code.bytes : "", reason.bytes ? reason.bytes : "");
        if (*at != '"') {
            at++;
            continue;
        }
        struct text name = {0}, value = {0};
        at = read_scalar(at, &name);
        at = read_scalar(at + strspn(at, " \t\r\n:"), &value);
        if (!strcmp(name.bytes, "code")) code = value;
        if (!strcmp(name.bytes, "reason")) reason = value;
    }
}

static struct text from_base64(struct text encoded)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct text result = {0};
    unsigned long bits = 0;
    append(&result, "", 0);
    for (size_t at = 0; at < encoded.length && encoded.bytes[at] != '='; at++) {
        const char *digit = strchr(DIGITS, encoded.bytes[at]);
        bits = (bits << 6 | (unsigned long)(digit ? digit - DIGITS : 0)) & 0xffffff;
        if (at % 4) append(&result, (char[]){(char)(bits >> (6 - at % 4 * 2))}, 1);
    }
    return result;
}

/* The members of a vector that the check reads. */
enum {
    NAME,
    RAW,
    RAW_BASE64,
    CANONICAL_QUERY,
    OFFSET,
    METHOD,
    TARGET,
    TIMESTAMP,
    NONCE,
    SECRET,
    BODY,
    BODY_BASE64,
    CANONICAL,
    SIGNATURE,
    MEMBERS
};
static const char *const NAMES[MEMBERS] = {"name",   "raw",         "raw_base64",       "canonical_query", "offset",
                                           "method", "target",      "timestamp",        "nonce",           "secret",
                                           "body",   "body_base64", "canonical_string", "signature"};

static int differs(const struct text *vector, int member, const char *got)
{
    if (vector[member].bytes && !strcmp(vector[member].bytes, got)) return 0;
    fprintf(stderr, "%s: %s: got %s, expected %s\n", vector[NAME].bytes, NAMES[member], got,
            vector[member].bytes ? vector[member].bytes : "nothing");
    return 1;
}

static int check_vector(const char *list, struct text *vector)
{
    if (vector[RAW_BASE64].bytes) vector[RAW] = from_base64(vector[RAW_BASE64]);
    if (vector[BODY_BASE64].bytes) vector[BODY] = from_base64(vector[BODY_BASE64]);
    if (!strcmp(list, "request_vectors")) {
        struct text canonical = canonical_string(vector[METHOD].bytes, vector[TARGET].bytes, vector[TIMESTAMP].bytes,
                                                 vector[NONCE].bytes, vector[BODY].bytes, vector[BODY].length);
        return differs(vector, CANONICAL, canonical.bytes) +
               differs(vector, SIGNATURE, signature(vector[SECRET].bytes, canonical).bytes);
    }
    struct text query = {0};
    char offset[24];
    long malformed = canonical_query(vector[RAW].bytes, vector[RAW].length, &query);
    snprintf(offset, sizeof offset, "%ld", malformed);
    return malformed >= 0 ? differs(vector, OFFSET, offset) : differs(vector, CANONICAL_QUERY, query.bytes);
}

/* Checks the functions above with signing-vectors.json and prints each vector that does not match. C has no JSON parser, and the
 * file contains only lists of objects with texts and numbers. */
static int check(const char *path)
{
    struct text vector[MEMBERS] = {{0}}, key = {0}, list = {0};
    int failures = 0, count = 0;
    for (const char *at = read_file(path).bytes; *at;) {
        if (*at == '[') {
            list = key;
            count = 0;
        } else if (*at == ']') printf("%s: %d checked\n", list.bytes, count);
        else if (*at == '{') memset(vector, 0, sizeof vector);
        else if (*at == '}' && vector[NAME].bytes) {
            failures += check_vector(list.bytes, vector);
            count++;
            memset(vector, 0, sizeof vector);
        } else if (*at == '"') {
            struct text value = {0};
            key = (struct text){0};
            at = read_scalar(at, &key);
            at += strspn(at, " \t\r\n:");
            if (*at == '[' || *at == '{') continue;
            at = read_scalar(at, &value);
            for (int member = 0; member < MEMBERS; member++)
                if (!strcmp(key.bytes, NAMES[member])) vector[member] = value;
            continue;
        }
        at++;
    }
    return failures > 0;
}

/* Returns the arguments in UTF-8, and switches the standard streams to unchanged bytes. */
static char **arguments(int count, char **given)
{
#ifdef _WIN32
    wchar_t **wide_arguments = CommandLineToArgvW(GetCommandLineW(), &count);
    for (int at = 0; at < count; at++) {
        int length = WideCharToMultiByte(CP_UTF8, 0, wide_arguments[at], -1, NULL, 0, NULL, NULL);
        if (!(given[at] = malloc((size_t)length))) fail("out of memory");
        WideCharToMultiByte(CP_UTF8, 0, wide_arguments[at], -1, given[at], length, NULL, NULL);
    }
    _setmode(_fileno(stdin), _O_BINARY), _setmode(_fileno(stdout), _O_BINARY);
#else
    (void)count;
#endif
    return given;
}

int main(int count, char **given)
{
    char **argument = arguments(count, given);
    struct text body = {0};
    if (count == 3 && !strcmp(argument[1], "--check")) return check(argument[2]);
    if ((count != 3 && count != 4) || argument[1][0] == '-') {
        fprintf(stderr, "usage: partner METHOD TARGET [BODY-FILE]   (- reads the body from standard input)\n       partner "
                        "--check signing-vectors.json\n");
        return 2;
    }
    if (count == 4) body = in_utf8(read_file(argument[3]));
    struct partner partner = partner_from_environment();
    struct response response = partner_send(&partner, argument[1], argument[2], body.bytes, body.length);
    if (response.status == 0) return 2;
    fprintf(stderr, "HTTP/1.1 %d\nX-Request-Id: %s\n", response.status, response.request_id);
    fwrite(response.body.bytes, 1, response.body.length, stdout);
    print_skipped_points(response.body.bytes);
    if (response.is_mismatch) {
        fprintf(stderr, "not recorded: this external_id was already used for another measurement; send it with a new one\n");
        return 1;
    }
    return response.status >= 200 && response.status < 300 ? 0 : 1;
}

#endif
