package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/troupe-run/troupe/internal/safefile"
)

// Settings say where spans go. The rest is in the environment, by the variables that OpenTelemetry names:
// docs/telemetry.md lists those that troupe reads.
type Settings struct {
	// Endpoint is the address of an OTLP/HTTP receiver, such as http://localhost:4318. Default: that of
	// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT; without one, nothing is sent.
	Endpoint string
	// Content is ContentFull if spans have the texts of people, models and tools. Default: ContentNone, unless
	// OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is true.
	Content string
}

// Values of Settings.Content.
const (
	ContentNone = "none"
	ContentFull = "full"
)

// EndpointUsage and ContentUsage describe the flags of Settings.
const (
	EndpointUsage = "OTLP/HTTP receiver of spans and metrics, such as " + defaultEndpoint + " (default OTEL_EXPORTER_OTLP_ENDPOINT, or none; docs/telemetry.md)"
	ContentUsage  = "none or full: whether spans have the texts of people, models and tools (default none)"
)

// ErrSettings says that the settings or the environment name a receiver that troupe cannot use.
var ErrSettings = errors.New("telemetry: settings")

// Defaults and limits of the environment.
const (
	defaultEndpoint = "http://localhost:4318"
	flushDefault    = time.Second
	metricsDefault  = time.Minute
	timeoutDefault  = 10 * time.Second
	queueDefault    = 8192 // spans
	batchDefault    = 512
	queueMost       = 1 << 20
	batchMost       = 1 << 14
	durationMost    = 10 * time.Minute
	certBytesMax    = 1 << 20
	serviceDefault  = "troupe"
)

// target is where and how the data of a signal are sent; without a url they are not.
type target struct {
	url          string
	headers      http.Header
	tls          *tls.Config
	gzip         bool
	content      bool
	timeout      time.Duration
	flushEvery   time.Duration // of spans
	metricsEvery time.Duration
	queueMax     int
	batchMax     int
	sampler      sampler
	service      string
	attributes   []attribute
}

// signal is a kind of data that OTLP carries.
type signal struct {
	name string // in variables
	path string // at a receiver
	// others are values of the variable OTEL_<name>_EXPORTER that name no receiver of OTLP, and are no error.
	others []string
}

var (
	ofTraces  = signal{name: "TRACES", path: "/v1/traces", others: []string{"none"}}
	ofMetrics = signal{name: "METRICS", path: "/v1/metrics", others: []string{"none", "prometheus"}}
)

// environment reads the variables of OpenTelemetry for a signal.
type environment struct {
	get    func(string) string
	signal signal
}

// ofSignal reads a variable OTEL_EXPORTER_OTLP_*, in the form for the signal first.
func (env environment) ofSignal(name string) (key, value string) {
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_" + env.signal.name + "_", "OTEL_EXPORTER_OTLP_"} {
		if v := strings.TrimSpace(env.get(prefix + name)); v != "" {
			return prefix + name, v
		}
	}
	return "", ""
}

func isTrue(value string) bool { return strings.EqualFold(strings.TrimSpace(value), "true") }

// resolveTarget finds out where a signal goes.
func resolveTarget(s Settings, getenv func(string) string, of signal) (t target, err error) {
	env := environment{getenv, of}
	if s.Content != "" && s.Content != ContentNone && s.Content != ContentFull {
		return target{}, fmt.Errorf("%w: --telemetry-content (telemetry_content) is %s or %s, not %q", ErrSettings, ContentNone, ContentFull, s.Content)
	}
	address, err := env.address(s)
	if err != nil || address == "" {
		return target{}, err
	}
	t = target{url: address, content: s.Content == ContentFull || s.Content == "" && isTrue(env.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"))}
	key, protocol := env.ofSignal("PROTOCOL")
	if protocol != "" && protocol != "http/protobuf" {
		return target{}, fmt.Errorf("%w: %s is %q: troupe sends http/protobuf only; set OTEL_EXPORTER_OTLP_%s_PROTOCOL=http/protobuf, and the port for it (4318)", ErrSettings, key, protocol, of.name)
	}
	key, compression := env.ofSignal("COMPRESSION")
	if t.gzip = compression == "gzip"; !t.gzip && compression != "" && compression != "none" {
		return target{}, fmt.Errorf("%w: %s is gzip or none, not %q", ErrSettings, key, compression)
	}
	for _, read := range []func(*target) error{env.readHeaders, env.readTLS, env.readSizes, env.readResource, env.readSampler} {
		if err := read(&t); err != nil {
			return target{}, err
		}
	}
	return t, nil
}

// address returns the URL of the receiver; "" for none.
func (env environment) address(s Settings) (string, error) {
	variable := "OTEL_" + env.signal.name + "_EXPORTER"
	exporter := strings.TrimSpace(env.get(variable))
	// The setting is about spans first: it does not turn metrics on that the environment turns off.
	off := slices.Contains(env.signal.others, exporter) && (s.Endpoint == "" || env.signal.name == ofMetrics.name)
	if off || isTrue(env.get("OTEL_SDK_DISABLED")) {
		return "", nil
	}
	key, given := "--otlp-endpoint (otlp_endpoint)", s.Endpoint
	if given == "" {
		key, given = env.ofSignal("ENDPOINT")
	}
	if given == "" && exporter == "otlp" {
		given = defaultEndpoint
	}
	if given == "" {
		return "", nil
	}
	if s.Endpoint == "" && exporter != "" && exporter != "otlp" {
		return "", fmt.Errorf("%w: %s is otlp or %s, not %q", ErrSettings, variable, strings.Join(env.signal.others, " or "), exporter)
	}
	u, err := url.Parse(given)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%w: %s is the URL of an OTLP/HTTP receiver, such as %s, without a query, not %q", ErrSettings, key, defaultEndpoint, WithoutCredentials(given))
	}
	if key != "OTEL_EXPORTER_OTLP_"+env.signal.name+"_ENDPOINT" {
		base := strings.TrimSuffix(strings.TrimSuffix(u.Path, ofTraces.path), ofMetrics.path)
		u.Path = strings.TrimSuffix(base, "/") + env.signal.path
	}
	return u.String(), nil
}

// WithoutCredentials returns the address of a receiver for people: without its user, its password and its query, also
// if it is no URL.
func WithoutCredentials(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = "", address
	}
	rest, _, _ = strings.Cut(rest, "?")
	rest, _, _ = strings.Cut(rest, "#")
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if scheme == "" {
		return rest
	}
	return scheme + "://" + rest
}

// shownURL returns the address of the receiver for people.
func (t target) shownURL() string { return WithoutCredentials(t.url) }

// readHeaders reads NAME=VALUE,…; values are URL-encoded. The errors do not show them: they are credentials.
func (env environment) readHeaders(t *target) error {
	key, list := env.ofSignal("HEADERS")
	t.headers = http.Header{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || err != nil || name == "" || strings.ContainsFunc(name, isForbiddenInName) || strings.ContainsFunc(value, unicode.IsControl) {
			return fmt.Errorf("%w: %s is NAME=VALUE,NAME=VALUE with names of HTTP headers and URL-encoded values", ErrSettings, key)
		}
		t.headers.Set(name, value)
	}
	return nil
}

// isForbiddenInName reports whether the name of an HTTP header may not have a character.
func isForbiddenInName(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune("()<>@,;:\\\"/[]?={}", r)
}

// SecretsOf returns the credentials of the receiver that the environment holds, for masks.
func SecretsOf(getenv func(string) string) (list []string) {
	for _, of := range []signal{ofTraces, ofMetrics} {
		list = append(list, environment{getenv, of}.secrets()...)
	}
	return list
}

// secrets returns the credentials for the receiver of the signal.
func (env environment) secrets() (list []string) {
	var t target
	_, raw := env.ofSignal("HEADERS")
	for pair := range strings.SplitSeq(raw, ",") { // as the variable holds them: URL-encoded
		_, value, _ := strings.Cut(pair, "=")
		list = append(list, value)
	}
	if env.readHeaders(&t) != nil {
		return append(list, raw)
	}
	for _, values := range t.headers {
		for _, v := range values {
			_, token, _ := strings.Cut(v, " ") // of "Bearer TOKEN"
			list = append(list, v, token)
		}
	}
	return list
}

func (env environment) readTLS(t *target) error {
	key, file := env.ofSignal("CERTIFICATE")
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file != "" {
		raw, err := safefile.Read(file, certBytesMax)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrSettings, key, err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(raw) {
			return fmt.Errorf("%w: %s: %s holds no certificate", ErrSettings, key, file)
		}
	}
	key, cert := env.ofSignal("CLIENT_CERTIFICATE")
	_, private := env.ofSignal("CLIENT_KEY")
	if cert != "" || private != "" {
		pair, err := tls.LoadX509KeyPair(cert, private)
		if err != nil {
			return fmt.Errorf("%w: %s with OTEL_EXPORTER_OTLP_CLIENT_KEY: %w", ErrSettings, key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	t.tls = c
	return nil
}

func (env environment) readSizes(t *target) (err error) {
	whole := func(key, value string, fallback, most int) int {
		if value == "" || err != nil {
			return fallback
		}
		n, failed := strconv.Atoi(value)
		if failed != nil || n < 1 || n > most {
			err = fmt.Errorf("%w: %s is a whole number from 1 to %d, not %q", ErrSettings, key, most, value)
		}
		return n
	}
	read := func(key string, fallback, most int) int {
		return whole(key, strings.TrimSpace(env.get(key)), fallback, most)
	}
	const ms = int(durationMost / time.Millisecond)
	key, timeout := env.ofSignal("TIMEOUT")
	t.timeout = time.Duration(whole(key, timeout, int(timeoutDefault/time.Millisecond), ms)) * time.Millisecond
	t.flushEvery = time.Duration(read("OTEL_BSP_SCHEDULE_DELAY", int(flushDefault/time.Millisecond), ms)) * time.Millisecond
	t.metricsEvery = time.Duration(read("OTEL_METRIC_EXPORT_INTERVAL", int(metricsDefault/time.Millisecond), ms)) * time.Millisecond
	t.queueMax = read("OTEL_BSP_MAX_QUEUE_SIZE", queueDefault, queueMost)
	t.batchMax = read("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", batchDefault, batchMost)
	return err
}

// readResource reads what describes the node.
func (env environment) readResource(t *target) error {
	t.service = serviceDefault
	for pair := range strings.SplitSeq(env.get("OTEL_RESOURCE_ATTRIBUTES"), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		switch name = strings.TrimSpace(name); {
		case !ok || err != nil || name == "":
			return fmt.Errorf("%w: OTEL_RESOURCE_ATTRIBUTES is NAME=VALUE,NAME=VALUE with URL-encoded values, not %q", ErrSettings, pair)
		case name == "service.name":
			t.service = value
		case name != "service.version" && name != "service.instance.id":
			t.attributes = append(t.attributes, attribute{name, value})
		}
	}
	if name := strings.TrimSpace(env.get("OTEL_SERVICE_NAME")); name != "" {
		t.service = name
	}
	return nil
}
