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
	find func() (*google.Credentials, error)

	mu      sync.Mutex
	current *google.Credentials
	source  oauth2.TokenSource // nil: the next token is a new one
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
	return &credentials{find: find, current: found, source: found.TokenSource}, nil
}

// token is one that has not expired and was not rejected.
func (c *credentials) token() (*oauth2.Token, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.source == nil {
		// Found again from the start: the file may be a new one by now.
		found, err := c.find()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", session.ErrCredentials, err)
		}
		c.current, c.source = found, found.TokenSource
	}
	t, err := c.source.Token()
	if err != nil {
		return nil, tokenError(err)
	}
	return t, nil
}

// rejected says that the service answered 401 to the token.
func (c *credentials) rejected(t *oauth2.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.source == nil {
		return
	}
	if now, err := c.source.Token(); err != nil || now.AccessToken == t.AccessToken {
		c.source = nil
	}
}

func (c *credentials) quotaProject() string {
	var file struct {
		QuotaProject string `json:"quota_project_id"`
	}
	_ = json.Unmarshal(c.current.JSON, &file) // there is none without a file
	return file.QuotaProject
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
	token, err := a.creds.token()
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
