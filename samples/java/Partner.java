// Signed requests to the partner API, with only Java's standard library (11 or newer).

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** A client with a key of the partner API. */
public final class Partner {
    private static final int ATTEMPTS = 4;
    /** Seconds; a response with a longer Retry-After is returned instead. */
    private static final long LONGEST_WAIT = 120;
    private static final Pattern BASE_URL = Pattern.compile("https?://[^/?#]+/?");
    private static final Pattern EXTERNAL_ID = Pattern.compile("\"external_id\"\\s*:\\s*\"[^\"]");

    static {
        // If a reused connection breaks, the client by default resends the same signed request, whose nonce may be consumed.
        System.setProperty("jdk.httpclient.redirects.retrylimit", "1");
    }

    private final HttpClient client = HttpClient.newBuilder()
        .version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(10)).build();
    private final String baseUrl;
    private final String keyId;
    private final String secret;

    /** {@code baseUrl} is a scheme and a host, as in http://127.0.0.1:8080. */
    public Partner(String baseUrl, String keyId, String secret) {
        if (!BASE_URL.matcher(baseUrl).matches()) {
            throw new IllegalArgumentException("the base URL must be a scheme and a host, as in http://127.0.0.1:8080");
        }
        this.baseUrl = baseUrl.replaceAll("/$", "");
        this.keyId = keyId;
        this.secret = secret;
    }

    /** Creates a client from PARTNER_BASE_URL, PARTNER_KEY_ID and PARTNER_SECRET. */
    public static Partner fromEnvironment() {
        List<String> values = new ArrayList<>();
        for (String name : List.of("PARTNER_BASE_URL", "PARTNER_KEY_ID", "PARTNER_SECRET")) {
            String value = System.getenv(name);
            if (value == null || value.isEmpty()) throw new IllegalArgumentException("set " + name);
            values.add(value);
        }
        return new Partner(values.get(0), values.get(1), values.get(2));
    }

    /** A {@code %} in a query that is not followed by two hexadecimal digits. */
    public static final class MalformedQuery extends IllegalArgumentException {
        public final int offset;

        MalformedQuery(int offset) {
            super("the query's % at byte " + offset + " is not followed by two hexadecimal digits; write it as %25");
            this.offset = offset;
        }
    }

    /** Returns the CANONICAL_QUERY of a raw query (the bytes after the first {@code ?}): decoded, encoded canonically, sorted. */
    public static String canonicalQuery(byte[] raw) {
        String text = new String(raw, StandardCharsets.ISO_8859_1); // one character per byte
        List<String[]> pairs = new ArrayList<>();
        int start = 0;
        for (String piece : text.split("&", -1)) {
            int equals = piece.indexOf('=');
            String name = equals < 0 ? piece : piece.substring(0, equals);
            String value = equals < 0 ? "" : piece.substring(equals + 1);
            if (!piece.isEmpty()) {
                pairs.add(new String[] {recode(name, start), recode(value, start + equals + 1)});
            }
            start += piece.length() + 1;
        }
        pairs.sort(Comparator.<String[], String>comparing(pair -> pair[0]).thenComparing(pair -> pair[1]));
        return pairs.stream().map(pair -> pair[0] + "=" + pair[1]).collect(Collectors.joining("&"));
    }

    /** Decodes a part of a query that begins at {@code offset} and encodes it. (URLEncoder does not escape {@code *}.) */
    private static String recode(String part, int offset) {
        StringBuilder encoded = new StringBuilder();
        for (int at = 0; at < part.length(); at++) {
            char octet = part.charAt(at);
            if (octet == '+') {
                octet = ' ';
            } else if (octet == '%') {
                if (!part.substring(at).matches("(?s)%[0-9A-Fa-f]{2}.*")) throw new MalformedQuery(offset + at);
                octet = (char) Integer.parseInt(part.substring(at + 1, at + 3), 16);
                at += 2;
            }
            boolean unreserved = octet < 128 && (Character.isLetterOrDigit(octet) || "-._~".indexOf(octet) >= 0);
            encoded.append(unreserved ? String.valueOf(octet) : String.format("%%%02X", (int) octet));
        }
        return encoded.toString();
    }

    /** Returns the text that is signed. {@code target} is the path and query as sent, {@code body} the exact bytes. */
    public static String canonicalString(String method, String target, String timestamp, String nonce, byte[] body) {
        String[] parts = target.split("\\?", 2);
        String query = canonicalQuery((parts.length < 2 ? "" : parts[1]).getBytes(StandardCharsets.UTF_8));
        try {
            String digest = hex(MessageDigest.getInstance("SHA-256").digest(body));
            return String.join("\n", method.toUpperCase(Locale.ROOT), parts[0], query, timestamp, nonce, digest);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error); // every Java has SHA-256
        }
    }

    /** Returns the value of the signature header. The HMAC key is the secret's 32 characters, not decoded. */
    public static String sign(String secret, String canonical) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
            return "sha256=" + hex(mac.doFinal(canonical.getBytes(StandardCharsets.UTF_8)));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    private static String hex(byte[] bytes) {
        StringBuilder digits = new StringBuilder();
        for (byte octet : bytes) digits.append(String.format("%02x", octet));
        return digits.toString();
    }

    /** Returns whether a request can be retried safely when its outcome is unknown. A measurement needs an external_id. */
    public static boolean isRepeatable(String method, byte[] body) {
        return method.equalsIgnoreCase("GET")
            || EXTERNAL_ID.matcher(new String(body, StandardCharsets.ISO_8859_1)).find();
    }

    /** Returns the headers of one attempt. Each attempt needs a new nonce and signature. */
    public Map<String, String> signedHeaders(String method, String target, byte[] body) {
        byte[] random = new byte[16];
        new SecureRandom().nextBytes(random);
        String timestamp = String.valueOf(Instant.now().getEpochSecond());
        String nonce = hex(random);
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("X-Partner-Key-Id", keyId);
        headers.put("X-Partner-Timestamp", timestamp);
        headers.put("X-Partner-Nonce", nonce);
        headers.put("X-Partner-Signature", sign(secret, canonicalString(method, target, timestamp, nonce, body)));
        return headers;
    }

    private HttpResponse<byte[]> attempt(String method, String target, byte[] body) throws IOException, InterruptedException {
        HttpRequest.BodyPublisher publisher =
            body.length == 0 ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofByteArray(body);
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(baseUrl + target))
            .method(method.toUpperCase(Locale.ROOT), publisher).timeout(Duration.ofSeconds(60));
        signedHeaders(method, target, body).forEach(request::header);
        if (body.length > 0) request.header("Content-Type", "application/json");
        return client.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
    }

    /**
     * Sends a request at most four times. After 408 or 429 it always retries, because the request was not processed. After 500,
     * 502, 503, 504 or without a response it retries only if that is safe. Failed attempts are printed to stderr.
     */
    public HttpResponse<byte[]> send(String method, String rawTarget, byte[] body) throws IOException, InterruptedException {
        String target = encodeTarget(rawTarget);
        boolean repeatable = isRepeatable(method, body);
        for (int attempt = 1; ; attempt++) {
            double wait = ThreadLocalRandom.current().nextDouble(0.5, 1) * (1 << (attempt - 1));
            String problem;
            try {
                HttpResponse<byte[]> response = attempt(method, target, body);
                int status = response.statusCode();
                boolean again = List.of(408, 429).contains(status)
                    || (repeatable && List.of(500, 502, 503, 504).contains(status));
                String retryAfter = response.headers().firstValue("Retry-After").orElse("");
                if (retryAfter.matches("[0-9]{1,9}")) wait = Integer.parseInt(retryAfter);
                if (attempt == ATTEMPTS || !again || wait > LONGEST_WAIT) return response;
                problem = String.valueOf(status);
            } catch (IOException error) {
                if (attempt == ATTEMPTS || !repeatable) throw error;
                problem = "no response (" + error + ")";
            }
            System.err.printf(Locale.ROOT, "%s; retrying in %.1f s%n", problem, wait);
            Thread.sleep((long) (wait * 1000));
        }
    }

    /** Encodes spaces, control characters, `#` and what java.net.URI rejects, so that the signed and the sent target are equal. */
    private static String encodeTarget(String target) {
        if (!target.startsWith("/")) throw new IllegalArgumentException("the target must begin with a slash and have no host");
        StringBuilder encoded = new StringBuilder();
        for (byte octet : target.getBytes(StandardCharsets.UTF_8)) {
            boolean allowed = octet > ' ' && octet < 127 && "\"#<>[\\]^`{|}".indexOf(octet) < 0;
            encoded.append(allowed ? String.valueOf((char) octet) : String.format("%%%02X", octet));
        }
        return encoded.toString();
    }

    // ---- The command line and the check.

    /** Checks the functions above with signing-vectors.json and prints each vector that does not match. */
    private static int check(Path path) throws IOException {
        int failures = 0;
        for (Map.Entry<String, List<Map<String, String>>> list : lists(Files.readString(path)).entrySet()) {
            for (Map<String, String> vector : list.getValue()) {
                Map<String, String> got = new HashMap<>();
                try {
                    if (list.getKey().equals("request_vectors")) {
                        String canonical = canonicalString(vector.get("method"), vector.get("target"),
                            vector.get("timestamp"), vector.get("nonce"), octets(vector, "body"));
                        got.put("canonical_string", canonical);
                        got.put("signature", sign(vector.get("secret"), canonical));
                    } else {
                        got.put("canonical_query", canonicalQuery(octets(vector, "raw")));
                    }
                } catch (MalformedQuery error) {
                    got.put("offset", String.valueOf(error.offset));
                }
                for (Map.Entry<String, String> field : got.entrySet()) {
                    if (field.getValue().equals(vector.get(field.getKey()))) continue;
                    failures++;
                    System.err.printf("%s: %s: got %s, expected %s%n", vector.get("name"), field.getKey(), field.getValue(),
                        vector.get(field.getKey()));
                }
            }
            System.out.printf("%s: %d checked%n", list.getKey(), list.getValue().size());
        }
        return failures > 0 ? 1 : 0;
    }

    private static byte[] octets(Map<String, String> vector, String field) {
        String encoded = vector.get(field + "_base64");
        return encoded == null ? vector.get(field).getBytes(StandardCharsets.UTF_8) : Base64.getDecoder().decode(encoded);
    }

    /** Parses the lists of that file. Java has no JSON parser, and the file contains only lists of objects with texts and numbers. */
    private static Map<String, List<Map<String, String>>> lists(String json) {
        Map<String, List<Map<String, String>>> lists = new LinkedHashMap<>();
        List<Map<String, String>> list = null;
        Map<String, String> vector = null;
        String key = null;
        var token = Pattern.compile("\"(?:[^\"\\\\]|\\\\.)*\"|[\\[\\]{}:,]|[^\\[\\]{}:,\"\\s]+").matcher(json);
        String text = null;
        while (token.find()) {
            switch (token.group()) {
                case "[": lists.put(key, list = new ArrayList<>()); break;
                case "{": if (list != null) list.add(vector = new HashMap<>()); break;
                case ":": key = text; break;
                case "]": list = null; break;
                case "}": vector = null; break;
                case ",": key = null; break;
                default: text = unquoted(token.group());
            }
            if (vector != null && key != null && !token.group().equals(":")) vector.put(key, text);
        }
        return lists;
    }

    private static String unquoted(String token) {
        if (!token.startsWith("\"")) return token;
        return Pattern.compile("\\\\(u[0-9a-fA-F]{4}|.)").matcher(token.substring(1, token.length() - 1)).replaceAll(found -> {
            String escape = found.group(1);
            int plain = "nrtbf".indexOf(escape);
            String character = escape.length() == 5 ? String.valueOf((char) Integer.parseInt(escape.substring(1), 16))
                : plain < 0 ? escape : "\n\r\t\b\f".substring(plain, plain + 1);
            return java.util.regex.Matcher.quoteReplacement(character);
        });
    }

    /** Returns the points of a measurement that were not written to the report, such as {@code SLIP_FRONT (no_status)}. */
    public static List<String> skippedPoints(byte[] body) {
        var list = Pattern.compile("\"skipped_points\"\\s*:\\s*\\[([^]]*)]").matcher(new String(body, StandardCharsets.UTF_8));
        if (!list.find()) return List.of();
        return Pattern.compile("\\{[^}]*}").matcher(list.group(1)).results()
            .map(point -> member(point.group(), "code") + " (" + member(point.group(), "reason") + ")")
            .collect(Collectors.toList());
    }

    private static String member(String object, String name) {
        var member = Pattern.compile("\"" + name + "\"\\s*:\\s*\"([^\"]*)\"").matcher(object);
        return member.find() ? member.group(1) : "?";
    }

    public static void main(String[] arguments) throws InterruptedException {
        int code = 2;
        try {
            if (arguments.length == 2 && arguments[0].equals("--check")) {
                code = check(Path.of(arguments[1]));
            } else if (arguments.length < 2 || arguments.length > 3 || arguments[0].startsWith("-")) {
                System.err.println("usage: Partner METHOD TARGET [BODY-FILE]   (- reads the body from standard input)");
                System.err.println("       Partner --check signing-vectors.json");
            } else {
                byte[] body = arguments.length == 2 ? new byte[0]
                    : arguments[2].equals("-") ? System.in.readAllBytes() : Files.readAllBytes(Path.of(arguments[2]));
                HttpResponse<byte[]> response = fromEnvironment().send(arguments[0], arguments[1], body);
                System.err.printf("HTTP/1.1 %d%nX-Request-Id: %s%n", response.statusCode(),
                    response.headers().firstValue("X-Request-Id").orElse("-"));
                System.out.write(response.body());
                System.out.flush();
                skippedPoints(response.body()).forEach(point -> System.err.println("not written: " + point));
                code = response.statusCode() / 100 == 2 ? 0 : 1;
                if (response.headers().firstValue("X-Idempotency-Payload-Mismatch").orElse("").equals("true")) {
                    System.err.println("not recorded: this external_id was already used for another measurement; send it with a new one");
                    code = 1;
                }
            }
        } catch (IOException | IllegalArgumentException error) {
            System.err.println("Partner: " + error);
        }
        System.exit(code);
    }
}
