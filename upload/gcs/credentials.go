package gcs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
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
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, &http.Client{Timeout: tokenTimeout})
	params := google.CredentialsParams{Scopes: []string{scope}}
	find := func() (*google.Credentials, error) {
		if file == "" {
			return google.FindDefaultCredentialsWithParams(ctx, params)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var kind struct {
			Type google.CredentialsType `json:"type"`
		}
		if err := json.Unmarshal(data, &kind); err != nil {
			return nil, fmt.Errorf("%s is not JSON", file) // the parser's message could quote a key
		}
		return google.CredentialsFromJSONWithTypeAndParams(ctx, data, kind.Type, params)
	}
	found, err := find()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", session.ErrCredentials, err)
	}
	if found.JSON != nil {
		theirs, err := found.GetUniverseDomain()
		if err == nil && theirs != universe {
			return nil, fmt.Errorf("%w: they belong to the universe %s, the endpoint to %s; set GOOGLE_CLOUD_UNIVERSE_DOMAIN", session.ErrCredentials, theirs, universe)
		}
	}
	var named struct {
		QuotaProject string `json:"quota_project_id"`
	}
	_ = json.Unmarshal(found.JSON, &named) // there is none without a file
	return &credentials{find: find, quotaProject: named.QuotaProject, source: found.TokenSource}, nil
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
			f.err = fmt.Errorf("%w: %w", session.ErrCredentials, err)
		} else {
			source = found.TokenSource
		}
	}
	if source != nil {
		if f.token, f.err = source.Token(); f.err != nil {
			f.err = tokenError(f.err)
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

// tokenError tells a token service that is down, for which waiting helps, from
// credentials that are no good.
func tokenError(err error) error {
	if re, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		// Its own text has the whole reply, on several lines.
		status := 0
		if re.Response != nil {
			status = re.Response.StatusCode
		}
		why := strings.TrimSpace(re.ErrorCode + " " + re.ErrorDescription)
		err = fmt.Errorf("cannot get a token: status %d %s", status, why)
		if backoff.Status(status, "") == backoff.Transient {
			return unavailable{err}
		}
	} else if backoff.Network(err) == backoff.Transient {
		return err
	}
	return fmt.Errorf("%w: %w", session.ErrCredentials, err)
}

// unavailable is an error that waiting may cure. It is a net.Error, which is
// how the classification knows.
type unavailable struct{ error }

func (u unavailable) Unwrap() error   { return u.error }
func (u unavailable) Timeout() bool   { return true }
func (u unavailable) Temporary() bool { return true }

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
