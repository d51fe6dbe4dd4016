package gcs

import (
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/compute/metadata"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"gcsup/backoff"
	"gcsup/internal/marks"
	"gcsup/session"
)

// scope permits creating and replacing objects, and reading their metadata.
// https://cloud.google.com/storage/docs/authentication#oauth-scopes
const scope = "https://www.googleapis.com/auth/devstorage.read_write"

// tokenTimeout bounds the request for a token, which the stall timeout of an
// upload does not cover.
const tokenTimeout = 30 * time.Second

// credentials returns access tokens. After rejected it fetches a new one.
type credentials struct {
	find         func() (*google.Credentials, error)
	machine      *machineScopes // nil unless the metadata server gives the tokens
	quotaProject string         // from the credentials file
	service      *tokenTransport

	mu     sync.Mutex
	source oauth2.TokenSource // nil if the credentials must be found again
	valid  *oauth2.Token      // nil if the next token must be fetched
	fetch  *fetch             // under way, or nil
}

// fetch is one request for a token. All callers that need a token share it.
type fetch struct {
	done  chan struct{}
	token *oauth2.Token
	err   error
}

// findCredentials loads the credentials in opts.CredentialsFile, or the Application
// Default Credentials. With them it impersonates a service account, if opts has one.
func findCredentials(ctx context.Context, opts *Options, universe string) (*credentials, error) {
	// Tokens are refreshed even after ctx is done.
	service := &tokenTransport{lastOutcome: &lastOutcome{}}
	client := &http.Client{
		Timeout:   tokenTimeout,
		Transport: service,
		// The request holds a secret, and a redirect may lead to plain HTTP.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	lasting := context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, client)
	account := opts.ImpersonateServiceAccount
	find := func() (*google.Credentials, error) {
		if account == "" {
			return find(lasting, opts.CredentialsFile, scope)
		}
		found, err := find(lasting, opts.CredentialsFile, iamScope)
		if err == nil {
			found.TokenSource = &impersonation{
				ctx: lasting, client: client, base: found.TokenSource, universe: universe,
				account: account, delegates: opts.Delegates, quotaProject: quotaProject(found),
			}
		}
		return found, err
	}
	var found *google.Credentials
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		found, err = find()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		// The library asks the metadata server without a context, for half a minute if
		// there is no answer.
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	if found.JSON != nil {
		theirs, err := found.GetUniverseDomain()
		if err == nil && theirs != universe {
			return nil, unusable("their universe domain is %s, that of the endpoint is %s; set GOOGLE_CLOUD_UNIVERSE_DOMAIN", theirs, universe)
		}
	}
	c := &credentials{find: find, service: service, source: found.TokenSource}
	if account == "" {
		c.quotaProject = quotaProject(found)
	}
	if found.JSON == nil && account == "" {
		c.machine = &machineScopes{}
	}
	return c, nil
}

// quotaProject returns the quota project in a credentials file. Without a file there is none.
func quotaProject(found *google.Credentials) string {
	var named struct {
		QuotaProject string `json:"quota_project_id"`
	}
	_ = json.Unmarshal(found.JSON, &named)
	return named.QuotaProject
}

// find searches for Application Default Credentials in their documented order
// (https://cloud.google.com/docs/authentication/application-default-credentials#order).
// It opens the files itself, because the library's errors do not distinguish a bad
// file from a missing one.
func find(ctx context.Context, file, scope string) (*google.Credentials, error) {
	params := google.CredentialsParams{Scopes: []string{scope}}
	named, advice := file, "name another file"
	if env := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS"); file == "" && env != "" {
		file, named, advice = env, env+", from GOOGLE_APPLICATION_CREDENTIALS", "correct it, or unset it and run gcloud auth application-default login"
	}
	if file == "" {
		if file = gcloudFile(); file == "" {
			creds, err := google.FindDefaultCredentialsWithParams(ctx, params)
			if err != nil {
				return nil, noCredentials{errors.New("no credentials found: run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS to a key file")}
			}
			return creds, nil
		}
		named, advice = file, "create it again with gcloud auth application-default login"
	}
	if strings.ContainsAny(file, "{\n") && !exists(file) {
		return nil, unusable("the value is a key, and not the name of a file with one; %s", advice) // it is not printed
	}
	data, err := os.ReadFile(file)
	if err != nil {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err // named contains the path
		}
		return nil, unusable("%s: %w; %s", named, err, advice)
	}
	var kind struct {
		Type       google.CredentialsType `json:"type"`
		PrivateKey string                 `json:"private_key"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, unusable("%s: not JSON; %s", named, advice) // the parser's message could contain a key
	}
	if kind.Type == google.ServiceAccount && !validKey(kind.PrivateKey) {
		return nil, unusable("%s: private_key is not an RSA key in PEM; %s", named, advice) // the library's message is a dump of ASN.1
	}
	var creds *google.Credentials
	if f := certificateFile(data); f != nil && kind.Type == google.ExternalAccount {
		creds, err = f.credentials(ctx, data, scope)
	} else {
		creds, err = google.CredentialsFromJSONWithTypeAndParams(ctx, data, kind.Type, params)
	}
	if err != nil {
		return nil, unusable("%s: %w; %s", named, err, advice)
	}
	return creds, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// validKey reports whether text is a private key that can sign the tokens of a service account.
func validKey(text string) bool {
	data := []byte(text)
	if block, _ := pem.Decode(data); block != nil {
		data = block.Bytes
	}
	if key, err := x509.ParsePKCS8PrivateKey(data); err == nil {
		_, ok := key.(*rsa.PrivateKey)
		return ok
	}
	_, err := x509.ParsePKCS1PrivateKey(data)
	return err == nil
}

// gcloudFile returns the file that gcloud auth application-default login writes,
// or "" if it does not exist.
func gcloudFile() string {
	dir := os.Getenv("APPDATA")
	if runtime.GOOS != "windows" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	path := filepath.Join(dir, "gcloud", "application_default_credentials.json")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return path
}

// noCredentials is an error that wraps [session.ErrCredentials] without its text,
// because the service did not reject these credentials.
type noCredentials struct{ error }

func (e noCredentials) Unwrap() []error { return []error{e.error, session.ErrCredentials} }

func unusable(format string, args ...any) error {
	return noCredentials{fmt.Errorf("credentials cannot be used: "+format, args...)}
}

// token returns a token that has not expired and was not rejected. It returns when
// ctx is done. The fetch then continues, because other callers may wait for it.
func (c *credentials) token(ctx context.Context) (*oauth2.Token, error) {
	c.mu.Lock()
	if t := c.valid; t.Valid() {
		c.mu.Unlock()
		return t, nil
	}
	f := c.fetch
	if f == nil {
		f = &fetch{done: make(chan struct{})}
		c.fetch = f
		go c.run(f)
	}
	c.mu.Unlock()
	select {
	case <-f.done:
		return f.token, f.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c *credentials) run(f *fetch) {
	defer close(f.done)
	c.mu.Lock()
	source := c.source
	c.mu.Unlock()
	if source == nil {
		// Find the credentials again: the file may have changed.
		found, err := c.find()
		if err != nil {
			f.err = err
		} else {
			source = found.TokenSource
		}
	}
	if source != nil {
		c.service.forget()
		if f.token, f.err = source.Token(); f.err != nil {
			f.err = tokenError(f.err, c.service.outcome())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.source, c.valid, c.fetch = source, f.token, nil
}

// rejected records that the service answered 401 to the token.
func (c *credentials) rejected(t *oauth2.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.valid == t { // otherwise a newer token was fetched
		// The source would return the same token until it expires.
		c.source, c.valid = nil, nil
	}
}

// tokenOutcome is the outcome of a request to a token service.
type tokenOutcome struct {
	host   string // scheme and host; "" if there was no request
	status int
	err    error // why there was no complete reply
}

// tokenTransport makes the requests to token services. It keeps the outcome of
// the last request, because some token sources return errors as text only.
type tokenTransport struct {
	base http.RoundTripper // nil for the default transport
	*lastOutcome
}

type lastOutcome struct {
	mu   sync.Mutex
	last tokenOutcome
}

// with returns a transport whose connections show a client certificate. Each request has a connection of its
// own, because the next certificate may be another one.
func (t *tokenTransport) with(certificate certificateSource) *tokenTransport {
	base := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if usual, ok := http.DefaultTransport.(*http.Transport); ok { // a program may have wrapped it
		base = usual.Clone()
	}
	if base.TLSClientConfig == nil {
		base.TLSClientConfig = &tls.Config{}
	}
	base.TLSClientConfig.GetClientCertificate = certificate
	base.DisableKeepAlives = true
	return &tokenTransport{base, t.lastOutcome}
}

func (t *tokenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := t.base
	if base == nil {
		base = http.DefaultTransport
	}
	resp, err := base.RoundTrip(req)
	o := tokenOutcome{host: req.URL.Scheme + "://" + req.URL.Host, err: err}
	if err == nil {
		o.status = resp.StatusCode
		resp.Body = &tokenBody{resp.Body, t}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = o
	return resp, err
}

func (t *lastOutcome) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = tokenOutcome{}
}

func (t *lastOutcome) outcome() tokenOutcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// tokenBody records that a reply was cut.
type tokenBody struct {
	io.ReadCloser
	t *tokenTransport
}

func (b *tokenBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.t.mu.Lock()
		defer b.t.mu.Unlock()
		b.t.last.err = err
	}
	return n, err
}

// TokenServiceError reports a token service that was not reached, or that could
// not answer. The credentials may be valid.
type TokenServiceError struct {
	Host string // scheme and host of the token service
	Err  error

	temporary bool
}

// TokenService returns Host. With errors.As and an interface that has this method, a
// program finds the error without linking this package.
func (e *TokenServiceError) TokenService() string { return e.Host }

// Error returns the token service's host and the cause.
func (e *TokenServiceError) Error() string { return fmt.Sprintf("token service %s: %v", e.Host, e.Err) }

// Is reports whether the cause matches target. TokenServiceError has no Unwrap: callers
// would blame the endpoint for a *net.DNSError in it.
func (e *TokenServiceError) Is(target error) bool { return errors.Is(e.Err, target) }

// Timeout reports whether a retry may succeed.
func (e *TokenServiceError) Timeout() bool { return e.temporary }

// Temporary reports the same as Timeout.
func (e *TokenServiceError) Temporary() bool { return e.temporary }

// tokenError returns a [TokenServiceError] for a token service that failed, and an
// error that wraps [session.ErrCredentials] for credentials that it refused.
func tokenError(err error, last tokenOutcome) error {
	if last.host == "" {
		last = metadataOutcome(err)
	}
	if last.err != nil {
		_, unresolved := errors.AsType[*net.DNSError](last.err)
		return &TokenServiceError{Host: last.host, Err: last.err, temporary: unresolved || backoff.Network(last.err) == backoff.Transient}
	}
	if re, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		// The error's own text contains the whole reply, on several lines.
		why := strings.TrimSpace(re.ErrorCode + " " + re.ErrorDescription)
		err = fmt.Errorf("it answered %d %s", last.status, why)
	}
	temporary := backoff.Status(last.status, "") == backoff.Transient
	if temporary || last.status >= 300 && last.status < 400 {
		if temporary {
			err = fmt.Errorf("it answered %d %s", last.status, http.StatusText(last.status))
		}
		return &TokenServiceError{Host: last.host, Err: err, temporary: temporary}
	}
	if last.status != 0 {
		err = fmt.Errorf("token service %s: %w", last.host, err)
	}
	return noCredentials{fmt.Errorf("they get no access token: %w", err)}
}

// metadataOutcome returns the outcome of a request to the metadata server, for which
// the library uses another HTTP client. It is zero if err is another error.
func metadataOutcome(err error) tokenOutcome {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		if u, perr := url.Parse(ue.URL); perr == nil {
			return tokenOutcome{host: u.Scheme + "://" + u.Host, err: ue.Err}
		}
	}
	if refused, ok := errors.AsType[*metadata.Error](err); ok {
		host := cmp.Or(os.Getenv("GCE_METADATA_HOST"), "169.254.169.254")
		return tokenOutcome{host: "http://" + host, status: refused.Code}
	}
	return tokenOutcome{}
}

// authorized is a RoundTripper that adds the access token. base refuses requests
// to other hosts than the endpoint.
type authorized struct {
	base         *decorated
	creds        *credentials
	quotaProject string
}

func (a *authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := a.creds.token(req.Context())
	if err != nil {
		closeBody(req)
		return nil, err
	}
	req = req.Clone(req.Context())
	token.SetAuthHeader(req)
	if a.quotaProject != "" {
		req.Header.Set("X-Goog-User-Project", a.quotaProject)
	}
	resp, err := a.base.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		// The uploader retries once. The retry gets another token.
		a.creds.rejected(token)
	}
	if err == nil && resp.StatusCode == http.StatusForbidden && a.creds.machine != nil {
		if scopes := a.creds.machine.tooFew(req.Context()); scopes != nil {
			marks.Scopes(resp, scopes)
		}
	}
	return resp, err
}

func (a *authorized) CloseIdleConnections() { a.base.CloseIdleConnections() }
