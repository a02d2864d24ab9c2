// Signed requests to the partner API, with nothing but Go's standard library (1.19 or newer).
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
const longestWait = 120 * time.Second // who is told to wait longer gets the answer instead

// MalformedQuery is a `%` in a query, at this byte, that is not followed by two hexadecimal digits.
type MalformedQuery int

func (offset MalformedQuery) Error() string {
	return fmt.Sprintf("the query's %% at byte %d is not followed by two hexadecimal digits; write it as %%25", int(offset))
}

// CanonicalQuery gives CANONICAL_QUERY of a raw query (the bytes after the first `?`): decoded once, encoded one way,
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
	decoded, _ := url.QueryUnescape(part) // a plus is a space; what is malformed was refused before
	// QueryEscape leaves exactly A-Z a-z 0-9 - . _ ~, and writes a space as a plus.
	return strings.ReplaceAll(url.QueryEscape(decoded), "+", "%20")
}

func isHex(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F'
}

// CanonicalString gives the text that is signed. target is the path and query exactly as sent, body the exact bytes.
func CanonicalString(method, target, timestamp, nonce string, body []byte) (string, error) {
	path, raw, _ := strings.Cut(target, "?")
	query, err := CanonicalQuery(raw)
	digest := sha256.Sum256(body)
	parts := []string{strings.ToUpper(method), path, query, timestamp, nonce, hex.EncodeToString(digest[:])}
	return strings.Join(parts, "\n"), err
}

// Sign gives the signature header's value. The HMAC key is the secret's 32 characters themselves, not their decoding.
func Sign(secret, canonical string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(canonical))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

var externalID = regexp.MustCompile(`"external_id"\s*:\s*"[^"]`)

// IsRepeatable tells whether a request may be sent again when nobody knows what became of it: a measurement only with an
// external_id.
func IsRepeatable(method string, body []byte) bool {
	return strings.ToUpper(method) == "GET" || externalID.Match(body)
}

// Partner is a key of the partner API. BaseURL is a scheme and a host, as in http://127.0.0.1:8080.
type Partner struct {
	BaseURL, KeyID, Secret string
	Log                    func(text string) // is told of attempts that failed, if it is there
}

// Answer is an answer with its whole body.
type Answer struct {
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
		return nil, errors.New("the base URL is a scheme and a host, as in http://127.0.0.1:8080")
	}
	return &Partner{BaseURL: strings.TrimSuffix(values[0], "/"), KeyID: values[1], Secret: values[2]}, nil
}

// SignedHeaders gives the four headers of one attempt: a nonce is good for one, so each is signed anew.
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

// A connection for each attempt, and no redirects: on a kept connection that breaks, Go would send the same signed
// request again by itself, with its used nonce.
var client = http.Client{
	Timeout:       60 * time.Second,
	Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (partner *Partner) attempt(method, target string, body []byte) (*Answer, error) {
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
	answered, err := io.ReadAll(response.Body)
	return &Answer{response.StatusCode, strings.TrimPrefix(response.Status[3:], " "), response.Header, answered}, err
}

var unsendable = regexp.MustCompile(`[^!-~]|#`)

// Send sends a request, up to four times: what was not processed (408, 429) again in any case, what may have been (500,
// 502, 503, 504, no answer) only if it is repeatable.
func (partner *Partner) Send(method, target string, body []byte) (*Answer, error) {
	// What is signed must be what is sent: spaces, controls, `#` and bytes that are not ASCII are encoded here.
	target = unsendable.ReplaceAllStringFunc(target, func(found string) string {
		return "%" + strings.ToUpper(strings.Join(strings.Split(fmt.Sprintf("% x", found), " "), "%"))
	})
	if !strings.HasPrefix(target, "/") {
		return nil, errors.New("the target begins with a slash and has no host")
	}
	if _, err := CanonicalString(method, target, "", "", body); err != nil {
		return nil, err
	}
	repeatable := IsRepeatable(method, body)
	for attempt := 1; ; attempt++ {
		jitter := float64(time.Now().Nanosecond()) / 1e9 // any number from 0 to 1 that two stations do not share
		wait := time.Duration((0.5 + jitter/2) * float64(int(1)<<(attempt-1)) * float64(time.Second))
		answer, err := partner.attempt(method, target, body)
		problem := fmt.Sprintf("no answer (%v)", err)
		again := repeatable
		if err == nil {
			problem = fmt.Sprintf("%d %s", answer.Status, answer.Reason)
			switch answer.Status {
			case 408, 429:
				again = true
			case 500, 502, 503, 504:
			default:
				again = false
			}
			if seconds, err := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 31); err == nil {
				wait = time.Duration(seconds) * time.Second
			}
		}
		if attempt == attempts || !again || wait > longestWait {
			return answer, err
		}
		if partner.Log != nil {
			partner.Log(fmt.Sprintf("%s; again in %.1f s", problem, wait.Seconds()))
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

// check runs the functions above over signing-vectors.json, and names each vector that does not match.
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
			fmt.Fprintf(os.Stderr, "%s: %s: got %q, not %q\n", name, field, got, expected)
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
	answer, err := partner.Send(arguments[0], arguments[1], body)
	if err != nil {
		return 2, err
	}
	requestID := answer.Header.Get("X-Request-Id")
	fmt.Fprintf(os.Stderr, "HTTP/1.1 %d %s\nX-Request-Id: %s\n", answer.Status, answer.Reason, requestID)
	os.Stdout.Write(answer.Body)
	if answer.Status < 200 || answer.Status > 299 {
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
