package main

import (
	"cmp"
	"testing"

	"gcsup/session"
)

func TestContentType(t *testing.T) {
	for _, c := range []struct{ source, object, flag, want string }{
		{"dir.d/page.HTML", "x.png", "", "text/html"},
		{"-", "dir/data.parquet", "", "application/vnd.apache.parquet"},
		{"a.unheard-of", "x.png", "", ""},
		{"Makefile", "x", "", ""},
		{"page.html", "x", "text/x-mine", "text/x-mine"},
	} {
		spec := session.Spec{ContentType: c.flag, DefaultContentType: contentType(c.source, c.object)}
		if got := cmp.Or(spec.ContentType, spec.DefaultContentType); got != c.want {
			t.Errorf("%s to %s with --content-type=%q: %q, want %q", c.source, c.object, c.flag, got, c.want)
		}
	}
}
