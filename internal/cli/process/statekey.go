package process

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"filippo.io/age"
)

// limit is the maximum size of a key file in bytes.
const limit = 64 << 10

// ReadStateKey returns the AEAD, AES-256-GCM, that seals saved uploads with the key in a file. The file has
// 32 bytes, or one age identity as text. Except on Windows, a file that others can access is refused. On Linux, a secret that is mounted
// for a group of this process is not.
// https://pkg.go.dev/filippo.io/age#ParseIdentities
func ReadStateKey(path string) (cipher.AEAD, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 && !mounted(f, info) {
		return nil, fmt.Errorf("others can access %s (mode %04o): run chmod 600 on it; in a container, mount it read-only, with root as its owner and the mode 0440 for the group of this process", path, info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil, err
	}
	secret, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "gcsup saved uploads", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// parse returns the secret from the content of a key file. Its error does not reveal the content.
func parse(data []byte) ([]byte, error) {
	if len(data) == 32 {
		return data, nil
	}
	identities, err := age.ParseIdentities(bytes.NewReader(data))
	if err != nil || len(identities) != 1 {
		return nil, errKey
	}
	identity, ok := identities[0].(fmt.Stringer)
	if !ok {
		return nil, errKey
	}
	return []byte(identity.String()), nil
}

var errKey = errors.New("want 32 bytes, such as those of head -c 32 /dev/urandom, or the output of age-keygen")
