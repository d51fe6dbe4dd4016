package main

import "testing"

func TestShortenPath(t *testing.T) {
	for _, c := range []struct {
		path  string
		width int
		want  string
	}{
		{"a/b.txt", 10, "a/b.txt"},
		{"photos/2026/november/img_0001.raw", 24, "…/november/img_0001.raw"},
		{"photos/2026/november/img_0001.raw", 15, "…/img_0001.raw"},
		{"photos/2026/november/img_0001.raw", 12, "img_0001.raw"},
		{"photos/2026/november/img_0001.raw", 11, "img_0…1.raw"},
		{"disk-image-of-november-2026.img", 20, "disk-image…-2026.img"},
		{"a/写真.tif", 8, "写真.tif"},
		{"写真コレクション.tif", 12, "写真コ….tif"},
		{"abcdef", 3, "ab…"},
		{"abcdef", 0, ""},
	} {
		got := shortenPath(c.path, c.width)
		if got != c.want || textWidth(got) > c.width {
			t.Errorf("shortenPath(%q, %d) = %q, want %q", c.path, c.width, got, c.want)
		}
	}
}

func TestCauseOf(t *testing.T) {
	for _, c := range []struct{ text, want, short string }{
		{"503", "503", "503"},
		{"503; another upload is probing", "503", "503"},
		{"read tcp 10.0.0.1:5->[2001:db8::1]:443: read: connection reset by peer", "connection reset", "reset"},
		{`Put "https://storage.googleapis.com/upload?x=1": unexpected EOF`, "connection closed", "closed"},
		{"dial tcp: lookup storage.googleapis.com: no such host", "host not found", "no host"},
		{"dial tcp 127.0.0.1:443: connect: connection refused", "connection refused", "refused"},
		{"net/http: TLS handshake timeout", "timeout", "timeout"},
		{"write 10.0.0.1:5->10.0.0.2:443", "write", "write"},
		{"127.0.0.1:80", "network error", "networ…"},
		{"something odd happened to the request", "something odd hap…", "someth…"},
	} {
		got := causeOf(c.text)
		if got.text != c.want || got.short != c.short || textWidth(got.text) > 18 || textWidth(got.short) > 7 {
			t.Errorf("causeOf(%q) = %q, want %q and %q", c.text, got, c.want, c.short)
		}
	}
}
