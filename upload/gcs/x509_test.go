package gcs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/gcs"
)

// authority is a certificate authority of a test.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// newAuthority returns an authority whose certificate is signed by parent, or by itself if that is nil.
func newAuthority(t *testing.T, name string, parent *authority) *authority {
	t.Helper()
	a := &authority{t: t}
	a.key = newECKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	signer := a
	if parent != nil {
		signer = parent
	} else {
		a.cert = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.cert, a.key.Public(), signer.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	require.NoError(t, err)
	return a
}

func newECKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

// issue returns a certificate of a client or a server on this machine, and its key.
func (a *authority) issue(name string, until time.Time) (der []byte, key *ecdsa.PrivateKey) {
	a.t.Helper()
	key = newECKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		DNSNames: []string{"localhost"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der, key
}

// pemOf returns certificates in PEM.
func pemOf(list ...[]byte) []byte {
	var all []byte
	for _, der := range list {
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return all
}

// federation is a workload with an X.509 certificate, and the token service that accepts it.
type federation struct {
	t                *testing.T
	root, middle     *authority
	dir              string
	leaf             []byte // the current certificate of the client
	sts              *httptest.Server
	asked            int          // requests for a token
	reply            http.Handler // replaces the token service's if it is not nil
	endpoint, secret string       // of the emulator, and the token that it accepts
}

// newFederation starts a token service that wants certificates of an authority below root. It
// gives a token if the certificate of the connection and the subject token are the same.
func newFederation(t *testing.T) *federation {
	t.Helper()
	f := &federation{t: t, dir: t.TempDir(), secret: "ya29.federated"}
	f.root = newAuthority(t, "root", nil)
	f.middle = newAuthority(t, "middle", f.root)
	srv, endpoint := emulator(t, &fakegcs.Options{RequireToken: true})
	srv.AllowToken(f.secret)
	f.endpoint = endpoint
	roots := x509.NewCertPool()
	roots.AddCert(f.root.cert)
	f.sts = httptest.NewUnstartedServer(http.HandlerFunc(f.exchange))
	der, key := f.root.issue("localhost", time.Now().Add(time.Hour))
	f.sts.TLS = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.RequireAnyClientCert, // the subject token has the chain
	}
	f.sts.StartTLS()
	t.Cleanup(f.sts.Close)
	// The client trusts the authorities of the system.
	old := http.DefaultTransport
	trusting := old.(*http.Transport).Clone()
	trusting.TLSClientConfig = &tls.Config{RootCAs: roots, ServerName: "localhost"}
	http.DefaultTransport = trusting
	t.Cleanup(func() { http.DefaultTransport = old; trusting.CloseIdleConnections() })
	f.renew(time.Now().Add(time.Hour))
	f.write("chain.pem", pemOf(f.middle.cert.Raw))
	return f
}

func (f *federation) path(name string) string { return filepath.Join(f.dir, name) }

func (f *federation) write(name string, data []byte) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), data, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// renew replaces the certificate and the key of the client.
func (f *federation) renew(until time.Time) {
	f.t.Helper()
	f.leaf = writeCertificate(f.t, f.middle, until, f.dir)
}

// writeCertificate writes a certificate of a as cert.pem, its key as key.pem, and a config.json that names both.
func writeCertificate(t *testing.T, a *authority, until time.Time, dir string) (der []byte) {
	t.Helper()
	der, key := a.issue("workload", until)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	cert, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := errors.Join(err,
		os.WriteFile(cert, pemOf(der), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
		os.WriteFile(filepath.Join(dir, "config.json"), fmt.Appendf(nil, `{"cert_configs":{"workload":{"cert_path":%q,"key_path":%q}}}`, cert, keyFile), 0o600)); err != nil {
		t.Fatal(err)
	}
	return der
}

func (f *federation) exchange(w http.ResponseWriter, r *http.Request) {
	f.asked++
	if f.reply != nil {
		f.reply.ServeHTTP(w, r)
		return
	}
	refuse := func(why string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(400)
		fmt.Fprintf(w, `{"error":"invalid_grant","error_description":%q}`, why)
	}
	var chain []string
	if err := json.Unmarshal([]byte(r.PostFormValue("subject_token")), &chain); err != nil || len(chain) == 0 {
		refuse("no chain")
		return
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(f.root.cert)
	for _, text := range chain[1:] {
		der, _ := base64.StdEncoding.DecodeString(text)
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	shown := r.TLS.PeerCertificates[0]
	if base64.StdEncoding.EncodeToString(shown.Raw) != chain[0] {
		refuse("the certificate of the connection is another one")
		return
	}
	if _, err := shown.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		refuse("not trusted")
		return
	}
	want := []string{"//iam.googleapis.com/pool", "urn:ietf:params:oauth:token-type:mtls", "https://www.googleapis.com/auth/devstorage.read_write"}
	if got := []string{r.PostFormValue("audience"), r.PostFormValue("subject_token_type"), r.PostFormValue("scope")}; !slices.Equal(got, want) {
		f.t.Errorf("request for a token: %q, want %q", got, want)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":%q,"issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":3600}`, f.secret)
}

// upload makes a client with the credentials and uploads a small file. source is the JSON of the
// certificate in the credential source.
func (f *federation) upload(source string) (*gcs.Client, error) {
	f.t.Helper()
	f.write("credentials.json", fmt.Appendf(nil, `{"type":"external_account","audience":"//iam.googleapis.com/pool","subject_token_type":"urn:ietf:params:oauth:token-type:mtls",
		"token_url":"%s/v1/token","credential_source":{"certificate":%s}}`, f.sts.URL, source))
	c, err := gcs.New(f.t.Context(), &gcs.Options{Endpoint: f.endpoint, CredentialsFile: f.path("credentials.json")})
	if err != nil {
		return nil, err
	}
	f.t.Cleanup(func() { c.Close() })
	return c, f.put(c)
}

func (f *federation) put(c *gcs.Client) error {
	_, err := put(f.t, uploader(f.t, c, &upload.Options{Policy: hasty}), 100)
	return err
}

// located is the credential source that names the certificate config and the trust chain of f.
func (f *federation) located() string {
	return fmt.Sprintf(`{"certificate_config_location":%q,"trust_chain_path":%q}`, f.path("config.json"), f.path("chain.pem"))
}

func TestX509Federation(t *testing.T) {
	f := newFederation(t)
	if _, err := f.upload(f.located()); err != nil {
		t.Fatal(err)
	}
	t.Run("default config", func(t *testing.T) {
		t.Setenv("GOOGLE_API_CERTIFICATE_CONFIG", f.path("config.json"))
		if _, err := f.upload(fmt.Sprintf(`{"use_default_certificate_config":true,"trust_chain_path":%q}`, f.path("chain.pem"))); err != nil {
			t.Error(err)
		}
	})
	t.Run("the leaf is first in the chain", func(t *testing.T) {
		f.write("chain.pem", pemOf(f.leaf, f.middle.cert.Raw))
		if _, err := f.upload(f.located()); err != nil {
			t.Error(err)
		}
	})
}

// TestX509Renewed checks that a rejected token is replaced with the certificate that there is then.
func TestX509Renewed(t *testing.T) {
	f := newFederation(t)
	srv, endpoint := emulator(t, &fakegcs.Options{RequireToken: true})
	srv.AllowToken("ya29.first")
	f.endpoint, f.secret = endpoint, "ya29.first"
	c, err := f.upload(f.located())
	if err != nil || f.asked != 1 {
		t.Fatalf("%d requests for a token, %v", f.asked, err)
	}
	f.renew(time.Now().Add(time.Hour))
	f.secret = "ya29.second"
	srv.AllowToken("ya29.second")
	require.NoError(t, srv.AddFaults(faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Do: faults.Action{Effect: faults.EffectRevoke}}))
	if err := f.put(c); err != nil || f.asked != 2 {
		t.Errorf("%d requests for a token, %v", f.asked, err)
	}
}

// TestX509WrappedTransport checks that a program may replace http.DefaultTransport by a wrapper, for example for traces.
// The token service of the test is then not trusted.
func TestX509WrappedTransport(t *testing.T) {
	f := newFederation(t)
	http.DefaultTransport = struct{ http.RoundTripper }{http.DefaultTransport} // newFederation restores it
	if c, err := f.upload(f.located()); c == nil {
		t.Error(err)
	}
}

// TestX509Mistakes checks that each mistake is named, and found without a request if that is possible.
func TestX509Mistakes(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(f *federation) (source string)
		says  string
		asked bool
	}{
		{"expired", func(f *federation) string { f.renew(time.Now().Add(-time.Minute)); return f.located() }, "the client certificate has expired on ", false},
		{"key missing", func(f *federation) string { os.Remove(f.path("key.pem")); return f.located() }, "key.pem", false},
		{"config missing", func(f *federation) string { os.Remove(f.path("config.json")); return f.located() }, "config.json", false},
		{"chain missing", func(f *federation) string { os.Remove(f.path("chain.pem")); return f.located() }, "trust chain: open ", false},
		{"wrong order", func(f *federation) string {
			f.write("chain.pem", pemOf(f.middle.cert.Raw, f.leaf))
			return f.located()
		}, "it must be the first", false},
		{"not PEM", func(f *federation) string { f.write("chain.pem", []byte("hello")); return f.located() }, "not only certificates in PEM", false},
		{"both places", func(f *federation) string {
			return fmt.Sprintf(`{"use_default_certificate_config":true,"certificate_config_location":%q}`, f.path("config.json"))
		}, "needs either", false},
		{"no place", func(f *federation) string { return `{}` }, "needs either", false},
		{"no chain", func(f *federation) string {
			return fmt.Sprintf(`{"certificate_config_location":%q}`, f.path("config.json"))
		}, "not trusted", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFederation(t)
			_, err := f.upload(test.spoil(f))
			if !errors.Is(err, session.ErrCredentials) || !strings.Contains(err.Error(), test.says) || (f.asked > 0) != test.asked {
				t.Errorf("%v, %d requests for a token, want one that says %q", err, f.asked, test.says)
			}
		})
	}
}

// TestX509ServiceInTrouble checks that a token service that fails does not count as bad credentials, and that
// the subject token is not sent to another place.
func TestX509ServiceInTrouble(t *testing.T) {
	for _, test := range []struct {
		name  string
		reply http.HandlerFunc
		want  error
	}{
		{"down", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, session.ErrRetriesExhausted},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, session.ErrNotFound},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFederation(t)
			paths := map[string]bool{}
			f.reply = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { paths[r.URL.Path] = true; test.reply(w, r) })
			_, err := f.upload(f.located())
			if !errors.Is(err, test.want) || errors.Is(err, session.ErrCredentials) || !strings.Contains(err.Error(), "token service "+f.sts.URL) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if paths["/elsewhere"] {
				t.Error("the redirect was followed")
			}
		})
	}
}
