package fakegcs

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
)

// tokenLifetime is the lifetime of an access token, as in the service.
const tokenLifetime = time.Hour

// tokens are the accepted bearer tokens, with their expiry.
type tokens struct {
	mu  sync.Mutex
	end map[string]time.Time
}

// AllowToken accepts a bearer token for one hour of the server's clock. See
// [Options.RequireToken].
func (s *Server) AllowToken(token string) { s.tokens.allow(token, s.now()) }

func (t *tokens) allow(token string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end == nil {
		t.end = map[string]time.Time{}
	}
	t.end[token] = now.Add(tokenLifetime)
}

func (t *tokens) revoke(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.end, token)
}

func (t *tokens) valid(token string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Before(t.end[token])
}

func bearer(h http.Header) string {
	kind, token, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") {
		return ""
	}
	return token
}

// NewCredentials returns the JSON of a credentials file for clients of the server at
// url ("http://127.0.0.1:4443"): they get the access tokens for
// [Options.RequireToken] from it. Google's Go libraries read it from the file that
// GOOGLE_APPLICATION_CREDENTIALS names, or accept it as an option.
func NewCredentials(url string) []byte {
	text, _ := json.MarshalIndent(map[string]string{ // strings only: never fails
		"type": "authorized_user", "client_id": "fakegcs", "client_secret": "fakegcs", "refresh_token": "fakegcs",
		"token_uri": strings.TrimSuffix(url, "/") + controlPrefix + "token",
	}, "", "  ")
	return append(text, '\n')
}

// issue returns a new token, as an OAuth 2.0 token endpoint. It checks no credentials.
func (t *tokens) issue(now time.Time) *reply {
	token := "fake-" + base64.RawURLEncoding.EncodeToString(randomBytes(24))
	t.allow(token, now)
	return jsonReply(http.StatusOK, map[string]any{
		"access_token": token, "token_type": "Bearer", "expires_in": int(tokenLifetime / time.Second),
	})
}
