package gcs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
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

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"gcsup/internal/congestion"
	"gcsup/internal/marks"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/internal/netconn"
)

// Options configure a [Client]. The zero value uses the defaults.
type Options struct {
	// Endpoint is the service's scheme and host. A host alone means https. The path
	// /storage/v1/ may follow, as for the official library; any other path is an error. The
	// default is STORAGE_EMULATOR_HOST without its path, else
	// https://storage.UNIVERSE_DOMAIN.
	Endpoint string

	// CredentialsFile names a JSON file to use instead of Application Default
	// Credentials.
	CredentialsFile string

	// ImpersonateServiceAccount is the email address of a service account. The requests carry
	// tokens of this account, which the credentials get from the IAM credentials API. These
	// credentials need the role roles/iam.serviceAccountTokenCreator on it. Delegates are service accounts
	// in between. In this chain, from the credentials through the delegates to
	// ImpersonateServiceAccount, each account needs that role on the next account. The quota
	// project of the credentials is used only for the requests to that API.
	ImpersonateServiceAccount string
	Delegates                 []string

	// Anonymous sends no credentials.
	Anonymous bool

	// QuotaProject is the project whose quota the requests use, and which is
	// billed for them (X-Goog-User-Project). The default, with credentials, is
	// GOOGLE_CLOUD_QUOTA_PROJECT, else the one in the credentials file. A
	// requester-pays bucket bills [upload.Spec].UserProject instead.
	QuotaProject string

	// UniverseDomain is the domain of the service. The default is
	// GOOGLE_CLOUD_UNIVERSE_DOMAIN, else googleapis.com.
	UniverseDomain string

	// Header is sent with every request to the endpoint.
	Header http.Header

	// UserAgent is put before the User-Agent of this package, which is gcsup/ and the version
	// of its module.
	UserAgent string

	// CongestionControl is that of [upload.TransportOptions]. A name that the system refuses is a
	// configuration error. It has no effect if Transport is set.
	CongestionControl string

	// Transport carries the requests to the endpoint. The default is
	// [upload.NewTransport] with the client certificate that New finds. A transport that
	// records URLs, such as one for tracing, must be made with [session.Traced].
	Transport http.RoundTripper
}

// Client is a connection to Cloud Storage. It is safe for concurrent use.
type Client struct {
	http      *http.Client
	endpoint  string
	anonymous string // see Anonymous
	certified bool   // see ClientCertificate

	once    sync.Once
	storage *storage.Client
	err     error
}

// New finds the endpoint and the credentials. A nil opts uses the defaults. If
// there are no credentials, or they cannot be read, the error wraps
// [session.ErrCredentials]. If ctx is done first, the error is its cause. Any other
// error is a configuration error.
//
// Requests carry no credentials if [Options].Anonymous is set, if the endpoint is that of
// STORAGE_EMULATOR_HOST, or if it is plain HTTP. Exception: over plain HTTP to this machine,
// the credentials are used if CredentialsFile or GOOGLE_APPLICATION_CREDENTIALS names a
// file. If requests carry no credentials, New looks for none, and [Client.Anonymous] returns
// the reason.
//
// The client certificate for mutual TLS is that of the official library. The file is
// GOOGLE_API_CERTIFICATE_CONFIG, else certificate_config.json in the directory of gcloud. It
// names the files of a certificate and its key, or a helper that signs.
// GOOGLE_API_USE_CLIENT_CERTIFICATE=true also selects the endpoint
// https://storage.mtls.googleapis.com, and false disables the certificate.
// GOOGLE_API_USE_MTLS_ENDPOINT is always, never or auto. If Options.Transport is set, New
// looks for no certificate.
func New(ctx context.Context, opts *Options) (*Client, error) {
	if opts == nil {
		opts = &Options{}
	}
	universe := cmp.Or(opts.UniverseDomain, os.Getenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN"), defaultUniverse)
	endpoint, emulator, certificate, err := findServer(opts, universe)
	if err != nil {
		return nil, err
	}
	base := opts.Transport
	if base == nil {
		if err := congestion.Check(opts.CongestionControl); err != nil {
			return nil, err
		}
		transport := upload.NewTransport(&upload.TransportOptions{CongestionControl: opts.CongestionControl})
		if certificate != nil {
			transport.TLSClientConfig = &tls.Config{GetClientCertificate: certificate}
		}
		transport.DialTLSContext = netconn.DialTLS(transport)
		base = transport
	}
	rt := &decorated{base: base, endpoint: endpoint, header: opts.Header.Clone(), project: opts.QuotaProject, userAgent: strings.TrimSpace(opts.UserAgent + " " + product())}
	client := &Client{endpoint: endpoint.String(), certified: certificate != nil, http: &http.Client{
		Transport: rt,
		// The service never redirects. A redirect of another server must not get a
		// token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if client.anonymous = whyAnonymous(endpoint, emulator, opts); client.anonymous != "" {
		if (opts.CredentialsFile != "" || opts.ImpersonateServiceAccount != "") && !opts.Anonymous && !emulator {
			return nil, fmt.Errorf("credentials are not sent over plain HTTP to %s; use https, or name no credentials", endpoint.Host)
		}
		rt.anonymous = client.anonymous
		return client, nil
	}
	creds, err := findCredentials(ctx, opts, universe)
	if err != nil {
		return nil, err
	}
	client.http.Transport = &authorized{
		base: rt, creds: creds,
		quotaProject: cmp.Or(opts.QuotaProject, os.Getenv("GOOGLE_CLOUD_QUOTA_PROJECT"), creds.quotaProject),
	}
	return client, nil
}

// NewUploader returns an Uploader for the endpoint and the credentials that [New]
// finds. Programs that need the client as well call New and [Client.Uploader]. A
// nil opts uses the defaults.
func NewUploader(ctx context.Context, opts *upload.Options) (*upload.Uploader, error) {
	client, err := New(ctx, nil)
	if err != nil {
		return nil, err
	}
	return client.Uploader(opts)
}

// Endpoint returns the scheme and host that requests go to.
func (c *Client) Endpoint() string { return c.endpoint }

// Anonymous returns the reason why requests carry no credentials, such as
// "STORAGE_EMULATOR_HOST is set". It is "" if they do. If the service refuses such a
// request with 401, the error wraps a [session.AnonymousError] with the reason.
func (c *Client) Anonymous() string { return c.anonymous }

// ClientCertificate reports whether the client has a certificate that it shows to a server
// that asks for one. It is false if Options.Transport was set.
func (c *Client) ClientCertificate() bool { return c.certified }

// HTTP returns the client that makes the requests, with credentials. It follows
// no redirects, and refuses requests to another scheme or host than the
// endpoint's. Unless Options.Transport was set, the field TLS of its responses is nil.
func (c *Client) HTTP() *http.Client { return c.http }

// Uploader returns an Uploader that uses this client. It replaces the Endpoint of opts. A
// nil opts uses the defaults.
func (c *Client) Uploader(opts *upload.Options) (*upload.Uploader, error) {
	var o upload.Options
	if opts != nil {
		o = *opts
	}
	o.Endpoint = c.endpoint
	return upload.New(c.http, &o)
}

// Storage returns a client of the official library with the same endpoint and
// credentials, for operations other than uploads. Close closes it.
func (c *Client) Storage(ctx context.Context) (*storage.Client, error) {
	c.once.Do(func() {
		// It is made on first use, because that is not cheap. It outlives ctx.
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
	errorLimit      = 64 << 10
)

// findServer returns the endpoint, whether it is that of STORAGE_EMULATOR_HOST, and the
// certificate for it or nil.
func findServer(opts *Options, universe string) (u *url.URL, emulator bool, certificate certificateSource, err error) {
	host := os.Getenv("STORAGE_EMULATOR_HOST")
	named := opts.Endpoint != "" || host != ""
	if opts.Transport == nil && (opts.Endpoint != "" || host == "") && !strings.HasPrefix(opts.Endpoint, "http://") {
		if certificate, err = findCertificate(universe); err != nil {
			return nil, false, nil, err
		}
	}
	standard := "storage." + universe
	if !named {
		if standard, err = standardHost(universe, certificate != nil); err != nil {
			return nil, false, nil, err
		}
	}
	u, emulator, err = findEndpoint(opts.Endpoint, host, standard)
	return u, emulator, certificate, err
}

// findEndpoint returns the endpoint, and whether it is that of STORAGE_EMULATOR_HOST. standard
// is the host if neither is set. As
// in the official library, an explicit endpoint takes precedence over that variable.
// There, the variable then still disables credentials. Here it has no effect: it
// describes another server.
// https://pkg.go.dev/cloud.google.com/go/storage#hdr-Storage_Emulator
func findEndpoint(explicit, emulatorHost, standard string) (u *url.URL, emulator bool, err error) {
	raw, scheme, what := explicit, "https", "endpoint"
	switch {
	case explicit != "":
	case emulatorHost != "":
		emulator = true
		raw, scheme, what = emulatorHost, "http", "STORAGE_EMULATOR_HOST"
	default:
		raw = standard
	}
	full := raw
	if !strings.Contains(full, "://") {
		full = scheme + "://" + full
	}
	u, err = url.Parse(full)
	if err != nil || u.User != nil {
		// The value may contain a secret, so the error does not.
		return nil, false, fmt.Errorf("%s: want HOST[:PORT], http://HOST[:PORT] or https://HOST[:PORT]", what)
	}
	if path := strings.Trim(u.Path, "/"); !emulator && path != "" && path != "storage/v1" || u.RawQuery != "" || u.Fragment != "" {
		return nil, false, fmt.Errorf("%s: want %s://%s without a path: the paths of Cloud Storage begin at the root of a host; a reverse proxy needs a host name or a port for it", what, u.Scheme, u.Host)
	}
	// Use the canonical form, which session compares session URIs with.
	client, err := session.NewClient(nil, (&url.URL{Scheme: u.Scheme, Host: u.Host}).String())
	if err != nil && what != "endpoint" {
		err = fmt.Errorf("%s: %w", what, err)
	}
	if err != nil {
		return nil, false, err
	}
	u, err = url.Parse(client.Endpoint())
	return u, emulator, err
}

// whyAnonymous returns the reason why no credentials are sent to endpoint, or "" if they
// are: over https, or to this machine if a credentials file is named. emulator reports
// whether the endpoint is that of STORAGE_EMULATOR_HOST.
func whyAnonymous(endpoint *url.URL, emulator bool, opts *Options) string {
	host := endpoint.Hostname()
	ip := net.ParseIP(host)
	here := host == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case opts.Anonymous:
		return "the client is anonymous"
	case emulator:
		return "STORAGE_EMULATOR_HOST is set"
	case endpoint.Scheme == "https":
	case !here:
		return "the endpoint is plain HTTP on another machine"
	case opts.CredentialsFile == "" && os.Getenv("GOOGLE_APPLICATION_CREDENTIALS") == "":
		return "the endpoint is plain HTTP, and GOOGLE_APPLICATION_CREDENTIALS names no file"
	}
	return ""
}

// decorated is a RoundTripper that adds the headers of every request. It refuses
// requests to another scheme or host than that of the endpoint, so that a planted URL
// or a redirect never gets a token, or a header that contains one.
type decorated struct {
	base      http.RoundTripper
	endpoint  *url.URL
	header    http.Header
	project   string // for X-Goog-User-Project; "" leaves it to authorized
	userAgent string
	anonymous string // why requests carry no credentials; "" if they do
}

func (d *decorated) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := d.foreign(req); err != nil {
		closeBody(req)
		return nil, err
	}
	req = req.WithContext(req.Context()) // a copy, of which only the header changes
	req.Header = req.Header.Clone()
	for key, values := range d.header {
		req.Header[http.CanonicalHeaderKey(key)] = values
	}
	if d.project != "" {
		req.Header.Set("X-Goog-User-Project", d.project)
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", d.userAgent)
	}
	resp, err := d.base.RoundTrip(req)
	if err == nil && resp.StatusCode >= 400 {
		resp.Body = d.withoutSecrets(resp.Body, req.Header)
	}
	if err == nil && d.anonymous != "" {
		marks.Anonymous(resp, d.anonymous)
	}
	return resp, err
}

// foreign returns an error unless the request goes to the endpoint.
func (d *decorated) foreign(req *http.Request) error {
	if req.URL.Scheme == d.endpoint.Scheme && req.URL.Host == d.endpoint.Host {
		return nil
	}
	return fmt.Errorf("%w: a request to %s://%s, the endpoint is %s", session.ErrURIMismatch, req.URL.Scheme, req.URL.Host, d.endpoint)
}

// withoutSecrets replaces the access token, the encryption key and the values of
// Options.Header in the body of an error, because a server may repeat the request. In
// JSON it changes only strings, so that the body can still be parsed.
func (d *decorated) withoutSecrets(body io.ReadCloser, sent http.Header) io.ReadCloser {
	_, token, _ := strings.Cut(sent.Get("Authorization"), " ")
	var pairs []string
	if token != "" {
		pairs = append(pairs, token, "[token]")
	}
	if key := sent.Get("X-Goog-Encryption-Key"); key != "" {
		pairs = append(pairs, key, "[encryption key]")
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
	data, _ := io.ReadAll(io.LimitReader(body, errorLimit)) // a truncated body is enough
	return struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(redact(data, strings.NewReplacer(pairs...))), body}
}

// redact replaces secrets in the strings of a JSON text, or in the whole of
// another text.
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

// apiWords are the keys and reasons in a JSON error on which decisions depend.
// They are public, and are kept even if a header has one as its value.
var apiWords = map[string]bool{
	"error": true, "code": true, "message": true, "errors": true, "reason": true, "details": true,
	"rateLimitExceeded": true, "userRateLimitExceeded": true, "dailyLimitExceeded": true, "quotaExceeded": true, "orgPolicyConstraintFailed": true,
}

func (d *decorated) CloseIdleConnections() {
	if c, ok := d.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// closeBody closes the request's body, as a RoundTripper must even if it fails.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
