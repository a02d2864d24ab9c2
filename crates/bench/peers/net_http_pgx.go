// The benchmark's peer with Go's net/http and pgx, as one would write it by hand: `script/bench --peers` builds, checks and measures
// it. It serves five operations of the service with the service's statements, which the benchmark passes in the file PEER_CONFIG.
package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/jackc/pgtype"
	"github.com/jackc/pgx/v4"
	"github.com/jackc/pgx/v4/pgxpool"
)

const (
	connections = 16
	root        = "/api/v1/partner"
	nilID       = "00000000-0000-0000-0000-000000000000"
	microtime   = "2006-01-02T15:04:05.000000Z"
)

var (
	earliest = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	// Amounts are read as text, which keeps their decimals.
	amountsAsText = pgx.QueryResultFormatsByOID{pgtype.NumericOID: pgx.TextFormatCode}
)

type key struct {
	Secret        string
	Partner       string
	Organizations []string
}

var config struct {
	Host, User, Database string
	Session              map[string]string
	PublicURL            string `json:"public_url"`
	CursorKey            string `json:"cursor_key"`
	Keys                 map[string]*key
	Statements           struct{ Admit, Organizations, List, Detail, Pending string }
	Nonces               [3]float64
}

var (
	pool      *pgxpool.Pool
	cursorKey []byte
	memory    = map[string]bool{}
	waiting   struct{ ids, digests []string }
	mutex     sync.Mutex
	arrived   = make(chan bool, 1)
)

type failure struct {
	status int
	code   string
}

func (f failure) Error() string { return f.code }

var (
	missing  = failure{401, "missing_signature_headers"}
	wrong    = failure{401, "invalid_signature"}
	replayed = failure{401, "replay_detected"}
	notFound = failure{404, "not_found"}
	invalid  = failure{400, "invalid_request"}
)

// handle reads the request, checks timestamp, nonce and signature, consumes the nonce, and writes the result of work as JSON. If
// inMemory, the nonce is recorded after the response, as by the service for `health`.
func handle(method string, status int, inMemory bool, work func(*http.Request, string, *key, []byte) (interface{}, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var result interface{}
		if err == nil && r.Method != method {
			err = failure{405, "method_not_allowed"}
		}
		if err == nil {
			var id string
			if id, err = admit(r, body, inMemory); err == nil {
				result, err = work(r, id, config.Keys[id], body)
			}
		}
		if err != nil {
			var f failure
			if !errors.As(err, &f) {
				log.Print(err)
				f = failure{503, "service_unavailable"}
			}
			status, result := f.status, map[string]interface{}{"error": map[string]string{"code": f.code}}
			write(w, status, result)
			return
		}
		write(w, status, result)
	}
}

func write(w http.ResponseWriter, status int, result interface{}) {
	body, err := json.Marshal(result)
	if err != nil {
		log.Print(err)
		status = 500
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

func admit(r *http.Request, body []byte, inMemory bool) (string, error) {
	var values [4]string
	for i, name := range []string{"X-Partner-Key-Id", "X-Partner-Timestamp", "X-Partner-Nonce", "X-Partner-Signature"} {
		sent := r.Header[name]
		if len(sent) != 1 || sent[0] == "" {
			return "", missing
		}
		values[i] = sent[0]
	}
	id, timestamp, nonce, signature := values[0], values[1], values[2], values[3]
	seconds, err := strconv.ParseUint(timestamp, 10, 63)
	if err != nil {
		return "", missing
	}
	if len(nonce) < 16 || len(nonce) > 128 || strings.IndexFunc(nonce, func(c rune) bool { return c < '!' || c > '~' }) >= 0 {
		return "", missing
	}
	key := config.Keys[id]
	if key == nil {
		return "", failure{401, "invalid_key"}
	}
	if apart := time.Now().Unix() - int64(seconds); apart > 300 || apart < -300 {
		return "", failure{401, "expired_timestamp"}
	}
	path, raw, _ := strings.Cut(r.RequestURI, "?")
	query, err := canonicalQuery(raw)
	if err != nil {
		return "", invalid
	}
	digest := sha256.Sum256(body)
	mac := hmac.New(sha256.New, []byte(key.Secret))
	io.WriteString(mac, strings.Join([]string{r.Method, path, query, timestamp, nonce, hex.EncodeToString(digest[:])}, "\n"))
	if !hmac.Equal([]byte("sha256="+hex.EncodeToString(mac.Sum(nil))), []byte(signature)) {
		return "", wrong
	}
	used := sha256.Sum256([]byte(id + "\x00" + nonce))
	stored := uuid(used[:16])
	if inMemory {
		mutex.Lock()
		isUsed := memory[stored]
		if !isUsed {
			memory[stored] = true
			waiting.ids, waiting.digests = append(waiting.ids, id), append(waiting.digests, stored)
		}
		mutex.Unlock()
		if isUsed {
			return "", replayed
		}
		select {
		case arrived <- true:
		default:
		}
		return id, nil
	}
	fresh, err := record(r.Context(), []string{id}, []string{stored})
	if err == nil && fresh != 1 {
		err = replayed
	}
	return id, err
}

// record records nonces, and returns the number of new ones.
func record(ctx context.Context, ids, digests []string) (fresh int, err error) {
	n := config.Nonces
	err = pool.QueryRow(ctx, config.Statements.Admit, ids, digests, n[0], n[1], int64(n[2])).Scan(&fresh)
	return
}

// recordLater records the nonces of `health`, all that arrived while the previous statement ran.
func recordLater() {
	for range arrived {
		mutex.Lock()
		ids, digests := waiting.ids, waiting.digests
		waiting.ids, waiting.digests = nil, nil
		mutex.Unlock()
		for len(ids) > 0 {
			some := len(ids)
			if some > 1000 {
				some = 1000
			}
			if _, err := record(context.Background(), ids[:some], digests[:some]); err != nil {
				log.Print(err)
			}
			ids, digests = ids[some:], digests[some:]
		}
	}
}

func canonicalQuery(raw string) (string, error) {
	var pairs [][2]string
	for _, piece := range strings.Split(raw, "&") {
		if piece == "" {
			continue
		}
		name, value, _ := strings.Cut(piece, "=")
		name, err := encoded(name)
		if err != nil {
			return "", err
		}
		if value, err = encoded(value); err != nil {
			return "", err
		}
		pairs = append(pairs, [2]string{name, value})
	}
	sort.Slice(pairs, func(i, j int) bool {
		if pairs[i][0] != pairs[j][0] {
			return pairs[i][0] < pairs[j][0]
		}
		return pairs[i][1] < pairs[j][1]
	})
	joined := make([]string, len(pairs))
	for i, pair := range pairs {
		joined[i] = pair[0] + "=" + pair[1]
	}
	return strings.Join(joined, "&"), nil
}

// encoded decodes a name or value and encodes it again in the canonical form.
func encoded(text string) (string, error) {
	decoded, err := url.QueryUnescape(text)
	return strings.ReplaceAll(url.QueryEscape(decoded), "+", "%20"), err
}

func uuid(b []byte) string {
	text := hex.EncodeToString(b)
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

func newID() string {
	var b [16]byte
	rand.Read(b[6:])
	now := time.Now().UnixMilli()
	for i := 5; i >= 0; i-- {
		b[i] = byte(now)
		now >>= 8
	}
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return uuid(b[:])
}

func cursor(partner string, created time.Time, id string) string {
	position := make([]byte, 8, 56)
	binary.BigEndian.PutUint64(position, uint64(created.UnixMicro()))
	position = append(position, unhyphenated(id)...)
	noFilters := sha256.Sum256(nil)
	mac := hmac.New(sha256.New, cursorKey)
	io.WriteString(mac, "partner-api cursor v1")
	mac.Write(unhyphenated(partner))
	mac.Write(noFilters[:])
	mac.Write(position)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(position))
}

func unhyphenated(id string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	if err != nil {
		log.Print(err)
	}
	return b
}

// moment is a time as the API writes it: without, with three, or with six decimals of the second.
type moment struct{ time.Time }

func (m moment) MarshalJSON() ([]byte, error) {
	utc, layout := m.UTC(), microtime
	if utc.Nanosecond() == 0 {
		layout = "2006-01-02T15:04:05Z"
	} else if utc.Nanosecond()%1e6 == 0 {
		layout = "2006-01-02T15:04:05.000Z"
	}
	return []byte(`"` + utc.Format(layout) + `"`), nil
}

// The privacy modes.

var (
	plates  = regexp.MustCompile(`^(0[1-9]|[1-7][0-9]|8[01])([A-Z]{1,3})([0-9]{2,5})$`)
	numbers = regexp.MustCompile(`\b[1-9][0-9]{2}[ .-]?[0-9]{3}[ .-]?[0-9]{3}[ .-]?[0-9]{2}\b|` +
		`(?:(?:\+|00)?90[ ().-]*|0[ ().-]*)?\(?[2-5][0-9]{2}\)?[ .-]*[0-9]{3}[ .-]*[0-9]{2}[ .-]*[0-9]{2}\b`)
)

func plate(mode, plate string) string {
	if mode == "NONE" {
		return "***"
	}
	parts := plates.FindStringSubmatch(plate)
	switch {
	case parts != nil && mode == "MASKED":
		return parts[1] + "***" + parts[3][len(parts[3])-2:]
	case mode == "MASKED":
		return "***"
	case parts != nil:
		return parts[1] + " " + parts[2] + " " + parts[3]
	}
	return plate
}

func vin(mode, vin string) string {
	switch {
	case mode == "FULL":
		return vin
	case mode == "MASKED" && len(vin) >= 14:
		return vin[:3] + "***" + vin[len(vin)-4:]
	}
	return "***"
}

func text(mode, text string) string {
	if mode == "FULL" {
		return text
	}
	digits := 0
	for i := 0; i < len(text); i++ {
		if text[i] >= '0' && text[i] <= '9' {
			digits++
		}
	}
	if digits < 10 {
		return text
	}
	return numbers.ReplaceAllString(text, "[removed]")
}

// The operations.

type data struct {
	Data interface{} `json:"data"`
}

func health(_ *http.Request, _ string, key *key, _ []byte) (interface{}, error) {
	return struct {
		Status      string `json:"status"`
		Partner     string `json:"partner"`
		Environment string `json:"environment"`
		ServerTime  moment `json:"server_time"`
	}{"ok", key.Partner, "test", moment{time.Now().Truncate(time.Microsecond)}}, nil
}

type organization struct {
	ID          string `json:"id"`
	Slug        string `json:"slug"`
	Name        string `json:"name"`
	BranchCount int32  `json:"branch_count"`
	PiiMode     string `json:"pii_mode"`
}

func organizations(r *http.Request, _ string, key *key, _ []byte) (interface{}, error) {
	rows, err := pool.Query(r.Context(), config.Statements.Organizations, key.Organizations, key.Organizations, []string{})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := []organization{}
	for rows.Next() {
		var o organization
		if err := rows.Scan(&o.ID, &o.Slug, &o.Name, &o.PiiMode, &o.BranchCount); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return data{all}, rows.Err()
}

type vehicle struct {
	Plate        string `json:"plate_masked"`
	VIN          string `json:"vin_masked"`
	Brand        string `json:"brand"`
	Model        string `json:"model"`
	Year         int32  `json:"year"`
	Type         string `json:"type"`
	FuelType     string `json:"fuel_type"`
	Transmission string `json:"transmission"`
	Color        string `json:"color"`
	MileageKm    int32  `json:"mileage_km"`
}

func (v *vehicle) columns() []interface{} {
	return []interface{}{&v.Plate, &v.VIN, &v.Brand, &v.Model, &v.Year, &v.Type, &v.FuelType, &v.Transmission, &v.Color, &v.MileageKm}
}

func (v *vehicle) mask(mode string) {
	v.Plate, v.VIN = plate(mode, v.Plate), vin(mode, v.VIN)
}

type item struct {
	ID             string  `json:"id"`
	ReportNumber   string  `json:"report_number"`
	OrganizationID string  `json:"organization_id"`
	BranchID       string  `json:"branch_id"`
	Status         string  `json:"status"`
	PackageName    string  `json:"package_name"`
	OverallScore   int32   `json:"overall_score"`
	FinalPrice     string  `json:"final_price_try"`
	Vehicle        vehicle `json:"vehicle"`
	PublishedAt    moment  `json:"published_at"`
	CreatedAt      moment  `json:"created_at"`
	UpdatedAt      moment  `json:"updated_at"`
}

type page struct {
	NextCursor string `json:"next_cursor,omitempty"`
	HasMore    bool   `json:"has_more"`
}

func list(r *http.Request, _ string, key *key, _ []byte) (interface{}, error) {
	limit := 25
	for name, values := range r.URL.Query() {
		var err error
		if limit, err = strconv.Atoi(values[0]); err != nil || name != "limit" || len(values) > 1 || limit < 1 || limit > 100 {
			return nil, invalid
		}
	}
	rows, err := pool.Query(r.Context(), config.Statements.List, amountsAsText, key.Organizations, latest, nilID, earliest, int64(limit+1))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	items := make([]item, 0, limit+1)
	for rows.Next() {
		var i item
		var mode string
		columns := []interface{}{&i.ID, &i.ReportNumber, &i.OrganizationID, &i.BranchID, &i.Status, &i.PackageName, &i.OverallScore,
			&i.FinalPrice, &i.PublishedAt.Time, &i.CreatedAt.Time}
		columns = append(append(columns, i.Vehicle.columns()...), &mode, &i.UpdatedAt.Time)
		if err := rows.Scan(columns...); err != nil {
			return nil, err
		}
		i.Status = strings.ToLower(i.Status)
		i.PackageName = text(mode, i.PackageName)
		i.Vehicle.mask(mode)
		items = append(items, i)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	sort.Slice(items, func(a, b int) bool {
		if !items[a].CreatedAt.Equal(items[b].CreatedAt.Time) {
			return items[a].CreatedAt.After(items[b].CreatedAt.Time)
		}
		return items[a].ID > items[b].ID
	})
	position := page{HasMore: len(items) > limit}
	if position.HasMore {
		items = items[:limit]
		last := &items[limit-1]
		position.NextCursor = cursor(key.Partner, last.CreatedAt.Time, last.ID)
	}
	return struct {
		Data []item `json:"data"`
		Page page   `json:"page"`
	}{items, position}, nil
}

type inspection struct {
	ID           string `json:"id"`
	ReportNumber string `json:"report_number"`
	Organization struct {
		ID   string `json:"id"`
		Slug string `json:"slug"`
		Name string `json:"name"`
	} `json:"organization"`
	Branch struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		City string `json:"city"`
	} `json:"branch"`
	Status  string `json:"status"`
	Package struct {
		Name      string `json:"name"`
		BasePrice string `json:"base_price_try"`
	} `json:"package"`
	Pricing struct {
		BasePrice       string `json:"base_price_try"`
		DiscountPercent string `json:"discount_percent"`
		DiscountName    string `json:"discount_name"`
		FinalPrice      string `json:"final_price_try"`
		PaymentType     string `json:"payment_type"`
		Currency        string `json:"currency"`
	} `json:"pricing"`
	Vehicle  vehicle `json:"vehicle"`
	Snapshot struct {
		VIN       string `json:"vin_masked"`
		MileageKm int32  `json:"mileage_km"`
	} `json:"snapshot"`
	Summary        string `json:"summary"`
	Recommendation string `json:"recommendation"`
	OverallScore   int32  `json:"overall_score"`
	UpdatedAt      moment `json:"updated_at"`
	Links          struct {
		Forms  string `json:"forms"`
		Photos string `json:"photos"`
		PDF    string `json:"pdf"`
	} `json:"links"`
}

var ids = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func detail(r *http.Request, _ string, key *key, _ []byte) (interface{}, error) {
	id := strings.TrimPrefix(r.URL.Path, root+"/inspections/")
	if !ids.MatchString(id) {
		return nil, notFound
	}
	var i inspection
	var mode string
	columns := []interface{}{&i.ID, &i.ReportNumber, &i.Status, &mode, &i.Organization.ID, &i.Organization.Slug, &i.Organization.Name,
		&i.Branch.ID, &i.Branch.Name, &i.Branch.City, &i.Package.Name, &i.Package.BasePrice, &i.Pricing.BasePrice,
		&i.Pricing.DiscountPercent, &i.Pricing.DiscountName, &i.Pricing.FinalPrice, &i.Pricing.PaymentType, &i.Pricing.Currency}
	columns = append(append(columns, i.Vehicle.columns()...), &i.Snapshot.VIN, &i.Snapshot.MileageKm, &i.Summary, &i.Recommendation,
		&i.OverallScore, &i.UpdatedAt.Time)
	row := pool.QueryRow(r.Context(), config.Statements.Detail, amountsAsText, id, key.Organizations, []string{})
	if err := row.Scan(columns...); errors.Is(err, pgx.ErrNoRows) {
		return nil, notFound
	} else if err != nil {
		return nil, err
	}
	i.Status = strings.ToLower(i.Status)
	i.Vehicle.mask(mode)
	i.Snapshot.VIN = vin(mode, i.Snapshot.VIN)
	for _, free := range []*string{&i.Package.Name, &i.Pricing.DiscountName, &i.Summary, &i.Recommendation} {
		*free = text(mode, *free)
	}
	link := config.PublicURL + root + "/inspections/" + id
	i.Links.Forms, i.Links.Photos, i.Links.PDF = link+"/forms", link+"/photos", link+"/pdf"
	return &i, nil
}

var (
	codes      = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)
	controls   = regexp.MustCompile(`[\x00-\x1f\x7f]`)
	variants   = strings.NewReplacer("i\u0307", "I", "I\u0307", "I", "i", "I", "ı", "I", "İ", "I")
	separators = func(c rune) rune {
		if unicode.IsSpace(c) || c == '.' || c == '-' {
			return -1
		}
		return c
	}
)

func folded(text string) string { return strings.ToUpper(variants.Replace(text)) }

func isText(text *string, length int) bool {
	return text == nil || len([]rune(*text)) <= length && !controls.MatchString(*text)
}

func measurement(r *http.Request, id string, key *key, raw []byte) (interface{}, error) {
	var sent struct {
		BranchCode   string                 `json:"branch_code"`
		Plate        string                 `json:"plate"`
		ExternalID   *string                `json:"external_id"`
		DeviceSerial *string                `json:"device_serial"`
		MeasuredAt   *time.Time             `json:"measured_at"`
		Measurements map[string]json.Number `json:"measurements"`
	}
	if json.Unmarshal(raw, &sent) != nil {
		return nil, invalid
	}
	plate := folded(strings.Map(separators, sent.Plate))
	names := make([]string, 0, len(sent.Measurements))
	for name := range sent.Measurements {
		if !codes.MatchString(name) {
			return nil, invalid
		}
		names = append(names, name)
	}
	sort.Strings(names)
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = sent.Measurements[name].String()
	}
	isFuture := sent.MeasuredAt != nil && time.Until(*sent.MeasuredAt) > 300*time.Second
	if sent.BranchCode == "" || !isText(&sent.BranchCode, 64) || !isText(sent.ExternalID, 120) || !isText(sent.DeviceSerial, 120) ||
		len(names) == 0 || len(names) > 50 || isFuture || !plates.MatchString(plate) {
		return nil, invalid
	}
	measurementID, hash := newID(), sha256.Sum256(raw)
	rows, err := pool.Query(r.Context(), config.Statements.Pending, []string{measurementID}, []string{key.Partner}, []string{id},
		[]string{folded(sent.BranchCode)}, []string{plate}, []*string{sent.ExternalID}, []*string{sent.DeviceSerial},
		[]*time.Time{sent.MeasuredAt}, [][]byte{raw}, [][]byte{hash[:]}, []string{"{" + strings.Join(names, ",") + "}"},
		[]string{"{" + strings.Join(texts, ",") + "}"})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var branches int32
	var recorded bool
	if rows.Next() {
		// The other columns are about replays and open reports.
		columns := make([]interface{}, len(rows.FieldDescriptions()))
		for i, field := range rows.FieldDescriptions() {
			switch string(field.Name) {
			case "branches":
				columns[i] = &branches
			case "recorded":
				columns[i] = &recorded
			}
		}
		if err := rows.Scan(columns...); err != nil {
			return nil, err
		}
	}
	rows.Close()
	switch {
	case rows.Err() != nil:
		return nil, rows.Err()
	case branches == 0:
		return nil, notFound
	case branches > 1:
		return nil, invalid
	case !recorded:
		return nil, failure{501, "only_new_pending_measurements"}
	}
	return data{struct {
		MeasurementID    string   `json:"measurement_id"`
		Status           string   `json:"status"`
		Plate            string   `json:"plate"`
		InspectionID     *string  `json:"inspection_id"`
		AppliedPoints    []string `json:"applied_points"`
		IdempotentReplay bool     `json:"idempotent_replay"`
	}{measurementID, "pending", plate, nil, []string{}, false}}, nil
}

func main() {
	file, err := os.ReadFile(os.Getenv("PEER_CONFIG"))
	if err == nil {
		err = json.Unmarshal(file, &config)
	}
	if err == nil {
		cursorKey, err = hex.DecodeString(config.CursorKey)
	}
	var options *pgxpool.Config
	if err == nil {
		options, err = pgxpool.ParseConfig("host=" + config.Host + " user=" + config.User + " dbname=" + config.Database)
	}
	if err == nil {
		options.MaxConns = connections
		options.ConnConfig.RuntimeParams = config.Session
		pool, err = pgxpool.ConnectConfig(context.Background(), options)
	}
	if err != nil {
		log.Fatal(err)
	}
	go recordLater()
	http.HandleFunc(root+"/health", handle("GET", 200, true, health))
	http.HandleFunc(root+"/organizations", handle("GET", 200, false, organizations))
	http.HandleFunc(root+"/inspections", handle("GET", 200, false, list))
	http.HandleFunc(root+"/inspections/", handle("GET", 200, false, detail))
	http.HandleFunc(root+"/test-line/measurements", handle("POST", 201, false, measurement))
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PEER_PORT"), nil))
}
