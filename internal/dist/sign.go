package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// signer signs files with minisign.
type signer struct {
	tool string // the path of minisign
	key  string // the file with the secret key
}

// newSigner returns a signer with the secret key in a file. It checks the file, so that a release is
// not built in vain.
func newSigner(key string) (*signer, error) {
	tool, err := exec.LookPath("minisign")
	if err != nil {
		return nil, errors.New("-sign-key: minisign is not installed; install it (Debian: apt-get install minisign), or leave the key out")
	}
	path, err := filepath.Abs(key) // minisign runs in the directory of the release
	if err != nil {
		return nil, fmt.Errorf("-sign-key: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("-sign-key: %w", err)
	}
	if !isSecretKey(string(text)) {
		return nil, fmt.Errorf("-sign-key: %s is not a secret key of minisign; minisign -G makes one", path)
	}
	return &signer{tool, path}, nil
}

// isSecretKey reports whether text is a secret key: a comment and the base64 of 158 bytes.
// https://jedisct1.github.io/minisign/#secret-key-format
func isSecretKey(text string) bool {
	_, key, _ := strings.Cut(text, "\n")
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(key))
	return err == nil && len(data) == 158 && string(data[:2]) == "Ed"
}

// sign writes the signature of a file beside it. minisign asks for the password of the key, or
// reads it from standard input: the arguments have only the name of the key's file.
func (s *signer) sign(path, comment string) error {
	cmd := exec.Command(s.tool, "-S", "-s", s.key, "-m", filepath.Base(path), "-t", comment)
	cmd.Dir = filepath.Dir(path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("minisign: %w", err)
	}
	return nil
}
