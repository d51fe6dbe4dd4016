package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// signer signs files with minisign.
type signer struct {
	tool string // the path of minisign
	key  string // the file with the secret key
}

// newSigner returns a signer with the secret key in a file. It fails before anything is built.
func newSigner(key string) (*signer, error) {
	tool, err := exec.LookPath("minisign")
	if err != nil {
		return nil, errors.New("-sign-key: minisign is not installed; install it (Debian: apt-get install minisign), or leave the key out")
	}
	if _, err := os.Stat(key); err != nil {
		return nil, fmt.Errorf("-sign-key: %w", err)
	}
	return &signer{tool, key}, nil
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
