package shell

import "testing"

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{"/tmp/a-b_1/ca.pem": "/tmp/a-b_1/ca.pem", "/tmp/a b": "'/tmp/a b'", "it's": `'it'\''s'`, "": "''", "/ü": "'/ü'"} {
		if got := Quote(word); got != want {
			t.Errorf("%q is quoted as %s, want %s", word, got, want)
		}
	}
}
