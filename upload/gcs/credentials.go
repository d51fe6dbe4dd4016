package gcs

import (
	"context"
	"encoding/json"
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

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"gcsup/backoff"
	"gcsup/session"
)

// Enough to create objects, to replace them and to look at them.
// https://cloud.google.com/storage/docs/authentication#oauth-scopes
const scope = "https://www.googleapis.com/auth/devstorage.read_write"

// tokenTimeout bounds the request for a token, which the watch over an upload
// cannot see.
const tokenTimeout = 30 * time.Second

// credentials gives tokens, and can be made to fetch a new one.
type credentials struct {
	find         func() (*google.Credentials, error)
	quotaProject string // named in the file
	service      *tokenTransport

	mu     sync.Mutex
	source oauth2.TokenSource // nil: they are to be found again
	valid  *oauth2.Token      // nil: the next token is a new one
	fetch  *fetch             // under way
}

// fetch is one request for a token, which all who need one wait for.
type fetch struct {
	done  chan struct{}
	token *oauth2.Token
	err   error
}

// findCredentials loads the credentials in a file, or the default ones.
func findCredentials(ctx context.Context, file, universe string) (*credentials, error) {
	// Tokens are refreshed long after ctx may have ended.
	service := &tokenTransport{}
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, &http.Client{
		Timeout:   tokenTimeout,
		Transport: service,
		// What is sent is a secret, and a redirect may lead to plain HTTP.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	find := func() (*google.Credentials, error) { return find(ctx, file) }
	found, err := find()
	if err != nil {
		return nil, err
	}
	if found.JSON != nil {
		theirs, err := found.GetUniverseDomain()
		if err == nil && theirs != universe {
			return nil, unusable("they belong to the universe %s, the endpoint to %s; set GOOGLE_CLOUD_UNIVERSE_DOMAIN", theirs, universe)
		}
	}
	var named struct {
		QuotaProject string `json:"quota_project_id"`
	}
	_ = json.Unmarshal(found.JSON, &named) // there is none without a file
	return &credentials{find: find, quotaProject: named.QuotaProject, service: service, source: found.TokenSource}, nil
}

// find looks in the places of Application Default Credentials, and opens their
// files itself: the library's errors do not tell a file that is no good from
// none. https://cloud.google.com/docs/authentication/application-default-credentials#order
func find(ctx context.Context, file string) (*google.Credentials, error) {
	params := google.CredentialsParams{Scopes: []string{scope}}
	named, advice := file, "name another file"
	if env := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS"); file == "" && env != "" {
		file, named, advice = env, env+", which GOOGLE_APPLICATION_CREDENTIALS names", "correct it, or unset it and run gcloud auth application-default login"
	}
	if file == "" {
		if file = gcloudFile(); file == "" {
			creds, err := google.FindDefaultCredentialsWithParams(ctx, params)
			if err != nil {
				return nil, noCredentials{errors.New("no credentials found: run gcloud auth application-default login, or let GOOGLE_APPLICATION_CREDENTIALS name a key file")}
			}
			return creds, nil
		}
		named, advice = file, "make it anew with gcloud auth application-default login"
	}
	data, err := os.ReadFile(file)
	if err != nil {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err // named says the path
		}
		return nil, unusable("%s: %w; %s", named, err, advice)
	}
	var kind struct {
		Type google.CredentialsType `json:"type"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, unusable("%s: not JSON; %s", named, advice) // the parser's message could quote a key
	}
	creds, err := google.CredentialsFromJSONWithTypeAndParams(ctx, data, kind.Type, params)
	if err != nil {
		return nil, unusable("%s: %w; %s", named, err, advice)
	}
	return creds, nil
}

// gcloudFile is the file that gcloud auth application-default login makes, ""
// if there is none.
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

// noCredentials is an error that wraps [session.ErrCredentials] without its
// text: that is for credentials that were shown to the service.
type noCredentials struct{ error }

func (e noCredentials) Unwrap() []error { return []error{e.error, session.ErrCredentials} }

func unusable(format string, args ...any) error {
	return noCredentials{fmt.Errorf("credentials cannot be used: "+format, args...)}
}

// token is one that has not expired and was not rejected. Fetching one does not
// end with ctx, because others may wait for the same; waiting does.
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
		// Found again from the start: the file may be a new one by now.
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

// rejected says that the service answered 401 to the token.
func (c *credentials) rejected(t *oauth2.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.valid == t { // else another one has been fetched already
		// The source would give the same one until it expires.
		c.source, c.valid = nil, nil
	}
}

// tokenOutcome is how a request to a token service ended.
type tokenOutcome struct {
	host   string // scheme and host; "" if there was no request
	status int
	err    error // why there was no reply, or not all of it
}

// tokenTransport makes the requests to token services. It keeps the outcome of
// the last one, which some sources of tokens turn into text.
type tokenTransport struct {
	mu   sync.Mutex
	last tokenOutcome
}

func (t *tokenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
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

func (t *tokenTransport) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = tokenOutcome{}
}

func (t *tokenTransport) outcome() tokenOutcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// tokenBody notes that a reply was cut.
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

// A TokenServiceError is a token service that was not reached, or that could not
// answer. It is no verdict on the credentials.
type TokenServiceError struct {
	Host string // scheme and host of the token service
	Err  error

	temporary bool
}

// Error names the token service and what went wrong there.
func (e *TokenServiceError) Error() string { return fmt.Sprintf("token service %s: %v", e.Host, e.Err) }

// Is reports whether the cause is target. There is no Unwrap: a name that does
// not resolve would be taken for the endpoint's.
func (e *TokenServiceError) Is(target error) bool { return errors.Is(e.Err, target) }

// Timeout reports whether waiting may help.
func (e *TokenServiceError) Timeout() bool { return e.temporary }

// Temporary is Timeout.
func (e *TokenServiceError) Temporary() bool { return e.temporary }

// tokenError tells a token service that has a problem from credentials that are
// no good.
func tokenError(err error, last tokenOutcome) error {
	if ue, ok := errors.AsType[*url.Error](err); ok && last.host == "" {
		// The metadata server of a machine, which is asked by another client.
		if u, perr := url.Parse(ue.URL); perr == nil {
			last = tokenOutcome{host: u.Scheme + "://" + u.Host, err: ue.Err}
		}
	}
	if last.err != nil {
		_, unresolved := errors.AsType[*net.DNSError](last.err)
		return &TokenServiceError{Host: last.host, Err: last.err, temporary: unresolved || backoff.Network(last.err) == backoff.Transient}
	}
	if re, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		// Its own text has the whole reply, on several lines.
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
	return noCredentials{fmt.Errorf("no access token can be had with them: %w", err)}
}

// authorized adds the token. base refuses every host but the endpoint's.
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
		// The uploader asks once more, and then with another token.
		a.creds.rejected(token)
	}
	return resp, err
}

func (a *authorized) CloseIdleConnections() { a.base.CloseIdleConnections() }
