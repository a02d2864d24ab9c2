// Signed requests to the partner API, with only .NET's own library: C# 7, for .NET Framework 4.6, mono, and .NET.

using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;

/// <summary>A <c>%</c> in a query that is not followed by two hexadecimal digits.</summary>
public sealed class MalformedQuery : FormatException
{
    public readonly int Offset;

    public MalformedQuery(int offset)
        : base($"the query's % at byte {offset} is not followed by two hexadecimal digits; write it as %25")
    {
        Offset = offset;
    }
}

/// <summary>A response with its whole body.</summary>
public sealed class Response
{
    public int Status;
    public string Reason;
    public string RequestId;
    public string RetryAfter;
    public bool IsPayloadMismatch;
    public byte[] Body;
    public string Text => Encoding.UTF8.GetString(Body);
}

/// <summary>A client with a key of the partner API.</summary>
public sealed class Partner
{
    private const int Attempts = 4;
    private const double LongestWait = 120; // seconds; a response with a longer Retry-After is returned instead
    private static readonly Encoding Latin1 = Encoding.GetEncoding(28591); // one character per byte

    private readonly HttpClient client;
    private readonly string baseUrl, keyId, secret;

    /// <summary><c>baseUrl</c> is a scheme and a host, as in http://127.0.0.1:8080.</summary>
    public Partner(string baseUrl, string keyId, string secret)
    {
        if (!Regex.IsMatch(baseUrl, "^https?://[^/?#]+/?$"))
            throw new ArgumentException("the base URL must be a scheme and a host, as in http://127.0.0.1:8080");
        this.baseUrl = baseUrl.TrimEnd('/');
        this.keyId = keyId;
        this.secret = secret;
        client = new HttpClient(new HttpClientHandler { AllowAutoRedirect = false }) { Timeout = TimeSpan.FromSeconds(60) };
        // A new connection for each attempt. If a reused connection breaks, .NET resends the same signed request, whose nonce may
        // be consumed.
        client.DefaultRequestHeaders.ConnectionClose = true;
        client.DefaultRequestHeaders.ExpectContinue = false;
    }

    /// <summary>Creates a client from PARTNER_BASE_URL, PARTNER_KEY_ID and PARTNER_SECRET.</summary>
    public static Partner FromEnvironment()
    {
        var names = new[] { "PARTNER_BASE_URL", "PARTNER_KEY_ID", "PARTNER_SECRET" };
        var values = names.Select(Environment.GetEnvironmentVariable).ToArray();
        var missing = names.Where((name, at) => string.IsNullOrEmpty(values[at])).ToArray();
        if (missing.Length > 0) throw new ArgumentException("set " + string.Join(", ", missing));
        return new Partner(values[0], values[1], values[2]);
    }

    /// <summary>Returns the CANONICAL_QUERY of a raw query (the bytes after the first <c>?</c>): decoded, encoded canonically, sorted
    /// as pairs. (Uri.EscapeDataString differs between versions of .NET.)</summary>
    public static string CanonicalQuery(byte[] raw)
    {
        var text = Latin1.GetString(raw);
        var malformed = Regex.Match(text, "%(?![0-9A-Fa-f]{2})");
        if (malformed.Success) throw new MalformedQuery(malformed.Index);
        var pairs = new List<KeyValuePair<string, string>>();
        foreach (var piece in text.Split('&').Where(piece => piece != ""))
        {
            var parts = piece.Split(new[] { '=' }, 2);
            pairs.Add(new KeyValuePair<string, string>(Recode(parts[0]), parts.Length < 2 ? "" : Recode(parts[1])));
        }
        // Compares bytes: the default string comparison depends on the culture.
        return string.Join("&", pairs
            .OrderBy(pair => pair.Key, StringComparer.Ordinal).ThenBy(pair => pair.Value, StringComparer.Ordinal)
            .Select(pair => pair.Key + "=" + pair.Value));
    }

    private static string Recode(string part)
    {
        var decoded = Regex.Replace(part.Replace('+', ' '), "%([0-9A-Fa-f]{2})",
            found => ((char)Convert.ToInt32(found.Groups[1].Value, 16)).ToString());
        return PercentEncoded(decoded, "[^A-Za-z0-9._~-]");
    }

    /// <summary>Replaces the characters that match the pattern, each a byte, with <c>%XX</c>.</summary>
    private static string PercentEncoded(string text, string pattern)
    {
        return Regex.Replace(text, pattern, found => "%" + ((int)found.Value[0]).ToString("X2"), RegexOptions.Singleline);
    }

    /// <summary>Returns the text that is signed. <c>target</c> is the path and query as sent, <c>body</c> the exact bytes.</summary>
    public static string CanonicalString(string method, string target, string timestamp, string nonce, byte[] body)
    {
        var parts = target.Split(new[] { '?' }, 2);
        var query = CanonicalQuery(Encoding.UTF8.GetBytes(parts.Length < 2 ? "" : parts[1]));
        using (var sha256 = SHA256.Create())
            return string.Join("\n", method.ToUpperInvariant(), parts[0], query, timestamp, nonce, Hex(sha256.ComputeHash(body)));
    }

    /// <summary>Returns the value of the signature header. The HMAC key is the secret's 32 characters, not decoded.</summary>
    public static string Sign(string secret, string canonical)
    {
        using (var hmac = new HMACSHA256(Encoding.ASCII.GetBytes(secret)))
            return "sha256=" + Hex(hmac.ComputeHash(Encoding.UTF8.GetBytes(canonical)));
    }

    private static string Hex(byte[] bytes)
    {
        return string.Concat(bytes.Select(octet => octet.ToString("x2")));
    }

    /// <summary>Returns whether a request can be retried safely when its outcome is unknown. A measurement needs an
    /// external_id.</summary>
    public static bool IsRepeatable(string method, byte[] body)
    {
        return method.ToUpperInvariant() == "GET" || Regex.IsMatch(Latin1.GetString(body), @"""external_id""\s*:\s*""[^""]");
    }

    /// <summary>Returns the headers of one attempt. Each attempt needs a new nonce and signature.</summary>
    public IDictionary<string, string> SignedHeaders(string method, string target, byte[] body)
    {
        var random = new byte[16];
        using (var generator = RandomNumberGenerator.Create()) generator.GetBytes(random);
        var timestamp = DateTimeOffset.UtcNow.ToUnixTimeSeconds().ToString(CultureInfo.InvariantCulture);
        var nonce = Hex(random);
        return new Dictionary<string, string>
        {
            ["X-Partner-Key-Id"] = keyId,
            ["X-Partner-Timestamp"] = timestamp,
            ["X-Partner-Nonce"] = nonce,
            ["X-Partner-Signature"] = Sign(secret, CanonicalString(method, target, timestamp, nonce, body)),
        };
    }

    private Response Attempt(string method, Uri address, byte[] body)
    {
        // Signs the target as Uri normalizes it, because that is sent.
        var request = new HttpRequestMessage(new HttpMethod(method.ToUpperInvariant()), address);
        foreach (var header in SignedHeaders(method, address.PathAndQuery, body)) request.Headers.Add(header.Key, header.Value);
        if (body.Length > 0)
        {
            request.Content = new ByteArrayContent(body);
            request.Content.Headers.TryAddWithoutValidation("Content-Type", "application/json");
        }
        using (var response = client.SendAsync(request).GetAwaiter().GetResult())
        {
            Func<string, string> header = name =>
                response.Headers.TryGetValues(name, out var values) ? string.Join(", ", values) : null;
            return new Response
            {
                Status = (int)response.StatusCode,
                Reason = response.ReasonPhrase,
                RequestId = header("X-Request-Id"),
                IsPayloadMismatch = header("X-Idempotency-Payload-Mismatch") == "true",
                RetryAfter = header("Retry-After"),
                Body = response.Content.ReadAsByteArrayAsync().GetAwaiter().GetResult(),
            };
        }
    }

    /// <summary>Sends a request at most four times. After 408 or 429 it always retries, because the request was not processed. After
    /// 500, 502, 503, 504 or without a response it retries only if that is safe.</summary>
    public Response Send(string method, string target, byte[] body = null, Action<string> log = null)
    {
        body = body ?? new byte[0];
        if (!target.StartsWith("/", StringComparison.Ordinal))
            throw new ArgumentException("the target must begin with a slash and have no host");
        // Encodes spaces, control characters, `#` and non-ASCII bytes.
        target = PercentEncoded(Latin1.GetString(Encoding.UTF8.GetBytes(target)), "[^!-~]|#");
        var address = new Uri(baseUrl + target);
        CanonicalString(method, address.PathAndQuery, "", "", body); // throws for a malformed query before the first attempt
        var repeatable = IsRepeatable(method, body);
        var jitter = new Random(Guid.NewGuid().GetHashCode());
        for (var attempt = 1; ; attempt++)
        {
            var wait = (0.5 + jitter.NextDouble() / 2) * (1 << (attempt - 1));
            string problem;
            try
            {
                var response = Attempt(method, address, body);
                var again = new[] { 408, 429 }.Contains(response.Status)
                    || (repeatable && new[] { 500, 502, 503, 504 }.Contains(response.Status));
                if (uint.TryParse(response.RetryAfter, NumberStyles.None, CultureInfo.InvariantCulture, out var seconds)) wait = seconds;
                if (attempt == Attempts || !again || wait > LongestWait) return response;
                problem = response.Status + " " + response.Reason;
            }
            catch (Exception error) when (IsNetworkError(error) && repeatable && attempt < Attempts)
            {
                problem = "no response (" + error.GetBaseException().Message + ")";
            }
            log?.Invoke(string.Format(CultureInfo.InvariantCulture, "{0}; retrying in {1:F1} s", problem, wait));
            Thread.Sleep(TimeSpan.FromSeconds(wait));
        }
    }

    /// <summary>Returns whether an exception is a network failure. A timeout is a canceled task.</summary>
    private static bool IsNetworkError(Exception error)
    {
        return error is HttpRequestException || error is OperationCanceledException || error is IOException || error is WebException;
    }

    // ---- The command line and the check.

    /// <summary>Checks the functions above with signing-vectors.json and prints each vector that does not match.</summary>
    private static int Check(string path)
    {
        var failures = 0;
        foreach (var list in Lists(File.ReadAllText(path)))
        {
            foreach (var vector in list.Value)
            {
                var got = new Dictionary<string, string>();
                try
                {
                    if (list.Key == "request_vectors")
                    {
                        got["canonical_string"] = CanonicalString(vector["method"], vector["target"], vector["timestamp"],
                            vector["nonce"], Octets(vector, "body"));
                        got["signature"] = Sign(vector["secret"], got["canonical_string"]);
                    }
                    else
                    {
                        got["canonical_query"] = CanonicalQuery(Octets(vector, "raw"));
                    }
                }
                catch (MalformedQuery error)
                {
                    got["offset"] = error.Offset.ToString(CultureInfo.InvariantCulture);
                }
                foreach (var field in got)
                {
                    if (vector.TryGetValue(field.Key, out var expected) && expected == field.Value) continue;
                    failures++;
                    Console.Error.WriteLine($"{vector["name"]}: {field.Key}: got {field.Value}, expected {expected}");
                }
            }
            Console.WriteLine($"{list.Key}: {list.Value.Count} checked");
        }
        return failures > 0 ? 1 : 0;
    }

    private static byte[] Octets(Dictionary<string, string> vector, string field)
    {
        return vector.TryGetValue(field + "_base64", out var encoded)
            ? Convert.FromBase64String(encoded) : Encoding.UTF8.GetBytes(vector[field]);
    }

    /// <summary>Parses the lists of that file. Not every .NET has a JSON parser, and the file contains only lists of objects with
    /// texts and numbers.</summary>
    private static Dictionary<string, List<Dictionary<string, string>>> Lists(string json)
    {
        var lists = new Dictionary<string, List<Dictionary<string, string>>>();
        List<Dictionary<string, string>> list = null;
        Dictionary<string, string> vector = null;
        string key = null, text = null;
        foreach (Match found in Regex.Matches(json, @"""(?:[^""\\]|\\.)*""|[][{}:,]|[^][{}:,""\s]+"))
        {
            switch (found.Value)
            {
                case "[": lists[key] = list = new List<Dictionary<string, string>>(); break;
                case "{": if (list != null) list.Add(vector = new Dictionary<string, string>()); break;
                case ":": key = text; break;
                case "]": list = null; break;
                case "}": vector = null; break;
                case ",": key = null; break;
                default:
                    text = found.Value[0] == '"' ? Regex.Unescape(found.Value.Substring(1, found.Value.Length - 2)) : found.Value;
                    if (vector != null && key != null) vector[key] = text;
                    break;
            }
        }
        return lists;
    }

    /// <summary>Returns the points of a measurement that were not written to the report, such as SLIP_FRONT (no_status).</summary>
    public static IEnumerable<string> SkippedPoints(string body)
    {
        var list = Regex.Match(body, @"""skipped_points""\s*:\s*\[([^]]*)\]").Groups[1].Value;
        Func<Match, string, string> member = (point, name) =>
            Regex.Match(point.Value, "\"" + name + @"""\s*:\s*""([^""]*)""").Groups[1].Value;
        return Regex.Matches(list, @"\{[^}]*\}").Cast<Match>().Select(point => $"{member(point, "code")} ({member(point, "reason")})");
    }

    public static int Main(string[] arguments)
    {
        try
        {
            if (arguments.Length == 2 && arguments[0] == "--check") return Check(arguments[1]);
            if (arguments.Length < 2 || arguments.Length > 3 || arguments[0].StartsWith("-", StringComparison.Ordinal))
            {
                Console.Error.WriteLine("usage: partner METHOD TARGET [BODY-FILE]   (- reads the body from standard input)");
                Console.Error.WriteLine("       partner --check signing-vectors.json");
                return 2;
            }
            var body = new MemoryStream();
            if (arguments.Length == 3)
                using (var file = arguments[2] == "-" ? Console.OpenStandardInput() : File.OpenRead(arguments[2])) file.CopyTo(body);
            var response = FromEnvironment().Send(arguments[0], arguments[1], body.ToArray(), Console.Error.WriteLine);
            Console.Error.WriteLine($"HTTP/1.1 {response.Status} {response.Reason}\nX-Request-Id: {response.RequestId ?? "-"}");
            using (var output = Console.OpenStandardOutput()) output.Write(response.Body, 0, response.Body.Length);
            foreach (var point in SkippedPoints(response.Text)) Console.Error.WriteLine("not written: " + point);
            if (response.IsPayloadMismatch)
            {
                Console.Error.WriteLine("not recorded: this external_id was already used for another measurement; send it with a new one");
                return 1;
            }
            return response.Status / 100 == 2 ? 0 : 1;
        }
        catch (Exception error) when (IsNetworkError(error) || error is ArgumentException || error is FormatException)
        {
            Console.Error.WriteLine("partner: " + error.GetBaseException().Message);
            return 2;
        }
    }
}
