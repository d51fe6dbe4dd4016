package gcs_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/option"
	raw "google.golang.org/api/storage/v1"

	"gcsup/internal/require"
	"gcsup/upload/gcs"
)

// setOrUnset sets an environment variable for a test, or unsets it if value is "unset".
func setOrUnset(t *testing.T, name, value string) {
	t.Setenv(name, value)
	if value == "unset" {
		os.Unsetenv(name)
	}
}

// TestMutualTLSEndpoint compares the endpoint for each setting of the environment with that of the
// official library. There is one difference: that library finds the certificate of a
// workload for the handshake, but not when it chooses the endpoint. AIP-4114 demands that it
// counts for both.
func TestMutualTLSEndpoint(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, newAuthority(t, "root", nil), time.Now().Add(time.Hour), dir)
	t.Setenv("GOOGLE_API_CERTIFICATE_CONFIG", filepath.Join(dir, "config.json"))
	for _, use := range []string{"unset", "", "true", "TRUE", "1", "false", "no"} {
		for _, mode := range []string{"unset", "auto", "always", "never", "ALWAYS", "other"} {
			for _, universe := range []string{"unset", "example.cloud"} {
				for _, endpoint := range []string{"", "https://other.example"} {
					setOrUnset(t, "GOOGLE_API_USE_CLIENT_CERTIFICATE", use)
					setOrUnset(t, "GOOGLE_API_USE_MTLS_ENDPOINT", mode)
					setOrUnset(t, "GOOGLE_CLOUD_UNIVERSE_DOMAIN", universe)
					name := fmt.Sprintf("certificate %s, endpoint mode %s, universe %s, endpoint %q", use, mode, universe, endpoint)
					options := []option.ClientOption{option.WithoutAuthentication()}
					if endpoint != "" {
						options = append(options, option.WithEndpoint(endpoint+"/storage/v1/"))
					}
					want, wantErr := raw.NewService(t.Context(), options...)
					got, err := gcs.New(t.Context(), &gcs.Options{Anonymous: true, Endpoint: endpoint})
					if strings.EqualFold(use, "true") && (mode == "unset" || mode == "auto") && endpoint == "" {
						if universe == "unset" && (err != nil || got.Endpoint() != gcs.MutualTLSEndpoint) || universe != "unset" && err == nil {
							t.Errorf("%s: error %v, want %s or an error in another universe", name, err, gcs.MutualTLSEndpoint)
						}
						continue
					}
					if (err == nil) != (wantErr == nil) {
						t.Errorf("%s: error %v, that of the official library is %v", name, err, wantErr)
						continue
					}
					if err != nil {
						continue
					}
					if got.Endpoint()+"/storage/v1/" != want.BasePath {
						t.Errorf("%s: endpoint %s, that of the official library is %s", name, got.Endpoint(), want.BasePath)
					}
					certified := use == "true" || use == "TRUE" || use == "1" || use == "unset" && universe == "unset"
					if got.ClientCertificate() != certified {
						t.Errorf("%s: has a certificate: %v", name, got.ClientCertificate())
					}
				}
			}
		}
	}
}

// TestCertificateConfig checks which files are mistakes, and which name no certificate.
func TestCertificateConfig(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "certificate_config.json")
	t.Setenv("GOOGLE_API_CERTIFICATE_CONFIG", path)
	for text, want := range map[string]string{
		"{":  "client certificate: " + path + ": unexpected end of JSON input; correct it, or set GOOGLE_API_USE_CLIENT_CERTIFICATE=false",
		"{}": "",
		`{"cert_configs":{"workload":{"cert_path":"x"}}}`:                        "needs cert_path and key_path",
		`{"cert_configs":{"workload":{"cert_path":"nope","key_path":"nope"}}}`:   "client certificate: " + path + ": open nope: no such file",
		`{"cert_configs":{"pkcs11":{"slot":"0"}}}`:                               "", // without a helper
		`{"cert_configs":{"other":{}},"libs":{"ecp":"helper"}}`:                  "",
		`{"cert_configs":{"pkcs11":{"slot":"0"}},"libs":{"ecp":"/nope/helper"}}`: "", // an error of the handshake
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := gcs.New(t.Context(), &gcs.Options{Anonymous: true})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	// A broken file does not matter if no certificate is used.
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	for _, opts := range []gcs.Options{{Endpoint: "http://localhost:1"}, {Transport: http.DefaultTransport}, {UniverseDomain: "example.cloud"}} {
		opts.Anonymous = true
		if _, err := gcs.New(t.Context(), &opts); err != nil {
			t.Errorf("%+v: %v", opts, err)
		}
	}
	t.Setenv("STORAGE_EMULATOR_HOST", "https://localhost:1")
	if _, err := gcs.New(t.Context(), nil); err != nil {
		t.Errorf("with an emulator: %v", err)
	}
}
