// Package testkeys makes keys of submitters for tests and benchmarks.
package testkeys

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
)

// Write writes new keys to sign.key and verify.pem in dir, and returns the environment variables that select them.
func Write(dir string) (env []string, err error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	sign, verify := filepath.Join(dir, "sign.key"), filepath.Join(dir, "verify.pem")
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err == nil {
		err = os.WriteFile(sign, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
	}
	if err == nil {
		der, err = x509.MarshalPKIXPublicKey(public)
	}
	if err == nil {
		err = os.WriteFile(verify, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
	}
	return []string{"GCSUP_SIGN_KEY=" + sign, "GCSUP_VERIFY_KEY=" + verify}, err
}
