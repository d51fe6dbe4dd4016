package gcs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/googleapis/enterprise-certificate-proxy/client/util"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"golang.org/x/oauth2/google/externalaccount"
)

// Workload identity federation with X.509 certificates: the token service gets the certificates of
// the client in the request and in the TLS handshake.
// https://cloud.google.com/iam/docs/workload-identity-federation-with-x509-certificates

// x509File is a credentials file of the type external_account whose credential_source is a
// certificate, which golang.org/x/oauth2/google does not support. Field names are those of
// https://google.aip.dev/auth/4117.
type x509File struct {
	Audience         string `json:"audience"`
	SubjectTokenType string `json:"subject_token_type"`
	TokenURL         string `json:"token_url"`
	ImpersonationURL string `json:"service_account_impersonation_url"`
	Impersonation    struct {
		LifetimeSeconds int `json:"token_lifetime_seconds"`
	} `json:"service_account_impersonation"`
	ClientID       string `json:"client_id"`
	ClientSecret   string `json:"client_secret"`
	QuotaProject   string `json:"quota_project_id"`
	UniverseDomain string `json:"universe_domain"`
	Source         struct {
		Certificate *x509Source `json:"certificate"`
	} `json:"credential_source"`
}

type x509Source struct {
	UseDefaultConfig bool   `json:"use_default_certificate_config"`
	ConfigLocation   string `json:"certificate_config_location"`
	TrustChainPath   string `json:"trust_chain_path"`
}

// certificateFile returns the contents of a credentials file if its credential source is a
// certificate, or nil.
func certificateFile(data []byte) *x509File {
	var file x509File
	if json.Unmarshal(data, &file) != nil || file.Source.Certificate == nil {
		return nil
	}
	return &file
}

// credentials returns the credentials of the file, which was read from data. Requests to the token service are
// made by the client of ctx, with the certificate.
func (f *x509File) credentials(ctx context.Context, data []byte, scope string) (*google.Credentials, error) {
	subject, err := f.Source.Certificate.open()
	if err != nil {
		return nil, err
	}
	client := *ctx.Value(oauth2.HTTPClient).(*http.Client)
	client.Transport = client.Transport.(*tokenTransport).with(subject.certificate)
	source, err := externalaccount.NewTokenSource(context.WithValue(ctx, oauth2.HTTPClient, &client), externalaccount.Config{
		Audience: f.Audience, SubjectTokenType: f.SubjectTokenType, TokenURL: f.TokenURL,
		ServiceAccountImpersonationURL: f.ImpersonationURL, ServiceAccountImpersonationLifetimeSeconds: f.Impersonation.LifetimeSeconds,
		ClientID: f.ClientID, ClientSecret: f.ClientSecret, QuotaProjectID: f.QuotaProject, UniverseDomain: f.UniverseDomain,
		Scopes: []string{scope}, SubjectTokenSupplier: subject,
	})
	if err != nil {
		return nil, err
	}
	return &google.Credentials{TokenSource: source, JSON: data}, nil
}

// open returns the subject of the certificate, after it has read it once to report mistakes.
func (s *x509Source) open() (*x509Subject, error) {
	if s.UseDefaultConfig == (s.ConfigLocation != "") {
		return nil, fmt.Errorf("credential_source.certificate needs either use_default_certificate_config or certificate_config_location")
	}
	path := cmp.Or(s.ConfigLocation, util.GetConfigFilePathFromEnv(), util.GetDefaultConfigFilePath())
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("certificate config: %w", err)
	}
	load, err := parseCertificateConfig(path, data)
	if err != nil {
		return nil, err
	}
	if load == nil {
		return nil, fmt.Errorf("%s names no certificate", path)
	}
	subject := &x509Subject{load: load, trustChain: s.TrustChainPath}
	_, err = subject.read()
	return subject, err
}

// x509Subject supplies the subject token: the certificates of the client.
type x509Subject struct {
	load       certificateSource
	trustChain string // a file, or ""

	mu      sync.Mutex
	current *tls.Certificate // of the last subject token
}

// Certificates of workloads are renewed often, and the certificate and its key are two files.
const (
	renewalReads = 5
	renewalWait  = 200 * time.Millisecond
)

// SubjectToken implements [externalaccount.SubjectTokenSupplier].
func (s *x509Subject) SubjectToken(ctx context.Context, _ externalaccount.SupplierOptions) (string, error) {
	for n := 1; ; n++ {
		token, err := s.read()
		if err == nil || n == renewalReads {
			return token, err
		}
		select {
		case <-time.After(renewalWait):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// read reads the certificate and the trust chain, and returns them as a JSON array of base64.
func (s *x509Subject) read() (string, error) {
	pair, err := s.load(nil)
	if err != nil {
		return "", err
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return "", fmt.Errorf("client certificate: %w", err)
	}
	if now := time.Now(); now.After(leaf.NotAfter) {
		return "", fmt.Errorf("the client certificate has expired on %s; renew it", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	chain := [][]byte{leaf.Raw}
	if s.trustChain != "" {
		more, err := readChain(s.trustChain, leaf.Raw)
		if err != nil {
			return "", err
		}
		chain = append(chain, more...)
	}
	var texts []string
	for _, der := range chain {
		texts = append(texts, base64.StdEncoding.EncodeToString(der))
	}
	token, err := json.Marshal(texts)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = pair
	return string(token), nil
}

// readChain returns the certificates in a PEM file without the leaf, which can only be the first.
func readChain(path string, leaf []byte) ([][]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("trust chain: %w", err)
	}
	var chain [][]byte
	for n := 0; ; n++ {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("trust chain %s: certificate %d: %w", path, n+1, err)
		}
		isLeaf := bytes.Equal(block.Bytes, leaf)
		if isLeaf && n > 0 {
			return nil, fmt.Errorf("trust chain %s: the certificate of the client is number %d; it must be the first", path, n+1)
		}
		if !isLeaf {
			chain = append(chain, block.Bytes)
		}
	}
	if len(bytes.TrimSpace(data)) > 0 {
		return nil, fmt.Errorf("trust chain %s: not only certificates in PEM", path)
	}
	return chain, nil
}

// certificate returns the certificate for a TLS handshake: that of the last subject token, because
// the token service compares the two.
func (s *x509Subject) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, nil
}
