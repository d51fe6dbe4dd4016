package fakegcs_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
)

func TestCustomerKeys(t *testing.T) {
	_, bkt := official(t, nil)
	ctx := context.Background()
	key, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	wr := bkt.Object("a").Key(key).NewWriter(ctx)
	wr.ChunkSize = q
	wr.Write(data(2*q + 5))
	if err := wr.Close(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		obj  *storage.ObjectHandle
		want string
	}{{bkt.Object("a").Key(key), ""}, {bkt.Object("a"), "400"}, {bkt.Object("a").Key(other), "CustomerEncryptionKeyIsIncorrect"}} {
		rd, err := test.obj.NewReader(ctx)
		if test.want == "" {
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(rd); err != nil || !bytes.Equal(got, data(2*q+5)) {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
			rd.Close()
		} else if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("read: %v, want %s", err, test.want)
		}
	}
	if attrs, err := bkt.Object("a").Attrs(ctx); err != nil || attrs.CustomerKeySHA256 == "" {
		t.Errorf("attrs: %+v, %v", attrs, err)
	}
}

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
		if a := w.do("PUT", test.uri, nil, append([]string{"Content-Range: bytes */*"}, test.key...)...); a.StatusCode != test.status || !strings.Contains(a.body, test.want) {
			t.Errorf("%s: %d %s, want %d %s", test.name, a.StatusCode, a.body, test.status, test.want)
		}
	}
	if a := w.do("PUT", uri, data(5), append([]string{"Content-Range: bytes 0-4/5"}, headers(1)...)...); a.StatusCode != 200 {
		t.Errorf("data: %d %s", a.StatusCode, a.body)
	}
}
