package fakegcs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"testing"
)

// TestCustomerKeyOfASession checks that a session accepts requests with its key or
// without one, as official libraries send them, and refuses another key.
func TestCustomerKeyOfASession(t *testing.T) {
	w := newWorld(t, nil)
	headers := func(b byte) []string {
		key := bytes.Repeat([]byte{b}, 32)
		sum := sha256.Sum256(key)
		return []string{
			"x-goog-encryption-algorithm: AES256", "x-goog-encryption-key: " + base64.StdEncoding.EncodeToString(key),
			"x-goog-encryption-key-sha256: " + base64.StdEncoding.EncodeToString(sum[:]),
		}
	}
	uri, plain := w.start("a", headers(1)...), w.start("b")
	for _, test := range []struct {
		name, uri string
		key       []string
		status    int
		want      string
	}{
		{"no key", uri, nil, 308, ""},
		{"its key", uri, headers(1), 308, ""},
		{"another key", uri, headers(2), 400, "customerEncryptionKeyIsIncorrect"},
		{"half a key", uri, headers(1)[:2], 400, "customerEncryptionKeySha256IsInvalid"},
		{"a key for a session without one", plain, headers(1), 400, "resourceNotEncryptedWithCustomerEncryptionKey"},
	} {
		w.want(test.status, test.want, "PUT", test.uri, nil, append([]string{"Content-Range: bytes */*"}, test.key...)...)
	}
	w.want(200, "", "PUT", uri, data(5), append([]string{"Content-Range: bytes 0-4/5"}, headers(1)...)...)
}
