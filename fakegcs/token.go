package fakegcs

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// tokenLifetime is the lifetime of an access token, as in the service.
const tokenLifetime = time.Hour

// tokens are the accepted bearer tokens.
type tokens struct {
	mu      sync.Mutex
	granted map[string]grant
}

// grant is what is known of a token.
type grant struct {
	end       time.Time
	principal string // who has it; "" if unknown
}

// AllowToken accepts a bearer token for one hour of the server's clock. See
// [Options.RequireToken].
func (s *Server) AllowToken(token string) { s.tokens.allow(token, "", s.now()) }

func (t *tokens) allow(token, principal string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.granted == nil {
		t.granted = map[string]grant{}
	}
	t.granted[token] = grant{now.Add(tokenLifetime), principal}
}

func (t *tokens) revoke(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.granted, token)
}

func (t *tokens) valid(token string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Before(t.granted[token].end)
}

// principal returns who makes a request, by its token; "" if that is unknown. A service account can sign
// its token itself: https://google.aip.dev/auth/4111.
func (t *tokens) principal(h http.Header) string {
	token := bearer(h)
	if token == "" {
		return ""
	}
	t.mu.Lock()
	g, issued := t.granted[token]
	t.mu.Unlock()
	if issued {
		return g.principal
	}
	return issuer(token)
}

// issuer returns the issuer that a JSON Web Token names, or "". The signature is not checked.
func issuer(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	_ = json.Unmarshal(text, &claims)
	return claims.Issuer
}

func bearer(h http.Header) string {
	kind, token, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") {
		return ""
	}
	return token
}

// NewCredentials returns the JSON of a credentials file. With it, clients of the server
// at url ("http://127.0.0.1:4443") get the access tokens for [Options.RequireToken]
// from that server. Google's Go libraries read it from the file that
// GOOGLE_APPLICATION_CREDENTIALS names, or accept it as an option.
func NewCredentials(url string) []byte {
	text, _ := json.MarshalIndent(map[string]string{ // strings only: never fails
		"type": "authorized_user", "client_id": "fakegcs", "client_secret": "fakegcs", "refresh_token": "fakegcs",
		"token_uri": strings.TrimSuffix(url, "/") + controlPrefix + "token",
	}, "", "  ")
	return append(text, '\n')
}

// issue returns a new token, as an OAuth 2.0 token endpoint. It checks no credentials. The form names the
// principal: the service account that signed the assertion, or the client of a user.
func (t *tokens) issue(form url.Values, now time.Time) *reply {
	token := "fake-" + base64.RawURLEncoding.EncodeToString(randomBytes(24))
	t.allow(token, cmp.Or(issuer(form.Get("assertion")), form.Get("client_id")), now)
	return jsonReply(http.StatusOK, map[string]any{
		"access_token": token, "token_type": "Bearer", "expires_in": int(tokenLifetime / time.Second),
	})
}
