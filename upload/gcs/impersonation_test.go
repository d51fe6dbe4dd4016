package gcs_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/gcs"
)

// iam is a server of the IAM credentials API.
type iam struct {
	t        *testing.T
	requests []string
	bodies   []map[string]any
	project  string // of the last request
	reply    func() (status int, body string)
}

func (s *iam) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if got := r.Header.Get("Authorization"); !strings.HasPrefix(got, "Bearer ya29.token-") {
		s.t.Errorf("authorization %q, want the token of the base credentials", got)
	}
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		s.t.Error(err)
	}
	s.requests, s.bodies, s.project = append(s.requests, r.Host+r.URL.Path), append(s.bodies, body), r.Header.Get("X-Goog-User-Project")
	status, text := s.reply()
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

// startIAM starts the server, and makes the default transport connect to it for all hosts with https.
func startIAM(t *testing.T, reply func() (int, string)) *iam {
	t.Helper()
	s := &iam{t: t, reply: reply}
	srv := httptest.NewTLSServer(s)
	t.Cleanup(srv.Close)
	old := http.DefaultTransport
	tr := old.(*http.Transport).Clone()
	tr.DialTLSContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		pool := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		return (&tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: "example.com"}}).DialContext(ctx, "tcp", srv.Listener.Addr().String())
	}
	http.DefaultTransport = tr
	t.Cleanup(func() {
		http.DefaultTransport = old
		tr.CloseIdleConnections()
	})
	return s
}

// TestImpersonation checks that uploads carry the token of the service account, and that a rejected
// token is replaced.
func TestImpersonation(t *testing.T) {
	srv, endpoint := emulator(t, &fakegcs.Options{RequireToken: true})
	n := 0
	api := startIAM(t, func() (int, string) {
		if n++; n > 1 { // the service rejects the first one
			srv.AllowToken(fmt.Sprint("token-", n))
		}
		return 200, fmt.Sprintf(`{"accessToken":"token-%d","expireTime":%q}`, n, time.Now().Add(time.Hour).Format(time.RFC3339))
	})
	c := newClient(t, &gcs.Options{
		Endpoint: endpoint, CredentialsFile: credentialsFile(t, &tokens{}),
		ImpersonateServiceAccount: "backup@p.iam.gserviceaccount.com", Delegates: []string{"a@p.iam.gserviceaccount.com"},
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if got := r.Header.Get("X-Goog-User-Project"); got != "" {
				t.Errorf("quota project %q of a request to the service, want none", got)
			}
			return upload.NewTransport(nil).RoundTrip(r)
		}),
	})
	for range 2 {
		wantPut(t, srv, uploader(t, c, nil), 100)
	}
	const want = "iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/backup@p.iam.gserviceaccount.com:generateAccessToken"
	if !slices.Equal(api.requests, []string{want, want}) {
		t.Errorf("requests %q, want two to %s", api.requests, want)
	}
	body := fmt.Sprint(api.bodies[0])
	if body != "map[delegates:[projects/-/serviceAccounts/a@p.iam.gserviceaccount.com] lifetime:3600s scope:[https://www.googleapis.com/auth/devstorage.read_write]]" {
		t.Errorf("request %s", body)
	}
	if api.project != "quota-from-file" {
		t.Errorf("quota project %q of the request for a token, want that of the user", api.project)
	}
}

// TestImpersonationFails checks the errors of the IAM credentials API.
func TestImpersonationFails(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		want   error
		text   string
	}{
		{403, "{\"error\":{\"code\":403,\"message\":\"Permission 'iam.serviceAccounts.getAccessToken'\\n denied.\"}}", session.ErrCredentials,
			"they get no access token: token service https://iamcredentials.googleapis.com: it answered 403 Forbidden: Permission 'iam.serviceAccounts.getAccessToken' denied; the role roles/iam.serviceAccountTokenCreator on x@p.iam.gserviceaccount.com permits impersonation"},
		{200, "{}", session.ErrCredentials, "it answered without a token"},
		{503, "busy", session.ErrRetriesExhausted, "token service https://iamcredentials.googleapis.com: it answered 503 Service Unavailable"},
	} {
		_, endpoint := emulator(t, &fakegcs.Options{RequireToken: true})
		startIAM(t, func() (int, string) { return tt.status, tt.body })
		c := newClient(t, &gcs.Options{Endpoint: endpoint, CredentialsFile: credentialsFile(t, &tokens{}), ImpersonateServiceAccount: "x@p.iam.gserviceaccount.com"})
		_, err := put(t, uploader(t, c, &upload.Options{Policy: hasty}), 100)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("status %d: error %v, want %v with %q", tt.status, err, tt.want, tt.text)
		}
	}
	_, err := gcs.New(t.Context(), &gcs.Options{Endpoint: "http://storage.example", ImpersonateServiceAccount: "x@p.iam.gserviceaccount.com"})
	if err == nil || !strings.Contains(err.Error(), "credentials are not sent over plain HTTP") {
		t.Errorf("over plain HTTP: %v", err)
	}
}

// TestPrivateKey checks that a key that cannot sign is refused in one sentence, before a
// request.
func TestPrivateKey(t *testing.T) {
	for key, ok := range map[string]bool{
		testKey(t): true, "": false, "none": false,
		"-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n":             false,
		"-----BEGIN RSA PRIVATE KEY-----\nMBAwDg==\n-----END RSA PRIVATE KEY-----\n": false,
	} {
		file := jsonFile(t, map[string]string{"type": "service_account", "client_email": "x@example.com", "private_key": key})
		_, err := gcs.New(t.Context(), &gcs.Options{CredentialsFile: file})
		want := "credentials cannot be used: " + file + ": private_key is not an RSA key in PEM; name another file"
		if ok && err != nil || !ok && (!errors.Is(err, session.ErrCredentials) || err.Error() != want) {
			t.Errorf("%.40q: error %v, want valid %v", key, err, ok)
		}
	}
}
