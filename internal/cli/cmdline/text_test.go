package cmdline

import (
	"reflect"
	"testing"
)

func TestParseText(t *testing.T) {
	const text = "A `b` and [a link](c.md#d).\n\n### More\n\n- one\n- two\n\n| k | v | w |\n|---|---|---|\n| `a\\|b` | c | |\n| d | | e |\n\n```sh\nx  y\n\nz\n```\nEnd.\n"
	got := ParseText(text)
	want := []Block{
		{Paragraph: "A `b` and [a link](c.md#d)."},
		{Heading: "More"},
		{Items: []string{"one", "two"}},
		{Table: &Table{Head: []string{"k", "v", "w"}, Rows: [][]string{{"`a|b`", "c", ""}, {"d", "", "e"}}}},
		{Verbatim: []string{"x  y", "", "z"}},
		{Paragraph: "End."},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("blocks\n%+v, want\n%+v", got, want)
	}
	const shown = "A b and a link.\n\nMore:\n  - one\n  - two\n\n  a|b  v: c\n  d    w: e\n\n  x  y\n  \n  z\n\nEnd.\n"
	if text := render(got, 30); text != shown {
		t.Errorf("shown as\n%q, want\n%q", text, shown)
	}
}

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"`a`":                           "a",
		"[a](b) and [c](d)":             "a and c",
		"[^a].jpg":                      "[^a].jpg",
		"[^a] is [a link](b)":           "[^a] is a link",
		"--x[=y](z":                     "--x[=y](z",
		"see [`docs/x.md`](x.md#y), so": "see docs/x.md, so",
	} {
		if got := Plain(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
