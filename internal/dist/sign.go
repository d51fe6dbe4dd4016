package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// checkKey checks that minisign is installed and that a file is a secret key, which is a comment
// and the base64 of 158 bytes. https://jedisct1.github.io/minisign/#secret-key-format
func checkKey(file string) error {
	if _, err := exec.LookPath("minisign"); err != nil {
		return errors.New("-sign-key: minisign is not installed; install it (Debian: apt-get install minisign), or leave the key out")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("-sign-key: %w", err)
	}
	_, key, _ := strings.Cut(string(text), "\n")
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(key))
	if err != nil || len(data) != 158 || string(data[:2]) != "Ed" {
		return fmt.Errorf("-sign-key: %s is not a secret key of minisign; minisign -G makes one", file)
	}
	return nil
}

// sign writes the signature of a file beside it. minisign asks for the password of the key, or
// reads it from standard input: the arguments have only the name of the key's file.
func sign(key, file, comment string) error {
	cmd := exec.Command("minisign", "-S", "-s", key, "-m", file, "-t", comment)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("minisign: %w", err)
	}
	return nil
}
