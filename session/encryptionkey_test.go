package session_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/internal/wiretest"
	"gcsup/session"
	"gcsup/session/internal/secrettest"
)

// testKey returns a key of 32 equal bytes.
func testKey(t testing.TB, b byte) session.EncryptionKey {
	k, err := session.NewEncryptionKey(bytes.Repeat([]byte{b}, 32))
	require.NoError(t, err)
	return k
}

// keyForms are the forms in which a text can have the key of testKey.
func keyForms(k session.EncryptionKey) []string {
	raw := k.Bytes()
	return []string{
		string(raw), base64.StdEncoding.EncodeToString(raw), fmt.Sprintf("%x", raw),
		strings.Trim(fmt.Sprint(raw), "[]"), strings.Trim(fmt.Sprintf("%#v", raw), "[]byte{}"),
	}
}

func hasKey(text string, k session.EncryptionKey) bool {
	for _, form := range keyForms(k) {
		if strings.Contains(strings.ToLower(text), strings.ToLower(form)) {
			return true
		}
	}
	return false
}

func TestParseEncryptionKey(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	k, err := session.ParseEncryptionKey(" " + good + "\n")
	if err != nil || !bytes.Equal(k.Bytes(), bytes.Repeat([]byte{7}, 32)) || !k.HasSecret() || k.IsZero() {
		t.Errorf("%v, %v", k, err)
	}
	for _, text := range []string{"", "x", good[:20], good + good, "SECRET-NOT-BASE64-SECRET", base64.StdEncoding.EncodeToString(make([]byte, 31))} {
		if _, err := session.ParseEncryptionKey(text); !errors.Is(err, session.ErrInvalid) || text != "" && len(text) > 1 && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v, want ErrInvalid without the text", text, err)
		}
	}
}

// TestEncryptionKeyIsNotPrinted prints, logs and marshals values that have a key.
func TestEncryptionKeyIsNotPrinted(t *testing.T) {
	k := testKey(t, 'K')
	type private struct{ key session.EncryptionKey }
	spec := session.Spec{Bucket: "bucket", Object: "object", EncryptionKey: k}
	secrettest.Check(t, map[string]any{
		"itself": k, "a pointer": &k, "an unexported field": private{k}, "a slice": []session.EncryptionKey{k}, "a map's key": map[session.EncryptionKey]int{k: 1},
		"a Spec": spec, "a Spec's pointer": &spec, "specs": []any{spec, map[string]session.Spec{"s": spec}},
	}, func(text string) bool { return hasKey(text, k) })
}

// TestEncryptionKeyHeaders checks which requests have the key, and that it does not
// leave the endpoint.
func TestEncryptionKeyHeaders(t *testing.T) {
	k := testKey(t, 'K')
	var host string
	var header http.Header
	client := wiretest.NewClient(t, &http.Client{Transport: wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		host, header = r.URL.Host, r.Header
		return nil, fmt.Errorf("%s: %w", r.Header.Get("X-Goog-Encryption-Key"), io.EOF)
	})}, "")
	spec := session.Spec{Bucket: "bucket", Object: "object", EncryptionKey: k}
	uri := freshURI(t)
	rng := chunk.Range{To: q}
	keyed := client.WithEncryptionKey(k)
	for name, c := range map[string]struct {
		do   func() session.Reply
		want bool
	}{
		"start":           {func() session.Reply { return client.Start(t.Context(), spec, 5) }, true},
		"insert":          {func() session.Reply { return client.Insert(t.Context(), spec, 0, 0, nil) }, true},
		"stat":            {func() session.Reply { return client.Stat(t.Context(), spec) }, true},
		"put":             {func() session.Reply { return keyed.Put(t.Context(), uri, rng, -1, strings.NewReader("x")) }, true},
		"query":           {func() session.Reply { return keyed.Query(t.Context(), uri) }, true},
		"finalize":        {func() session.Reply { return keyed.Finalize(t.Context(), uri, rng, q, 0, strings.NewReader("x")) }, true},
		"cancel":          {func() session.Reply { return keyed.Cancel(t.Context(), uri) }, false},
		"query of no key": {func() session.Reply { return client.Query(t.Context(), uri) }, false},
		"another session": {func() session.Reply { return keyed.WithEncryptionKey(session.EncryptionKey{}).Query(t.Context(), uri) }, false},
	} {
		header = nil
		r := c.do()
		want := ""
		if c.want {
			want = base64.StdEncoding.EncodeToString(k.Bytes())
		}
		if header == nil || header.Get("X-Goog-Encryption-Key") != want || (header.Get("X-Goog-Encryption-Key-Sha256") != "") != c.want || (header.Get("X-Goog-Encryption-Algorithm") == "AES256") != c.want {
			t.Errorf("%s: header = %v, want the key = %v; %v", name, header, c.want, r.Err)
		}
		if hasKey(fmt.Sprintf("%v %+v %#v", r.Err, r, r), k) {
			t.Errorf("%s: the error has the key: %v", name, r.Err)
		}
	}

	host = ""
	if r := keyed.Query(t.Context(), secrettest.URI("https://evil.example")); !errors.Is(r.Err, session.ErrURIMismatch) || host != "" {
		t.Errorf("a request to %q: %v, want ErrURIMismatch", host, r.Err)
	}
	spec.EncryptionKey = k.WithoutSecret()
	if r := client.Start(t.Context(), spec, 5); !errors.Is(r.Err, session.ErrEncryptionKey) || host != "" {
		t.Errorf("a key without its secret: %v, want ErrEncryptionKey", r.Err)
	}
}
