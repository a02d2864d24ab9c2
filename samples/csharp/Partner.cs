// Signed requests to the partner API, with nothing but .NET's own library: C# 7, for .NET Framework 4.6, mono, and .NET.

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

/// <summary>An answer with its whole body.</summary>
public sealed class Answer
{
    public int Status;
    public string Reason;
    public string RequestId;
    public string RetryAfter;
    public byte[] Body;
    public string Text => Encoding.UTF8.GetString(Body);
}

/// <summary>A key of the partner API.</summary>
public sealed class Partner
{
    private const int Attempts = 4;
    private const double LongestWait = 120; // seconds; who is told to wait longer gets the answer instead
    private static readonly Encoding Latin1 = Encoding.GetEncoding(28591); // one character for each byte

    private readonly HttpClient client;
    private readonly string baseUrl, keyId, secret;

    /// <summary><c>baseUrl</c> is a scheme and a host, as in http://127.0.0.1:8080.</summary>
    public Partner(string baseUrl, string keyId, string secret)
    {
        if (!Regex.IsMatch(baseUrl, "^https?://[^/?#]+/?$"))
            throw new ArgumentException("the base URL is a scheme and a host, as in http://127.0.0.1:8080");
        this.baseUrl = baseUrl.TrimEnd('/');
        this.keyId = keyId;
        this.secret = secret;
        client = new HttpClient(new HttpClientHandler { AllowAutoRedirect = false }) { Timeout = TimeSpan.FromSeconds(60) };
        // A connection for each attempt: when a kept one breaks, .NET sends the same signed request again by itself, with
        // its used nonce.
        client.DefaultRequestHeaders.ConnectionClose = true;
        client.DefaultRequestHeaders.ExpectContinue = false;
    }

    /// <summary>The key that PARTNER_BASE_URL, PARTNER_KEY_ID and PARTNER_SECRET name.</summary>
    public static Partner FromEnvironment()
    {
        var names = new[] { "PARTNER_BASE_URL", "PARTNER_KEY_ID", "PARTNER_SECRET" };
        var values = names.Select(Environment.GetEnvironmentVariable).ToArray();
        var missing = names.Where((name, at) => string.IsNullOrEmpty(values[at])).ToArray();
        if (missing.Length > 0) throw new ArgumentException("set " + string.Join(", ", missing));
        return new Partner(values[0], values[1], values[2]);
    }

    /// <summary>CANONICAL_QUERY of a raw query (the bytes after the first <c>?</c>): decoded once, encoded one way, sorted as
    /// pairs. (Uri.EscapeDataString differs between versions of .NET.)</summary>
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
        // By bytes: the usual comparison of texts is a language's.
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

    /// <summary>The characters, each a byte, that the pattern finds, as <c>%XX</c>.</summary>
    private static string PercentEncoded(string text, string pattern)
    {
        return Regex.Replace(text, pattern, found => "%" + ((int)found.Value[0]).ToString("X2"), RegexOptions.Singleline);
    }

    /// <summary>The text that is signed. <c>target</c> is the path and query exactly as sent, <c>body</c> the exact bytes.</summary>
    public static string CanonicalString(string method, string target, string timestamp, string nonce, byte[] body)
    {
        var parts = target.Split(new[] { '?' }, 2);
        var query = CanonicalQuery(Encoding.UTF8.GetBytes(parts.Length < 2 ? "" : parts[1]));
        using (var sha256 = SHA256.Create())
            return string.Join("\n", method.ToUpperInvariant(), parts[0], query, timestamp, nonce, Hex(sha256.ComputeHash(body)));
    }

    /// <summary>The signature header's value. The HMAC key is the secret's 32 characters themselves, not their decoding.</summary>
    public static string Sign(string secret, string canonical)
    {
        using (var hmac = new HMACSHA256(Encoding.ASCII.GetBytes(secret)))
            return "sha256=" + Hex(hmac.ComputeHash(Encoding.UTF8.GetBytes(canonical)));
    }

    private static string Hex(byte[] bytes)
    {
        return string.Concat(bytes.Select(octet => octet.ToString("x2")));
    }

    /// <summary>Whether a request may be sent again when nobody knows what became of it: a measurement only with an
    /// external_id.</summary>
    public static bool IsRepeatable(string method, byte[] body)
    {
        return method.ToUpperInvariant() == "GET" || Regex.IsMatch(Latin1.GetString(body), @"""external_id""\s*:\s*""[^""]");
    }

    /// <summary>The four headers of one attempt: a nonce is good for one, so each is signed anew.</summary>
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

    private Answer Attempt(string method, Uri address, byte[] body)
    {
        // What is signed is what Uri makes of the target, for that is sent.
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
            return new Answer
            {
                Status = (int)response.StatusCode,
                Reason = response.ReasonPhrase,
                RequestId = header("X-Request-Id"),
                RetryAfter = header("Retry-After"),
                Body = response.Content.ReadAsByteArrayAsync().GetAwaiter().GetResult(),
            };
        }
    }

    /// <summary>Sends a request, up to four times: what was not processed (408, 429) again in any case, what may have been
    /// (500, 502, 503, 504, no answer) only if it is repeatable.</summary>
    public Answer Send(string method, string target, byte[] body = null, Action<string> log = null)
    {
        body = body ?? new byte[0];
        if (!target.StartsWith("/", StringComparison.Ordinal))
            throw new ArgumentException("the target begins with a slash and has no host");
        // Spaces, controls, `#` and bytes that are not ASCII are encoded here.
        target = PercentEncoded(Latin1.GetString(Encoding.UTF8.GetBytes(target)), "[^!-~]|#");
        var address = new Uri(baseUrl + target);
        CanonicalString(method, address.PathAndQuery, "", "", body); // a malformed query is nobody's to repeat
        var repeatable = IsRepeatable(method, body);
        var jitter = new Random(Guid.NewGuid().GetHashCode());
        for (var attempt = 1; ; attempt++)
        {
            var wait = (0.5 + jitter.NextDouble() / 2) * (1 << (attempt - 1));
            string problem;
            try
            {
                var answer = Attempt(method, address, body);
                var again = new[] { 408, 429 }.Contains(answer.Status)
                    || (repeatable && new[] { 500, 502, 503, 504 }.Contains(answer.Status));
                if (uint.TryParse(answer.RetryAfter, NumberStyles.None, CultureInfo.InvariantCulture, out var told)) wait = told;
                if (attempt == Attempts || !again || wait > LongestWait) return answer;
                problem = answer.Status + " " + answer.Reason;
            }
            catch (Exception error) when (IsNetworks(error) && repeatable && attempt < Attempts)
            {
                problem = "no answer (" + error.GetBaseException().Message + ")";
            }
            log?.Invoke(string.Format(CultureInfo.InvariantCulture, "{0}; again in {1:F1} s", problem, wait));
            Thread.Sleep(TimeSpan.FromSeconds(wait));
        }
    }

    /// <summary>A timeout is a cancelled task.</summary>
    private static bool IsNetworks(Exception error)
    {
        return error is HttpRequestException || error is OperationCanceledException || error is IOException || error is WebException;
    }

    // ---- From here on: the command line and the check.

    /// <summary>Runs the functions above over signing-vectors.json; names each vector that does not match.</summary>
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
                    Console.Error.WriteLine($"{vector["name"]}: {field.Key}: got {field.Value}, not {expected}");
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

    /// <summary>The lists of that file: no reader of JSON is in every .NET, and objects of texts and numbers in lists is all that
    /// there is in it.</summary>
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
            var answer = FromEnvironment().Send(arguments[0], arguments[1], body.ToArray(), Console.Error.WriteLine);
            Console.Error.WriteLine($"HTTP/1.1 {answer.Status} {answer.Reason}\nX-Request-Id: {answer.RequestId ?? "-"}");
            using (var output = Console.OpenStandardOutput()) output.Write(answer.Body, 0, answer.Body.Length);
            return answer.Status / 100 == 2 ? 0 : 1;
        }
        catch (Exception error) when (IsNetworks(error) || error is ArgumentException || error is FormatException)
        {
            Console.Error.WriteLine("partner: " + error.GetBaseException().Message);
            return 2;
        }
    }
}
