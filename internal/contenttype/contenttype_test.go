package contenttype_test

import (
	"testing"

	"gcsup/internal/contenttype"
)

func TestOf(t *testing.T) {
	for name, want := range map[string]string{
		"dir.d/page.HTML":  "text/html",
		"dir/data.parquet": "application/vnd.apache.parquet",
		"a.unheard-of":     "",
		"Makefile":         "",
	} {
		if got := contenttype.Of(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
