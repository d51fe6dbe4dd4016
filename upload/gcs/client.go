package gcs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"gcsup/backoff"
	"gcsup/session"
	"gcsup/upload"
)

// Options of a [Client]. The zero value is good.
type Options struct {
	// Endpoint is the service's scheme and host, or host alone, for which https
	// is meant. A path is dropped. "": the emulator that STORAGE_EMULATOR_HOST
	// names, else https://storage.UNIVERSE_DOMAIN.
	Endpoint string

	// CredentialsFile names a JSON file to use in the place of Application
	// Default Credentials.
	CredentialsFile string

	// Anonymous sends no credentials.
	Anonymous bool

	// QuotaProject is billed for the requests' quota. "" is
	// GOOGLE_CLOUD_QUOTA_PROJECT, else the one in the credentials' file. It is
	// not who pays for a requester-pays bucket: see [upload.Spec].UserProject.
	QuotaProject string

	// UniverseDomain is "" for GOOGLE_CLOUD_UNIVERSE_DOMAIN, else
	// googleapis.com.
	UniverseDomain string

	// Header is sent with every request to the endpoint.
	Header http.Header

	// UserAgent goes in front of ours.
	UserAgent string

	// Transport carries the requests to the endpoint. nil is [NewTransport]. One
	// that records URLs, for tracing say, must be made with [session.Traced].
	Transport http.RoundTripper
}

// Client is a connection to Cloud Storage. It is safe for concurrent use.
type Client struct {
	http     *http.Client
	endpoint string

	once    sync.Once
	storage *storage.Client
	err     error
}

// New finds the endpoint and the credentials; nil options are good. Where there
// are no credentials, or they cannot be read, the error wraps
// [session.ErrCredentials]. Any other error is one of configuration.
func New(ctx context.Context, opts *Options) (*Client, error) {
	if opts == nil {
		opts = &Options{}
	}
	universe := first(opts.UniverseDomain, os.Getenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN"), defaultUniverse)
	endpoint, emulated, err := findEndpoint(opts.Endpoint, os.Getenv("STORAGE_EMULATOR_HOST"), universe)
	if err != nil {
		return nil, err
	}
	base := opts.Transport
	if base == nil {
		base = NewTransport()
	}
	rt := &decorated{base: base, endpoint: endpoint, header: opts.Header.Clone(), userAgent: strings.TrimSpace(opts.UserAgent + " " + userAgent)}
	client := &Client{endpoint: endpoint.String(), http: &http.Client{
		Transport: rt,
		// The service never redirects. What does must not be followed with a token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if emulated || opts.Anonymous {
		return client, nil
	}
	if !mayCarryCredentials(endpoint, opts) {
		if opts.CredentialsFile != "" {
			return nil, fmt.Errorf("credentials are not sent over plain HTTP to %s; use https, or no credentials file", endpoint.Host)
		}
		return client, nil
	}
	creds, err := findCredentials(ctx, opts.CredentialsFile, universe)
	if err != nil {
		return nil, err
	}
	client.http.Transport = &authorized{
		base: rt, creds: creds,
		quotaProject: first(opts.QuotaProject, os.Getenv("GOOGLE_CLOUD_QUOTA_PROJECT"), creds.quotaProject),
	}
	return client, nil
}

// Endpoint is the scheme and host that requests go to.
func (c *Client) Endpoint() string { return c.endpoint }

// HTTP is the client that makes the requests, with credentials. It follows no
// redirects, and refuses every other scheme and host than the endpoint's.
func (c *Client) HTTP() *http.Client { return c.http }

// Uploader returns an Uploader over this client. The Endpoint and Objects of
// the options are set; nil options are good.
func (c *Client) Uploader(opts *upload.Options) (*upload.Uploader, error) {
	var o upload.Options
	if opts != nil {
		o = *opts
	}
	o.Endpoint = c.endpoint
	o.Objects = c
	return upload.New(c.http, &o)
}

// Storage is the official library's client with the same endpoint and
// credentials, for what is not uploading.
func (c *Client) Storage(ctx context.Context) (*storage.Client, error) {
	c.once.Do(func() {
		// Made when first needed, because it is not cheap. It outlives ctx.
		c.storage, c.err = storage.NewClient(context.WithoutCancel(ctx),
			option.WithHTTPClient(c.http), option.WithEndpoint(c.endpoint+"/storage/v1/"), option.WithoutAuthentication())
	})
	return c.storage, c.err
}

// Close closes idle connections and the official library's client.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	c.once.Do(func() { c.err = errors.New("client is closed") })
	if c.storage != nil {
		return c.storage.Close()
	}
	return nil
}

const (
	defaultUniverse = "googleapis.com"
	userAgent       = "gcsup/0.1"
	errorLimit      = 64 << 10
)

// findEndpoint follows the official library: an explicit endpoint wins over
// the emulator's variable, and with that variable set there is never
// authentication. https://pkg.go.dev/cloud.google.com/go/storage#hdr-Storage_Emulator
func findEndpoint(explicit, emulatorHost, universe string) (u *url.URL, emulated bool, err error) {
	emulated = emulatorHost != ""
	raw, scheme, what := explicit, "https", "endpoint"
	switch {
	case explicit != "":
	case emulated:
		raw, scheme, what = emulatorHost, "http", "STORAGE_EMULATOR_HOST"
	default:
		raw = "storage." + universe
	}
	full := raw
	if !strings.Contains(full, "://") {
		full = scheme + "://" + full
	}
	u, err = url.Parse(full)
	if err != nil || u.User != nil {
		// What it is may be a secret.
		return nil, false, fmt.Errorf("%s: want HOST[:PORT], http://HOST[:PORT] or https://HOST[:PORT]", what)
	}
	// In the one way of writing it that the session's address has too.
	client, err := session.NewClient(nil, (&url.URL{Scheme: u.Scheme, Host: u.Host}).String())
	if err != nil && what != "endpoint" {
		err = fmt.Errorf("%s: %w", what, err)
	}
	if err != nil {
		return nil, false, err
	}
	u, err = url.Parse(client.Endpoint())
	return u, emulated, err
}

// mayCarryCredentials keeps tokens off the wire where anyone can read them.
func mayCarryCredentials(endpoint *url.URL, opts *Options) bool {
	if endpoint.Scheme == "https" {
		return true
	}
	host := endpoint.Hostname()
	ip := net.ParseIP(host)
	here := host == "localhost" || ip != nil && ip.IsLoopback()
	return here && (opts.CredentialsFile != "" || os.Getenv("GOOGLE_APPLICATION_CREDENTIALS") != "")
}

// NewTransport returns a transport made for uploads: HTTP/1.1, because one
// HTTP/2 connection's flow control would be shared by all uploads and bound
// them together (https://github.com/GoogleCloudPlatform/gcsfuse/pull/427), and
// no time limit on a reply, because the uploader watches for stalls itself.
// Proxies come from the environment.
func NewTransport() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		OnProxyConnectResponse: backoff.CheckProxy,
		DialContext:            (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		Protocols:              &protocols,
		MaxIdleConnsPerHost:    100,
		IdleConnTimeout:        90 * time.Second,
		WriteBufferSize:        64 << 10,
		DisableCompression:     true,
	}
}

// decorated adds what every request to the endpoint carries, and sends to no
// other scheme or host: a URL that someone planted, or a redirect, must not
// collect a token or a header that holds one.
type decorated struct {
	base      http.RoundTripper
	endpoint  *url.URL
	header    http.Header
	userAgent string
}

func (d *decorated) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := d.foreign(req); err != nil {
		closeBody(req)
		return nil, err
	}
	req = req.Clone(req.Context())
	for key, values := range d.header {
		req.Header[http.CanonicalHeaderKey(key)] = values
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", d.userAgent)
	}
	resp, err := d.base.RoundTrip(req)
	if err == nil && resp.StatusCode >= 400 {
		resp.Body = d.withoutSecrets(resp.Body, req.Header.Get("Authorization"))
	}
	return resp, err
}

// foreign returns an error unless the request goes to the endpoint.
func (d *decorated) foreign(req *http.Request) error {
	if req.URL.Scheme == d.endpoint.Scheme && req.URL.Host == d.endpoint.Host {
		return nil
	}
	return fmt.Errorf("%w: a request to %s://%s, the endpoint is %s", session.ErrForeignURI, req.URL.Scheme, req.URL.Host, d.endpoint)
}

// withoutSecrets takes the access token and the values of our header, which may
// be secrets, out of an error's text, in case that the server repeats what it
// was sent. In JSON only strings change, so that the rest can still be parsed.
func (d *decorated) withoutSecrets(body io.ReadCloser, authorization string) io.ReadCloser {
	_, token, _ := strings.Cut(authorization, " ")
	var pairs []string
	if token != "" {
		pairs = append(pairs, token, "[token]")
	}
	for _, values := range d.header {
		for _, v := range values {
			if v != "" {
				pairs = append(pairs, v, "[header]")
			}
		}
	}
	if len(pairs) == 0 {
		return body
	}
	data, _ := io.ReadAll(io.LimitReader(body, errorLimit)) // what is missing is not needed
	return struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(redact(data, strings.NewReplacer(pairs...))), body}
}

// redact replaces in the strings of a JSON text, or in the whole of another.
func redact(data []byte, secrets *strings.Replacer) []byte {
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	var v any
	if in.Decode(&v) != nil || in.More() {
		return []byte(secrets.Replace(string(data)))
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(redactStrings(v, secrets)) != nil {
		return nil
	}
	return out.Bytes()
}

func redactStrings(v any, secrets *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		if apiWords[v] {
			return v
		}
		return secrets.Replace(v)
	case []any:
		for i := range v {
			v[i] = redactStrings(v[i], secrets)
		}
	case map[string]any:
		redacted := make(map[string]any, len(v))
		for key, value := range v {
			if !apiWords[key] {
				key = secrets.Replace(key)
			}
			redacted[key] = redactStrings(value, secrets)
		}
		return redacted
	}
	return v
}

// apiWords are the keys and the reasons in the JSON of an error that decide what
// is done. They are public, and stay as they are even if a header has one as its
// value.
var apiWords = map[string]bool{
	"error": true, "code": true, "message": true, "errors": true, "reason": true, "details": true,
	"rateLimitExceeded": true, "userRateLimitExceeded": true, "dailyLimitExceeded": true, "quotaExceeded": true, "orgPolicyConstraintFailed": true,
}

func (d *decorated) CloseIdleConnections() {
	if c, ok := d.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// closeBody: a RoundTripper closes the body, also when it fails.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
