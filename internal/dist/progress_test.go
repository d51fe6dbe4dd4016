package main

import (
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	p := newProgress(&out, func() time.Time { return now }, 2)
	for _, name := range []string{"linux/amd64", "packages"} {
		p.start(name)
		now = now.Add(1500 * time.Millisecond)
		p.end()
	}
	want := "[1/2] linux/amd64\n      1.5 s, 1.5 s in all\n[2/2] packages\n      1.5 s, 3.0 s in all\n"
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", &out, want)
	}
}
