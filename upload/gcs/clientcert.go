package gcs

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	ecp "github.com/googleapis/enterprise-certificate-proxy/client"
	"github.com/googleapis/enterprise-certificate-proxy/client/util"
)

// MutualTLSEndpoint is the endpoint of the service that asks for a client certificate, see
// https://google.aip.dev/auth/4114. See [New] for the variables that select it.
const MutualTLSEndpoint = "https://storage.mtls.googleapis.com"

// A certificateSource returns the certificate of the client for a TLS handshake.
type certificateSource func(*tls.CertificateRequestInfo) (*tls.Certificate, error)

// findCertificate returns the client certificate that the official library would use, or nil
// if there is none. GOOGLE_API_USE_CLIENT_CERTIFICATE enables it. If that is not set, it
// is enabled in the default universe.
func findCertificate(universe string) (certificateSource, error) {
	enabled := universe == defaultUniverse
	if value, ok := os.LookupEnv("GOOGLE_API_USE_CLIENT_CERTIFICATE"); ok {
		enabled, _ = strconv.ParseBool(value)
	}
	if !enabled {
		return nil, nil
	}
	path := cmp.Or(util.GetConfigFilePathFromEnv(), util.GetDefaultConfigFilePath())
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var source certificateSource
	if err == nil {
		source, err = parseCertificateConfig(path, data)
	}
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w; correct it, or set GOOGLE_API_USE_CLIENT_CERTIFICATE=false", err)
	}
	return source, nil
}

// parseCertificateConfig returns the certificate that a certificate_config.json names, or nil if
// it names none.
func parseCertificateConfig(path string, data []byte) (certificateSource, error) {
	var config struct {
		CertConfigs struct {
			Workload *struct {
				CertPath string `json:"cert_path"`
				KeyPath  string `json:"key_path"`
			} `json:"workload"`
			PKCS11        json.RawMessage `json:"pkcs11"`
			WindowsStore  json.RawMessage `json:"windows_store"`
			MacOSKeychain json.RawMessage `json:"macos_keychain"`
		} `json:"cert_configs"`
		Libs json.RawMessage `json:"libs"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	of := config.CertConfigs
	switch {
	case of.Workload != nil && (of.Workload.CertPath == "" || of.Workload.KeyPath == ""):
		return nil, fmt.Errorf("%s: cert_configs.workload needs cert_path and key_path", path)
	case of.Workload != nil:
		// The files are read for each handshake, because certificates of workloads are
		// replaced often. A mistake is reported now.
		load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(of.Workload.CertPath, of.Workload.KeyPath)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			return &pair, nil
		}
		_, err := load(nil)
		return load, err
	case (of.PKCS11 != nil || of.WindowsStore != nil || of.MacOSKeychain != nil) && config.Libs != nil:
		// The key is in a keychain or a token. A helper process signs with it.
		key := sync.OnceValues(func() (*ecp.Key, error) { return ecp.Cred(path) })
		return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			k, err := key()
			if err != nil {
				return nil, fmt.Errorf("client certificate: %s: %w", path, err)
			}
			return &tls.Certificate{Certificate: k.CertificateChain(), PrivateKey: k}, nil
		}, nil
	}
	return nil, nil
}

// standardHost returns the host of the service or its endpoint, for a client with or without
// a certificate. As in the official library, a certificate selects MutualTLSEndpoint only if
// GOOGLE_API_USE_CLIENT_CERTIFICATE is true. GOOGLE_API_USE_MTLS_ENDPOINT takes precedence.
func standardHost(universe string, certificate bool) (string, error) {
	mode := strings.ToLower(cmp.Or(os.Getenv("GOOGLE_API_USE_MTLS_ENDPOINT"), os.Getenv("GOOGLE_API_USE_MTLS"), "auto"))
	asked := certificate && strings.EqualFold(os.Getenv("GOOGLE_API_USE_CLIENT_CERTIFICATE"), "true")
	switch {
	case mode != "always" && (mode != "auto" || !asked):
		return "storage." + universe, nil
	case universe != defaultUniverse:
		return "", fmt.Errorf("client certificates are supported only in the universe %s: set GOOGLE_API_USE_MTLS_ENDPOINT=never, or unset GOOGLE_API_USE_CLIENT_CERTIFICATE", defaultUniverse)
	}
	return MutualTLSEndpoint, nil
}
