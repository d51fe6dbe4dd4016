package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/require"
)

// testCA is a certificate authority. Its certificate is in the file ca.pem of dir.
type testCA struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newTestCA(t *testing.T) *testCA {
	t.Helper()
	ca := &testCA{dir: t.TempDir(), pool: x509.NewCertPool()}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	ca.cert, ca.key = ca.sign(t, template, "ca")
	ca.pool.AddCert(ca.cert)
	return ca
}

// sign writes NAME.pem and NAME.key.
func (ca *testCA) sign(t *testing.T, template *x509.Certificate, name string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	parent, signer := ca.cert, ca.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	private, keyErr := x509.MarshalPKCS8PrivateKey(key)
	err = errors.Join(err, keyErr,
		os.WriteFile(ca.file(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(ca.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	require.NoError(t, err)
	return cert, key
}

func (ca *testCA) file(name string) string { return filepath.Join(ca.dir, name) }

// issue returns a certificate for hosts, in the files NAME.pem and NAME.key.
func (ca *testCA) issue(t *testing.T, name string, hosts ...string) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), DNSNames: hosts, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, key := ca.sign(t, template, name)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// serve starts a server with https. It asks for a client certificate of this authority, if clients
// is set.
func (ca *testCA) serve(t *testing.T, handler http.Handler, clients bool, hosts ...string) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(handler)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "server", hosts...)}}
	if clients {
		srv.TLS.ClientAuth, srv.TLS.ClientCAs = tls.RequireAndVerifyClientCert, ca.pool
		srv.TLS.MaxVersion = tls.VersionTLS12 // with TLS 1.3 the refusal can come after the request
	}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// connectProxy starts a proxy that connects to addr, whatever a client asks for.
func connectProxy(t *testing.T, addr string) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server, err := net.Dial("tcp", addr)
		if err != nil || r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer server.Close()
		client, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(server, buffered) }() // it may have read the first byte
		_, _ = io.Copy(client, server)
	}))
	t.Cleanup(srv.Close)
	return srv
}

// writeCredentials writes a credentials file whose tokens are base-token, and returns its path.
func writeCredentials(t *testing.T, path string) string {
	t.Helper()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"base-token","expires_in":3600,"token_type":"Bearer"}`))
	}))
	t.Cleanup(tokens.Close)
	text := fmt.Sprintf(`{"type":"authorized_user","client_id":"id","client_secret":"s","refresh_token":"r","token_uri":%q}`, tokens.URL)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// runGcsup runs gcsup in a process of its own, and returns its output and its exit code.
func runGcsup(t *testing.T, env []string, args ...string) (output string, code int) {
	t.Helper()
	cmd := exec.Command("gcsup", args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// newFake returns the emulator as a handler. It is closed before the servers.
func newFake(t *testing.T, opts fakegcs.Options) *fakegcs.Server {
	t.Helper()
	opts.CreateBuckets = true
	srv, err := fakegcs.New(&opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = srv.Close() })
	return srv
}

// TestClientCertificate checks uploads to a server that demands a client certificate.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SSL_CERT_FILE has no effect on all systems")
	}
	ca := newTestCA(t)
	fake := newFake(t, fakegcs.Options{})
	srv := ca.serve(t, fake, true, "storage.mtls.googleapis.com")
	ca.issue(t, "client")
	stranger := newTestCA(t)
	stranger.issue(t, "client")
	source := ca.file("source")
	require.NoError(t, os.WriteFile(source, []byte("content"), 0o600))
	config := func(of *testCA) string {
		path := of.file("certificate_config.json")
		text := fmt.Sprintf(`{"cert_configs":{"workload":{"cert_path":%q,"key_path":%q}}}`, of.file("client.pem"), of.file("client.key"))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return "GOOGLE_API_CERTIFICATE_CONFIG=" + path
	}
	env := []string{"SSL_CERT_FILE=" + ca.file("ca.pem"), "HOME=" + ca.dir, "STORAGE_EMULATOR_HOST=", "GOOGLE_API_USE_CLIENT_CERTIFICATE="}
	// With the emulator's variable no certificate is used, so the endpoint is a flag. The
	// credentials are in a file whose token the emulator does not check.
	credentials := writeCredentials(t, ca.file("credentials.json"))
	proxy := connectProxy(t, srv.Listener.Addr().String())
	state := "--state-dir=" + t.TempDir()
	cp := []string{"cp", "--retry-for=1ms", "--credentials-file", credentials, state, source, "gs://demo/o"}
	there := append(cp[:len(cp):len(cp)], "--endpoint="+srv.URL)
	for _, c := range []struct {
		what string
		env  []string
		args []string
		code int
		want string
	}{
		{"without a certificate", nil, there, 69, `handshake failure; https://127.0.0.1:\d+ refuses the TLS handshake: if it asks for a client certificate, .*GOOGLE_API_USE_CLIENT_CERTIFICATE=true`},
		{"with one that is not trusted", []string{config(stranger), "GOOGLE_API_USE_CLIENT_CERTIFICATE=true"}, there, 69, `(bad certificate|unknown certificate authority); .* client certificate`},
		{"with one", []string{config(ca), "GOOGLE_API_USE_CLIENT_CERTIFICATE=true"}, there, 0, `^gs://demo/o#`},
		{"at the service's endpoint", []string{config(ca), "GOOGLE_API_USE_CLIENT_CERTIFICATE=true", "HTTPS_PROXY=" + proxy.URL}, cp, 0, `^gs://demo/o#`},
		{"with one that is disabled", []string{config(ca), "GOOGLE_API_USE_CLIENT_CERTIFICATE=false"}, there, 69, `refuses the TLS handshake`},
		{"doctor", []string{config(ca), "GOOGLE_API_USE_CLIENT_CERTIFICATE=true"}, []string{"doctor", "gs://demo", "--endpoint=" + srv.URL, "--credentials-file", credentials}, 0,
			`answers in \S+; there is a client certificate, which it gets if it asks for one\n(.*\n)credentials  skipped  not checked: there is a token, but the endpoint gives the same answer without one\n`},
	} {
		out, code := runGcsup(t, append(env[:len(env):len(env)], c.env...), c.args...)
		if code != c.code || !regexp.MustCompile(c.want).MatchString(out) {
			t.Errorf("%s: exit code %d, want %d, and output that matches %s:\n%s", c.what, code, c.code, c.want, out)
		}
	}
}

// TestImpersonateServiceAccount checks that uploads carry the token of a service account, and
// that doctor and the resume command know it.
func TestImpersonateServiceAccount(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SSL_CERT_FILE has no effect on all systems")
	}
	ca := newTestCA(t)
	fake := newFake(t, fakegcs.Options{RequireToken: true})
	fake.AllowToken("of-the-account")
	service := httptest.NewServer(fake)
	t.Cleanup(service.Close)
	account := "backup@p.iam.gserviceaccount.com"
	iam := ca.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/projects/-/serviceAccounts/"+account+":generateAccessToken" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"error":{"message":"Permission 'iam.serviceAccounts.getAccessToken' denied."}}`))
			return
		}
		fmt.Fprintf(w, `{"accessToken":"of-the-account","expireTime":%q}`, time.Now().Add(time.Hour).Format(time.RFC3339))
	}), false, "iamcredentials.googleapis.com")
	proxy := connectProxy(t, iam.Listener.Addr().String())
	credentials := writeCredentials(t, ca.file("credentials.json"))
	env := []string{"SSL_CERT_FILE=" + ca.file("ca.pem"), "HOME=" + ca.dir, "STORAGE_EMULATOR_HOST=", "HTTPS_PROXY=" + proxy.URL}
	at := []string{"--endpoint=" + service.URL, "--credentials-file=" + credentials}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"cp", "main.go", "gs://demo/o", "--state-dir=" + ca.dir, "--impersonate-service-account=" + account}, 0, `^gs://demo/o#`},
		{[]string{"cp", "main.go", "gs://demo/o", "--state-dir=" + ca.dir}, 77, `401`},
		{[]string{"doctor", "gs://demo", "--impersonate-service-account=" + account}, 0, `credentials  ok       the service accepts them\n`},
		{[]string{"doctor", "gs://demo", "--impersonate-service-account=other@p.iam.gserviceaccount.com"}, 77,
			`credentials  failed   .*it answered 403 Forbidden: Permission 'iam.serviceAccounts.getAccessToken' denied; the role roles/iam.serviceAccountTokenCreator on other@p.iam.gserviceaccount.com permits impersonation`},
		{[]string{"doctor", "gs://demo", "--impersonate-service-account=backup"}, 64, `^gcsup: --impersonate-service-account "backup": want the email address of a service account`},
		{[]string{"doctor", "gs://demo", "--emulator", "--credentials-file=x"}, 64, `^gcsup: --emulator and --(credentials-file|endpoint) exclude each other`},
	} {
		out, code := runGcsup(t, env, append(c.args, at...)...)
		if code != c.code || !regexp.MustCompile(c.want).MatchString(out) {
			t.Errorf("%q: exit code %d, want %d, and output that matches %s:\n%s", c.args, code, c.code, c.want, out)
		}
	}
}
