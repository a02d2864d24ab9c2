// Signed requests to the partner API, with only Go's standard library (1.19 or newer).
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"
)

const attempts = 4
const longestWait = 120 * time.Second // a response with a longer Retry-After is returned instead

// MalformedQuery is the offset of a `%` in a query that is not followed by two hexadecimal digits.
type MalformedQuery int

func (offset MalformedQuery) Error() string {
	return fmt.Sprintf("the query's %% at byte %d is not followed by two hexadecimal digits; write it as %%25", int(offset))
}

// CanonicalQuery returns the CANONICAL_QUERY of a raw query (the bytes after the first `?`): decoded, encoded canonically,
// sorted as pairs.
func CanonicalQuery(raw string) (string, error) {
	for at := 0; at < len(raw); at++ {
		if raw[at] == '%' && (at+2 >= len(raw) || !isHex(raw[at+1]) || !isHex(raw[at+2])) {
			return "", MalformedQuery(at)
		}
	}
	var pairs [][2]string
	for _, piece := range strings.Split(raw, "&") {
		if piece != "" {
			name, value, _ := strings.Cut(piece, "=")
			pairs = append(pairs, [2]string{recode(name), recode(value)})
		}
	}
	sort.Slice(pairs, func(i, j int) bool {
		if pairs[i][0] != pairs[j][0] {
			return pairs[i][0] < pairs[j][0]
		}
		return pairs[i][1] < pairs[j][1]
	})
	var joined []string
	for _, pair := range pairs {
		joined = append(joined, pair[0]+"="+pair[1])
	}
	return strings.Join(joined, "&"), nil
}

func recode(part string) string {
	decoded, _ := url.QueryUnescape(part) // a plus means a space; malformed queries were rejected above
	// QueryEscape escapes all but A-Z a-z 0-9 - . _ ~, and encodes a space as a plus.
	return strings.ReplaceAll(url.QueryEscape(decoded), "+", "%20")
}

func isHex(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F'
}

// CanonicalString returns the text that is signed. target is the path and query as sent, body the exact bytes.
func CanonicalString(method, target, timestamp, nonce string, body []byte) (string, error) {
	path, raw, _ := strings.Cut(target, "?")
	query, err := CanonicalQuery(raw)
	digest := sha256.Sum256(body)
	parts := []string{strings.ToUpper(method), path, query, timestamp, nonce, hex.EncodeToString(digest[:])}
	return strings.Join(parts, "\n"), err
}

// Sign returns the value of the signature header. The HMAC key is the secret's 32 characters, not decoded.
func Sign(secret, canonical string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(canonical))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

var externalID = regexp.MustCompile(`"external_id"\s*:\s*"[^"]`)

// IsRepeatable returns whether a request can be retried safely when its outcome is unknown. A measurement needs an
// external_id.
func IsRepeatable(method string, body []byte) bool {
	return strings.ToUpper(method) == "GET" || externalID.Match(body)
}

// Partner is a client with a key of the partner API. BaseURL is a scheme and a host, as in http://127.0.0.1:8080.
type Partner struct {
	BaseURL, KeyID, Secret string
	Log                    func(text string) // called for each failed attempt, if set
}

// Response is a response with its whole body.
type Response struct {
	Status int
	Reason string
	Header http.Header
	Body   []byte
}

var baseURL = regexp.MustCompile(`^https?://[^/?#]+/?$`)

// FromEnvironment reads PARTNER_BASE_URL, PARTNER_KEY_ID and PARTNER_SECRET.
func FromEnvironment() (*Partner, error) {
	var values, missing []string
	for _, name := range []string{"PARTNER_BASE_URL", "PARTNER_KEY_ID", "PARTNER_SECRET"} {
		values = append(values, os.Getenv(name))
		if os.Getenv(name) == "" {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return nil, errors.New("set " + strings.Join(missing, ", "))
	}
	if !baseURL.MatchString(values[0]) {
		return nil, errors.New("the base URL must be a scheme and a host, as in http://127.0.0.1:8080")
	}
	return &Partner{BaseURL: strings.TrimSuffix(values[0], "/"), KeyID: values[1], Secret: values[2]}, nil
}

// SignedHeaders returns the headers of one attempt. Each attempt needs a new nonce and signature.
func (partner *Partner) SignedHeaders(method, target string, body []byte) (http.Header, error) {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	timestamp, nonce := strconv.FormatInt(time.Now().Unix(), 10), hex.EncodeToString(random)
	canonical, err := CanonicalString(method, target, timestamp, nonce, body)
	headers := http.Header{}
	headers.Set("X-Partner-Key-Id", partner.KeyID)
	headers.Set("X-Partner-Timestamp", timestamp)
	headers.Set("X-Partner-Nonce", nonce)
	headers.Set("X-Partner-Signature", Sign(partner.Secret, canonical))
	return headers, err
}

// A new connection for each attempt, and no redirects. If a reused connection breaks, Go resends the same signed request, whose
// nonce may be consumed.
var client = http.Client{
	Timeout:       60 * time.Second,
	Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (partner *Partner) attempt(method, target string, body []byte) (*Response, error) {
	request, err := http.NewRequest(strings.ToUpper(method), partner.BaseURL+target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if request.Header, err = partner.SignedHeaders(method, target, body); err != nil {
		return nil, err
	}
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return &Response{response.StatusCode, strings.TrimPrefix(response.Status[3:], " "), response.Header, content}, err
}

var unsendable = regexp.MustCompile(`[^!-~]|#`)

// Send sends a request at most four times. After 408 or 429 it always retries, because the request was not processed. After 500,
// 502, 503, 504 or without a response it retries only if that is safe.
func (partner *Partner) Send(method, target string, body []byte) (*Response, error) {
	// Encodes spaces, control characters, `#` and non-ASCII bytes, so that the signed and the sent target are equal.
	target = unsendable.ReplaceAllStringFunc(target, func(found string) string {
		return "%" + strings.ToUpper(strings.Join(strings.Split(fmt.Sprintf("% x", found), " "), "%"))
	})
	if !strings.HasPrefix(target, "/") {
		return nil, errors.New("the target must begin with a slash and have no host")
	}
	if _, err := CanonicalString(method, target, "", "", body); err != nil {
		return nil, err
	}
	repeatable := IsRepeatable(method, body)
	for attempt := 1; ; attempt++ {
		jitter := float64(time.Now().Nanosecond()) / 1e9 // a number from 0 to 1 that differs between machines
		wait := time.Duration((0.5 + jitter/2) * float64(int(1)<<(attempt-1)) * float64(time.Second))
		response, err := partner.attempt(method, target, body)
		problem := fmt.Sprintf("no response (%v)", err)
		again := repeatable
		if err == nil {
			problem = fmt.Sprintf("%d %s", response.Status, response.Reason)
			switch response.Status {
			case 408, 429:
				again = true
			case 500, 502, 503, 504:
			default:
				again = false
			}
			if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31); err == nil {
				wait = time.Duration(seconds) * time.Second
			}
		}
		if attempt == attempts || !again || wait > longestWait {
			return response, err
		}
		if partner.Log != nil {
			partner.Log(fmt.Sprintf("%s; retrying in %.1f s", problem, wait.Seconds()))
		}
		time.Sleep(wait)
	}
}

type vector struct {
	Name, Raw, Secret, Method, Target, Timestamp, Nonce, Body, Signature string
	RawBase64                                                            []byte `json:"raw_base64"`
	BodyBase64                                                           []byte `json:"body_base64"`
	CanonicalQuery                                                       string `json:"canonical_query"`
	CanonicalString                                                      string `json:"canonical_string"`
	Offset                                                               int
}

// check checks the functions above with signing-vectors.json and prints each vector that does not match.
func check(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 2, err
	}
	var vectors struct {
		Queries  []vector `json:"query_vectors"`
		Rejected []vector `json:"rejected_queries"`
		Requests []vector `json:"request_vectors"`
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		return 2, err
	}
	failures := 0
	expect := func(name, field string, got, expected any) {
		if got != expected {
			failures++
			fmt.Fprintf(os.Stderr, "%s: %s: got %q, expected %q\n", name, field, got, expected)
		}
	}
	for _, v := range vectors.Queries {
		got, err := CanonicalQuery(v.Raw + string(v.RawBase64))
		expect(v.Name, "error", err, nil)
		expect(v.Name, "canonical_query", got, v.CanonicalQuery)
	}
	fmt.Printf("query_vectors: %d checked\n", len(vectors.Queries))
	for _, v := range vectors.Rejected {
		_, err := CanonicalQuery(v.Raw)
		expect(v.Name, "offset", err, MalformedQuery(v.Offset))
	}
	fmt.Printf("rejected_queries: %d checked\n", len(vectors.Rejected))
	for _, v := range vectors.Requests {
		body := append([]byte(v.Body), v.BodyBase64...)
		got, err := CanonicalString(v.Method, v.Target, v.Timestamp, v.Nonce, body)
		expect(v.Name, "error", err, nil)
		expect(v.Name, "canonical_string", got, v.CanonicalString)
		expect(v.Name, "signature", Sign(v.Secret, got), v.Signature)
	}
	fmt.Printf("request_vectors: %d checked\n", len(vectors.Requests))
	if failures > 0 || len(vectors.Queries)*len(vectors.Rejected)*len(vectors.Requests) == 0 {
		return 1, nil
	}
	return 0, nil
}

// SkippedPoints returns the points of a measurement that were not written to the report, such as `SLIP_FRONT (no_status)`.
func (response *Response) SkippedPoints() (points []string) {
	var measurement struct {
		Data struct {
			SkippedPoints []struct{ Code, Reason string } `json:"skipped_points"`
		}
	}
	if json.Unmarshal(response.Body, &measurement) != nil {
		return nil // another response, such as a list or a PDF
	}
	for _, point := range measurement.Data.SkippedPoints {
		points = append(points, fmt.Sprintf("%s (%s)", point.Code, point.Reason))
	}
	return points
}

func run(arguments []string) (int, error) {
	if len(arguments) == 2 && arguments[0] == "--check" {
		return check(arguments[1])
	}
	if len(arguments) < 2 || len(arguments) > 3 || strings.HasPrefix(arguments[0], "-") {
		fmt.Fprintln(os.Stderr, "usage: partner METHOD TARGET [BODY-FILE]   (- reads the body from standard input)")
		return 2, errors.New("or: partner --check signing-vectors.json")
	}
	var body []byte
	var err error
	if len(arguments) == 3 && arguments[2] == "-" {
		body, err = io.ReadAll(os.Stdin)
	} else if len(arguments) == 3 {
		body, err = os.ReadFile(arguments[2])
	}
	if err != nil {
		return 2, err
	}
	partner, err := FromEnvironment()
	if err != nil {
		return 2, err
	}
	partner.Log = func(text string) { fmt.Fprintln(os.Stderr, text) }
	response, err := partner.Send(arguments[0], arguments[1], body)
	if err != nil {
		return 2, err
	}
	requestID := response.Header.Get("X-Request-Id")
	fmt.Fprintf(os.Stderr, "HTTP/1.1 %d %s\nX-Request-Id: %s\n", response.Status, response.Reason, requestID)
	os.Stdout.Write(response.Body)
	for _, point := range response.SkippedPoints() {
		fmt.Fprintln(os.Stderr, "not written:", point)
	}
	if response.Header.Get("X-Idempotency-Payload-Mismatch") == "true" {
		return 1, errors.New("not recorded: this external_id was already used for another measurement; send it with a new one")
	}
	if response.Status < 200 || response.Status > 299 {
		return 1, nil
	}
	return 0, nil
}

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "partner:", err)
	}
	os.Exit(code)
}
