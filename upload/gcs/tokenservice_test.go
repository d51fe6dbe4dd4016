package gcs_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/gcs"
)

// TestTokenServiceThatIsNotFound checks that a host name that does not resolve is
// retried, and that the error contains the token service's host.
func TestTokenServiceThatIsNotFound(t *testing.T) {
	for _, kind := range []string{"authorized_user", "service_account"} {
		t.Run(kind, func(t *testing.T) {
			_, endpoint := emulator(t, &fakegcs.Options{RequireToken: true})
			file := jsonFile(t, map[string]string{
				"type": kind, "client_id": "id", "client_secret": "secret", "refresh_token": "refresh",
				"client_email": "x@example.com", "private_key": testKey(t), "token_uri": "https://tokens.invalid/token",
			})
			resolves(t, func(addr string) error {
				return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: addr, IsNotFound: true}}
			})
			c := newClient(t, &gcs.Options{Endpoint: endpoint, CredentialsFile: file})
			_, err := put(t, uploader(t, c, &upload.Options{Policy: hasty}), 100)
			if !errors.Is(err, session.ErrRetriesExhausted) || errors.Is(err, session.ErrCredentials) {
				t.Errorf("%v, want ErrRetriesExhausted", err)
			}
			ts, ok := errors.AsType[*gcs.TokenServiceError](err)
			if !ok || ts.Host != "https://tokens.invalid" || !strings.Contains(err.Error(), "token service https://tokens.invalid: ") {
				t.Errorf("%v, want the token service's name", err)
			}
			if strings.Contains(err.Error(), endpoint) {
				t.Errorf("error names the endpoint: %v", err)
			}
		})
	}
}

// resolves makes the default transport fail to dial hosts in the domain invalid. No other test
// may run at the same time.
func resolves(t *testing.T, fail func(addr string) error) {
	old := http.DefaultTransport
	tr := old.(*http.Transport).Clone()
	dial := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if strings.HasSuffix(addr, ".invalid:443") {
			return nil, fail(addr)
		}
		return dial(ctx, network, addr)
	}
	http.DefaultTransport = tr
	t.Cleanup(func() {
		http.DefaultTransport = old
		tr.CloseIdleConnections()
	})
}

// TestTokenServiceInTrouble checks that a failure of the token service is retried and not reported as bad credentials, that a refusal of the
// credentials is, and that no error has the reply.
func TestTokenServiceInTrouble(t *testing.T) {
	t.Parallel()
	down := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(503)
		io.WriteString(w, "<html>SECRET</html>")
	}
	for name, c := range map[string]struct {
		reply func(w http.ResponseWriter, r *http.Request)
		times int // after which it issues tokens
		want  error
	}{
		"down for a moment": {down, 2, nil},
		"down":              {down, 99, session.ErrRetriesExhausted},
		"overloaded":        {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, 99, session.ErrRetriesExhausted},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("{"))
		}, 99, session.ErrRetriesExhausted},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://plain.invalid/", 307) }, 99, session.ErrNotFound},
		"refuses": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			io.WriteString(w, `{"error":"invalid_grant","error_description":"Token has been expired or revoked.","x":"SECRET"}`)
		}, 99, session.ErrCredentials},
		"not its token": {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("welcome SECRET")) }, 99, session.ErrCredentials},
	} {
		t.Run(name, func(t *testing.T) {
			srv, endpoint := emulator(t, &fakegcs.Options{RequireToken: true})
			var asked atomic.Int64
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) <= int64(c.times) {
					c.reply(w, r)
					return
				}
				(&tokens{srv: srv}).ServeHTTP(w, r)
			}))
			defer service.Close()
			client := newClient(t, &gcs.Options{Endpoint: endpoint, CredentialsFile: userFile(t, service.URL+"/token")})
			_, err := put(t, uploader(t, client, &upload.Options{Policy: hasty}), 100)
			if !errors.Is(err, c.want) || c.want != nil && !strings.Contains(err.Error(), "token service "+service.URL) {
				t.Errorf("%v, want %v of %s", err, c.want, service.URL)
			}
			if c.want != session.ErrCredentials && errors.Is(err, session.ErrCredentials) || strings.Contains(fmt.Sprint(err), "SECRET") {
				t.Errorf("error is ErrCredentials, or has the reply: %v", err)
			}
		})
	}
}

// machineToken is the reply of a metadata server to a request for a token.
const machineToken = `{"access_token":"ya29.metadata","expires_in":3600,"token_type":"Bearer"}`

// uploadFromMachine uploads an object to an emulator with the faults of plan, as a machine with a metadata server whose
// replies metadata returns. It returns the URL of that server and the error of the upload.
func uploadFromMachine(t *testing.T, plan []faults.Fault, metadata func(path string) (status int, body string)) (server string, err error) {
	t.Helper()
	srv, endpoint := emulator(t, &fakegcs.Options{RequireToken: true, Faults: plan})
	srv.AllowToken("ya29.metadata")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body := metadata(r.URL.Path)
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	defer s.Close()
	t.Setenv("GCE_METADATA_HOST", s.Listener.Addr().String())
	service, err := url.Parse(endpoint)
	require.NoError(t, err)
	// Credentials of a machine are not sent over plain HTTP.
	c := newClient(t, &gcs.Options{Endpoint: "https://storage.example", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.URL.Scheme, r.URL.Host = service.Scheme, service.Host
		return http.DefaultTransport.RoundTrip(r)
	})})
	_, err = put(t, uploader(t, c, &upload.Options{Policy: hasty}), 100)
	return s.URL, err
}

// TestMetadataServerInTrouble checks that a metadata server that cannot answer for a
// moment is not reported as bad credentials. The library retries other statuses
// itself, with waits.
func TestMetadataServerInTrouble(t *testing.T) {
	for _, tt := range []struct {
		name string
		fail func(n int) int // status of the reply to the n-th request for a token; 0 is a token
		want error
	}{
		{"busy for a moment", func(n int) int {
			if n <= 2 {
				return 408
			}
			return 0
		}, nil},
		{"busy", func(int) int { return 408 }, session.ErrRetriesExhausted},
		{"refuses", func(int) int { return 403 }, session.ErrCredentials},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			server, err := uploadFromMachine(t, nil, func(path string) (int, string) {
				if !strings.HasSuffix(path, "/token") {
					return 404, ""
				}
				n++
				if code := tt.fail(n); code != 0 {
					return code, ""
				}
				return 200, machineToken
			})
			if !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), "token service "+server) {
				t.Errorf("%v, want %v of %s", err, tt.want, server)
			}
		})
	}
}

// TestMachineScopes checks that an error names the access scopes of a machine if they are the reason of a
// refusal, and only then.
func TestMachineScopes(t *testing.T) {
	for _, test := range []struct {
		name, scopes string
		status       int
		named        bool
	}{
		{"the default scopes of a machine", "https://www.googleapis.com/auth/devstorage.read_only\nhttps://www.googleapis.com/auth/logging.write\n", 403, true},
		{"all scopes", "https://www.googleapis.com/auth/cloud-platform\n", 403, false},
		{"no answer", "", 403, false},
		{"another refusal", "https://www.googleapis.com/auth/devstorage.read_only\n", 400, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := []faults.Fault{{Match: faults.Match{Op: faults.OpInsert}, Do: faults.Action{Effect: faults.EffectStatus, Status: test.status}}}
			_, err := uploadFromMachine(t, plan, func(path string) (int, string) {
				switch {
				case strings.HasSuffix(path, "/token"):
					return 200, machineToken
				case strings.HasSuffix(path, "/service-accounts/default/scopes") && test.scopes != "":
					return 200, test.scopes
				}
				return 404, ""
			})
			scopes, named := errors.AsType[*session.ScopeError](err)
			if err == nil || named != test.named || named && (!errors.Is(err, session.ErrPermission) || len(scopes.Scopes) != 2 || !strings.Contains(err.Error(), "devstorage.read_only")) {
				t.Errorf("%v, want the scopes: %t", err, test.named)
			}
		})
	}
}

// TestMetadataServerThatHangs checks that New returns when its context is done, even if
// the metadata server does not answer. The library waits for half a minute.
func TestMetadataServerThatHangs(t *testing.T) {
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	returned := make(chan struct{})
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel(stopped)
		select {
		case <-returned:
			w.WriteHeader(404) // the library asks no more
		case <-r.Context().Done(): // it tries again
		}
	}))
	defer metadata.Close()
	t.Setenv("GCE_METADATA_HOST", metadata.Listener.Addr().String())
	c, err := gcs.New(ctx, nil)
	close(returned)
	if !errors.Is(err, stopped) {
		t.Errorf("%v, %v, want the cause of the context", c, err)
	}
}

// testKey returns a new private key in PEM.
func testKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}
