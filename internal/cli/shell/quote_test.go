package shell

import (
	"os/exec"
	"testing"
)

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"/tmp/a-b_1/ca.pem": "/tmp/a-b_1/ca.pem", "/tmp/a b": "'/tmp/a b'", "it's": `'it'\''s'`, "": "''", "/ü": "'/ü'",
		"a\ngcsup: \x1b[31m": `$'a\ngcsup: \033[31m'`, "it's\n\\1": `$'it\'s\n\\1'`, "ü\xff9": `$'ü\3779'`, "a\u202e": `$'a\342\200\256'`,
	} {
		if got := Quote(word); got != want {
			t.Errorf("%q is quoted as %s, want %s", word, got, want)
		}
	}
}

// TestBashReadsQuotedWords checks that the shell reads each word as it was.
func TestBashReadsQuotedWords(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	for _, word := range []string{"it's\n\\1\x1b[31m", "ü\xff9\u202e", "\t'\\'", "a b"} {
		out, err := exec.Command(bash, "-c", "printf %s "+Quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%s is read as %q, want %q (%v)", Quote(word), out, word, err)
		}
	}
}
