package tree_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"gcsup/upload/tree"
)

func TestReadPatterns(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                nil,
		"*.jpg\n/tmp/\n":                  {"*.jpg", "/tmp/"},
		"*.jpg":                           {"*.jpg"},
		"  *.jpg \t\r\n\r\n \n/a b\n":     {"*.jpg", "/a b"},
		"# comment\n ; another\na#b\na;b": {"a#b", "a;b"},
		"\\#a\n\\;b\n":                    {`\#a`, `\;b`},
		"\ufeff*.jpg\n":                   {"*.jpg"},
		"a\na\n":                          {"a", "a"},
	} {
		got, err := tree.ReadPatterns(strings.NewReader(text))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	_, err := tree.ReadPatterns(strings.NewReader("# photographs\n*.jpg\n[\n"))
	if !errors.Is(err, tree.ErrUsage) || !strings.Contains(err.Error(), `line 3: pattern "["`) {
		t.Errorf("error %v, want ErrUsage with the line", err)
	}
	if _, err = tree.ReadPatterns(strings.NewReader(strings.Repeat("x", 1<<17))); err == nil {
		t.Error("a line of 128 KiB is accepted")
	}
	broken := errors.New("broken")
	if _, err = tree.ReadPatterns(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the reader", err)
	}
}
