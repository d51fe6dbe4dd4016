package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"runtime"

	"gcsup/internal/cli/exit"
)

// keys are what a command needs if other processes can write to the queue.
type keys int

const (
	noKeys   keys = iota
	toVerify      // it reads tasks
	toSign        // it adds tasks, or changes settings
)

// readSignKey reads the file of --sign-key. It refuses a file that all users can access.
func readSignKey(path string) (ed25519.PrivateKey, error) {
	const flag = "--sign-key"
	info, err := os.Stat(path)
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		err = fmt.Errorf("others can access %s (mode %04o): run chmod 600 on it", path, info.Mode().Perm())
	}
	if err != nil {
		return nil, exit.WithKind(fmt.Errorf("%s: %w", flag, err), exit.ErrSource)
	}
	all, err := readKeys[ed25519.PrivateKey](flag, path, x509.ParsePKCS8PrivateKey)
	if err == nil && len(all) > 1 {
		err = exit.WithKind(fmt.Errorf("%s: %s has %d keys, want one", flag, path, len(all)), exit.ErrSource)
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// readKeys reads the keys in the file of a flag. It has one or more, in PEM. The error does not contain them.
func readKeys[K any](flag, path string, parse func([]byte) (any, error)) (all []K, err error) {
	data, err := os.ReadFile(path)
	for err == nil {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		parsed, failed := parse(block.Bytes)
		key, ok := parsed.(K)
		if failed != nil || !ok {
			err = fmt.Errorf("%s: the block %q is no such key of ed25519", path, block.Type)
		}
		all = append(all, key)
	}
	if err == nil && len(all) == 0 {
		err = errors.New(path + ": it has no key in PEM: see openssl genpkey -algorithm ed25519")
	}
	if err != nil {
		return nil, exit.WithKind(fmt.Errorf("%s: %w", flag, err), exit.ErrSource)
	}
	return all, nil
}
