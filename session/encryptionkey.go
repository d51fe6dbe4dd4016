package session

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

// EncryptionKey is a customer-supplied encryption key (CSEK): 32 bytes, with which the
// service encrypts an object by AES-256
// (https://cloud.google.com/storage/docs/encryption/customer-supplied-keys). The
// service does not keep the key. Without it, the object cannot be read.
//
// An EncryptionKey redacts itself: if it is printed, logged or marshaled, the result
// has only the SHA-256 of the key, which is not a secret. A saved upload has only the
// SHA-256 too. Unmarshaling therefore returns an EncryptionKey without the secret.
// The zero value is no key.
type EncryptionKey struct {
	// secret has the 32 bytes; nil if only the SHA-256 is known. It is a *string, as in
	// URI, because fmt would print the array that a pointer to an array points to.
	secret *string
	sum    string // base64 of the SHA-256; "" if there is no key
}

// NewEncryptionKey returns the key with these 32 bytes.
func NewEncryptionKey(key []byte) (EncryptionKey, error) {
	if len(key) != sha256.Size {
		return EncryptionKey{}, invalid("an encryption key has 32 bytes, this has %d", len(key))
	}
	sum := sha256.Sum256(key)
	return EncryptionKey{secret: new(string(key)), sum: base64.StdEncoding.EncodeToString(sum[:])}, nil
}

// ParseEncryptionKey parses the base64 of a key. White space around it is
// ignored. The error does not contain the text.
func ParseEncryptionKey(text string) (EncryptionKey, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return EncryptionKey{}, invalid("an encryption key is the base64 of 32 bytes, such as the output of openssl rand -base64 32")
	}
	return NewEncryptionKey(key)
}

// IsZero reports whether there is no key.
func (k EncryptionKey) IsZero() bool { return k.sum == "" }

// HasSecret reports whether k has the key itself. The key of a saved upload has only
// the SHA-256.
func (k EncryptionKey) HasSecret() bool { return k.secret != nil }

// WithoutSecret returns k with the SHA-256 only, as in a saved upload.
func (k EncryptionKey) WithoutSecret() EncryptionKey { return EncryptionKey{sum: k.sum} }

// SHA256 returns the base64 of the SHA-256 of the key, or "" if there is no key.
func (k EncryptionKey) SHA256() string { return k.sum }

// Format writes the SHA-256 of the key instead of the key, whatever the verb.
func (k EncryptionKey) Format(f fmt.State, _ rune) {
	text := "[no encryption key]"
	if !k.IsZero() {
		text = "[encryption key with SHA-256 " + k.sum + "]"
	}
	_, _ = io.WriteString(f, text)
}

// MarshalText returns the SHA-256.
func (k EncryptionKey) MarshalText() ([]byte, error) { return []byte(k.sum), nil }

// UnmarshalText sets k to a key without a secret that has this SHA-256.
func (k *EncryptionKey) UnmarshalText(text []byte) error {
	sum, err := base64.StdEncoding.DecodeString(string(text))
	if len(text) > 0 && (err != nil || len(sum) != sha256.Size) {
		return errors.New("not the base64 of a SHA-256")
	}
	*k = EncryptionKey{sum: string(text)}
	return nil
}

// encryptionKeyHeader is the header of a request that has the secret.
const encryptionKeyHeader = "X-Goog-Encryption-Key"
